// SPDX-License-Identifier: Apache-2.0
// TLS needs a certificate, and the simulator knows how to make one without any tool of the machine.
import type { Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { textOf } from '../../src/ports/contract/transport.contract.ts';
import { makeCertificate } from '../../src/sim/proxmox/index.ts';
import { type HttpTransportOptions, openHttpTransport } from '../../src/system/index.ts';

const own = makeCertificate(['127.0.0.1']);
const fingerprint = own.fingerprint.replaceAll(':', '').toLowerCase();

function listen(server: Server): Promise<number> {
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      resolve(typeof address === 'object' && address !== null ? address.port : 0);
    });
  });
}

function stop(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}

describe('TLS', () => {
  let server: Server;
  let base = '';
  let connections = 0;

  beforeAll(async () => {
    server = createTlsServer({ key: own.key, cert: own.cert }, (request, response) => {
      response.writeHead(200, 'fine', { 'x-alpn': request.httpVersion });
      response.end('ok');
    });
    server.on('secureConnection', () => {
      connections += 1;
    });
    base = `https://127.0.0.1:${await listen(server)}`;
  });
  afterAll(async () => {
    await stop(server);
  });

  async function ask(options: HttpTransportOptions) {
    const transport = await openHttpTransport(options);
    try {
      const reply = await transport.request({
        method: 'GET',
        url: base,
        headers: { authorization: 'PVEAPIToken=a@pve!b=topsecret' },
        headTimeoutMs: 5_000,
      });
      return `${reply.status} ${reply.reason} ${await textOf(reply.body)}`;
    } finally {
      await transport.close();
    }
  }

  const refused = {
    code: 'TLS_NOT_TRUSTED',
    class: 'Unauthorized',
    facts: { requestSent: false },
  };

  it('refuses a certificate that no known authority signed', async () => {
    await expect(ask({})).rejects.toMatchObject(refused);
  });

  it('accepts it by its authority, by one of several fingerprints, or unchecked when told to', async () => {
    const colons = (fingerprint.toUpperCase().match(/../g) ?? []).join(':');
    const ways = [
      { kind: 'verify', caPem: own.cert },
      { kind: 'fingerprints', sha256: ['00'.repeat(32), colons] },
      { kind: 'fingerprints', sha256: [fingerprint] },
      { kind: 'insecure' },
    ] as const;
    for (const tls of ways) expect(await ask({ tls })).toBe('200 fine ok');
  });

  it('refuses any other fingerprint, names the one seen, and shows no token', async () => {
    const options = { tls: { kind: 'fingerprints', sha256: ['ab'.repeat(32)] } } as const;
    const error: Error & Record<string, unknown> = await ask(options).then(
      () => expect.unreachable(),
      (reason: Error & Record<string, unknown>) => reason,
    );
    expect(error).toMatchObject(refused);
    expect(error.message.replaceAll(':', '').toLowerCase()).toContain(fingerprint);
    expect(JSON.stringify([error.message, error['facts'], String(error.cause)])).not.toContain(
      'topsecret',
    );
  });

  it('keeps connections for the next request, below HTTP/2', async () => {
    const transport = await openHttpTransport({ tls: { kind: 'insecure' } });
    const before = connections;
    for (let turn = 0; turn < 5; turn += 1) {
      const reply = await transport.request({ method: 'GET', url: base, headTimeoutMs: 5_000 });
      expect(reply.headers['x-alpn']).toBe('1.1');
      await textOf(reply.body);
    }
    // A second one opens when the next request comes before the first connection is free again.
    expect(connections - before).toBeLessThanOrEqual(2);
    await transport.close();
  });
});
