// SPDX-License-Identifier: Apache-2.0
// The machine the program runs on, behind the ports: time and randomness today, sockets when the first
// client needs them. The only folder besides main.ts that may use timers and randomness of Node.
export { systemClock } from './clock.ts';
export {
  createHttpTransport,
  type HttpTransportOptions,
  type TransportTls,
} from './http-transport.ts';
export { systemRandom } from './random.ts';
