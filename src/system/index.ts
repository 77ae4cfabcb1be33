// SPDX-License-Identifier: Apache-2.0
// Implements the ports with Node's timers, randomness, sockets, threads and child processes. Besides main.ts this is the
// only folder that may use them.
import type { Transport } from '../ports/transport.ts';
import type { HttpTransportOptions } from './http-transport.ts';

export { systemClock } from './clock.ts';
export { fencedTransport } from './fenced-transport.ts';
export type { ClientIdentity, HttpTransportOptions, TransportTls } from './http-transport.ts';
export { systemRandom } from './random.ts';
export { runProgram } from './run-program.ts';
export { openParentChannel, startThread } from './thread-channel.ts';

/** Loads the HTTP client on demand, because it is large and many commands need none. */
export async function openHttpTransport(options: HttpTransportOptions): Promise<Transport> {
  const { createHttpTransport } = await import('./http-transport.ts');
  return createHttpTransport(options);
}
