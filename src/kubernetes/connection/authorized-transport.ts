// SPDX-License-Identifier: Apache-2.0
import type { Transport, TransportRequest, TransportResponse } from '../../ports/transport.ts';
import type { Connection, Credentials, OpenTransport } from './connection.ts';

interface Opened {
  readonly identity: string;
  readonly transport: Promise<Transport>;
}

/** Signs every request with the credentials of the moment; a new client certificate means new connections. */
export class AuthorizedTransport implements Transport {
  readonly #connection: Connection;
  readonly #open: OpenTransport;
  #opened: Opened | undefined;

  constructor(connection: Connection, open: OpenTransport) {
    this.#connection = connection;
    this.#open = open;
  }

  async request(request: TransportRequest): Promise<TransportResponse> {
    const credentials = await this.#connection.credentials();
    const transport = await this.#transportFor(credentials);
    const { authorization } = credentials;
    if (authorization === undefined) return transport.request(request);
    return transport.request({ ...request, headers: { ...request.headers, authorization } });
  }

  async close(): Promise<void> {
    await (await this.#opened?.transport)?.close();
  }

  #transportFor({ client }: Credentials): Promise<Transport> {
    // The key too: read while both were being replaced, a certificate may have come with the key before.
    const identity = `${client?.certPem ?? ''}${client?.keyPem ?? ''}`;
    if (this.#opened?.identity !== identity) {
      // Requests under way on the old one are left to end.
      this.#opened?.transport.then((old) => old.close()).catch(() => undefined);
      const { caPem, isInsecure, serverName } = this.#connection;
      const tls = { caPem, isInsecure, serverName, ...(client && { client }) };
      this.#opened = { identity, transport: this.#open(tls) };
    }
    return this.#opened.transport;
  }
}
