// SPDX-License-Identifier: Apache-2.0
import { connect, type Socket } from 'node:net';

/** Opens a TCP connection. An abort closes it, also after it was opened. */
export function openSocket(
  address: { readonly host: string; readonly port: number },
  signal: AbortSignal,
): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ ...address, noDelay: true, signal });
    socket.once('error', reject);
    socket.once('connect', () => {
      socket.removeListener('error', reject);
      // Later errors end the connection, which its user notices.
      socket.on('error', () => socket.destroy());
      resolve(socket);
    });
  });
}
