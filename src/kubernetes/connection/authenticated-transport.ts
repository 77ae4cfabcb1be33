// SPDX-License-Identifier: Apache-2.0
import { Cancelled } from '../../ports/errors.ts';
import type { Transport, TransportRequest, TransportResponse } from '../../ports/transport.ts';
import type { ClusterConnection, Credentials, OpenTransport } from './connection.ts';

interface OpenedTransport {
  /** Client certificate and key it was opened with. */
  readonly certificateKey: string;
  readonly transport: Promise<Transport>;
}

/**
 * Adds the current credentials to every request. A new client certificate opens new connections. A request that the
 * server refuses with 401 had no effect: it is sent once more if other credentials are available by then.
 */
export class AuthenticatedTransport implements Transport {
  readonly #connection: ClusterConnection;
  readonly #open: OpenTransport;
  #opened: OpenedTransport | undefined;

  constructor(connection: ClusterConnection, open: OpenTransport) {
    this.#connection = connection;
    this.#open = open;
  }

  async request(request: TransportRequest): Promise<TransportResponse> {
    const credentials = await this.#credentials(request);
    const response = await this.#send(request, credentials);
    if (response.status !== 401) return response;
    this.#connection.renew(credentials);
    const renewed = await this.#credentials(request);
    if (credentialsKey(renewed) === credentialsKey(credentials)) return response;
    for await (const _part of response.body);
    return this.#send(request, renewed);
  }

  async close(): Promise<void> {
    this.#connection.close();
    await (await this.#opened?.transport)?.close();
  }

  /** Stops waiting for an exec plugin when the request is aborted. */
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
    const certificateKey = formatCertificateKey(credentials);
    if (this.#opened?.certificateKey !== certificateKey) {
      // Requests in progress on the old transport are allowed to end.
      this.#opened?.transport.then((old) => old.close()).catch(() => undefined);
      const { caPem, isInsecure, serverName } = this.#connection;
      const tls = { caPem, isInsecure, serverName, ...(client && { client }) };
      this.#opened = { certificateKey, transport: this.#open(tls) };
    }
    return this.#opened.transport;
  }
}

/** Includes the key: while both files are being replaced, a new certificate may be read with the old key. */
function formatCertificateKey({ client }: Credentials): string {
  return `${client?.certPem ?? ''}${client?.keyPem ?? ''}`;
}

export function credentialsKey(credentials: Credentials): string {
  return `${credentials.authorization ?? ''}\n${formatCertificateKey(credentials)}`;
}

function cancelled(): Cancelled {
  return new Cancelled('CANCELLED', 'the request was cancelled before credentials were available', {
    facts: { requestSent: false },
  });
}
