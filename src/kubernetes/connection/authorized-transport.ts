// SPDX-License-Identifier: Apache-2.0
import type { Transport, TransportRequest, TransportResponse } from '../../ports/transport.ts';
import type { Connection, Credentials, OpenTransport } from './connection.ts';

interface Opened {
  readonly certPem: string;
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
    const certPem = client?.certPem ?? '';
    if (this.#opened?.certPem !== certPem) {
      // Requests under way on the old one are left to end.
      void this.#opened?.transport.then((old) => old.close());
      const { caPem, isInsecure, serverName } = this.#connection;
      const tls = { caPem, isInsecure, serverName, ...(client && { client }) };
      this.#opened = { certPem, transport: this.#open(tls) };
    }
    return this.#opened.transport;
  }
}
