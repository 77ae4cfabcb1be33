// SPDX-License-Identifier: Apache-2.0
// Implements the ports with Node's timers, randomness, sockets, threads and child processes. Besides main.ts this is the
// only folder that may use them.
import { InvalidConfig } from '../ports/errors.ts';
import type { Transport } from '../ports/transport.ts';
import type { HttpTransportOptions } from './http-transport.ts';

export { systemClock } from './clock.ts';
export { fencedTransport } from './fenced-transport.ts';
export { systemFiles } from './files.ts';
export type { ClientIdentity, HttpTransportOptions, TransportTls } from './http-transport.ts';
export { openSocket } from './open-socket.ts';
export { abortOnSignals, ignoreClosedPipes, onHangUp, PROCESS_NAME } from './process.ts';
export { systemRandom } from './random.ts';
export { runProgram } from './run-program.ts';
export { ask, runInteractive, terminalQuestion } from './terminal.ts';
export { openParentChannel, startThread, type ThreadProgram } from './thread-channel.ts';

/** Loads the HTTP client on demand, because it is large and many commands need none. */
export async function openHttpTransport(options: HttpTransportOptions): Promise<Transport> {
  const { createHttpTransport } = await import('./http-transport.ts');
  return createHttpTransport(options);
}

const READ_URL_TIMEOUT_MS = 30_000;

/** The body of a GET request, as text. */
export async function readUrl(
  url: string,
  options: Pick<HttpTransportOptions, 'clock'> = {},
): Promise<string> {
  const transport = await openHttpTransport(options);
  try {
    const response = await transport.request({
      method: 'GET',
      url,
      timeoutMs: READ_URL_TIMEOUT_MS,
    });
    const chunks: Uint8Array[] = [];
    for await (const chunk of response.body) chunks.push(chunk);
    if (response.status !== 200) {
      throw new InvalidConfig('CONFIG_INVALID', `${url} answers with status ${response.status}`);
    }
    return Buffer.concat(chunks).toString('utf8');
  } finally {
    await transport.close();
  }
}
