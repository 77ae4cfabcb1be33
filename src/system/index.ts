// SPDX-License-Identifier: Apache-2.0
// The machine the program runs on, behind the ports: time, randomness and sockets. The only folder besides
// main.ts that may use timers, randomness and sockets of Node.
import type { Transport } from '../ports/transport.ts';
import type { HttpTransportOptions } from './http-transport.ts';

export { systemClock } from './clock.ts';
export { fencedTransport } from './fenced-transport.ts';
export type { ClientIdentity, HttpTransportOptions, TransportTls } from './http-transport.ts';
export { systemRandom } from './random.ts';
export { runProgram } from './run-program.ts';
export { linkToParent, startThread } from './thread-link.ts';

/** The HTTP client is large; it is loaded by the first command that talks to somebody. */
export async function openHttpTransport(options: HttpTransportOptions): Promise<Transport> {
  const { createHttpTransport } = await import('./http-transport.ts');
  return createHttpTransport(options);
}
