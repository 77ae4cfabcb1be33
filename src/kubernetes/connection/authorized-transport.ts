// SPDX-License-Identifier: Apache-2.0
import { Cancelled } from '../../ports/errors.ts';
import type { Transport, TransportRequest, TransportResponse } from '../../ports/transport.ts';
import type { Connection, Credentials, OpenTransport } from './connection.ts';

interface Opened {
  readonly identity: string;
  readonly transport: Promise<Transport>;
}

/**
 * Signs every request with the credentials of the moment; a new client certificate means new connections. What is
 * refused for its credentials was not done: where there are others by now, it is sent once more with them.
 */
export class AuthorizedTransport implements Transport {
  readonly #connection: Connection;
  readonly #open: OpenTransport;
  #opened: Opened | undefined;

  constructor(connection: Connection, open: OpenTransport) {
    this.#connection = connection;
    this.#open = open;
  }

  async request(request: TransportRequest): Promise<TransportResponse> {
    const credentials = await this.#credentials(request);
    const response = await this.#send(request, credentials);
    if (response.status !== 401) return response;
    this.#connection.renew(credentials);
    const others = await this.#credentials(request);
    if (identityOf(others) === identityOf(credentials)) return response;
    for await (const _part of response.body);
    return this.#send(request, others);
  }

  async close(): Promise<void> {
    this.#connection.close();
    await (await this.#opened?.transport)?.close();
  }

  /** Nobody waits for a plugin longer than for the request itself. */
  #credentials({ signal }: TransportRequest): Promise<Credentials> {
    const credentials = this.#connection.credentials();
    if (signal === undefined) return credentials;
    return new Promise((resolve, reject) => {
      const onAbort = () => reject(cancelled());
      if (signal.aborted) onAbort();
      signal.addEventListener('abort', onAbort, { once: true });
      credentials.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
    });
  }

  async #send(request: TransportRequest, credentials: Credentials): Promise<TransportResponse> {
    const transport = await this.#transportFor(credentials);
    const { authorization } = credentials;
    if (authorization === undefined) return transport.request(request);
    return transport.request({ ...request, headers: { ...request.headers, authorization } });
  }

  #transportFor(credentials: Credentials): Promise<Transport> {
    const { client } = credentials;
    const identity = certificateOf(credentials);
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

/** The key too: read while both were being replaced, a certificate may have come with the key before. */
function certificateOf({ client }: Credentials): string {
  return `${client?.certPem ?? ''}${client?.keyPem ?? ''}`;
}

export function identityOf(credentials: Credentials): string {
  return `${credentials.authorization ?? ''}\n${certificateOf(credentials)}`;
}

function cancelled(): Cancelled {
  return new Cancelled('CANCELLED', 'called off while there were no credentials yet', {
    facts: { requestSent: false },
  });
}
