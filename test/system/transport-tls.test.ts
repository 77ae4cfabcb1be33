// SPDX-License-Identifier: Apache-2.0
// TLS of the HTTP transport. Outside src/system, because it uses the simulator to create certificates.
import type { Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readText } from '../../src/ports/contract/transport.contract.ts';
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

describe('TLS of the HTTP transport', () => {
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

  async function send(options: HttpTransportOptions) {
    const transport = await openHttpTransport(options);
    try {
      const reply = await transport.request({
        method: 'GET',
        url: base,
        headers: { authorization: 'PVEAPIToken=a@pve!b=topsecret' },
        timeoutMs: 5_000,
      });
      return `${reply.status} ${reply.reason} ${await readText(reply.body)}`;
    } finally {
      await transport.close();
    }
  }

  const refused = {
    code: 'TLS_NOT_TRUSTED',
    class: 'Unauthorized',
    facts: { requestSent: false },
  };

  it('refuses a certificate of an unknown CA and shows the fingerprint to pin', async () => {
    const refusal = send({});
    await expect(refusal).rejects.toMatchObject(refused);
    await expect(refusal).rejects.toThrow(
      `is not trusted (DEPTH_ZERO_SELF_SIGNED_CERT); its SHA-256 fingerprint is ${own.fingerprint}`,
    );
  });

  it('accepts a certificate by CA, by one of several fingerprints, or unverified if configured', async () => {
    const colons = (fingerprint.toUpperCase().match(/../g) ?? []).join(':');
    const settings = [
      { kind: 'verify', caPem: own.cert },
      { kind: 'fingerprints', sha256: ['00'.repeat(32), colons] },
      { kind: 'fingerprints', sha256: [fingerprint] },
      { kind: 'insecure' },
    ] as const;
    for (const tls of settings) expect(await send({ tls })).toBe('200 fine ok');
  });

  it('refuses an unknown fingerprint, names it in the error, and does not reveal the token', async () => {
    const options = { tls: { kind: 'fingerprints', sha256: ['ab'.repeat(32)] } } as const;
    const error: Error & Record<string, unknown> = await send(options).then(
      () => expect.unreachable(),
      (reason: Error & Record<string, unknown>) => reason,
    );
    expect(error).toMatchObject(refused);
    expect(error.message.replaceAll(':', '').toLowerCase()).toContain(fingerprint);
    expect(JSON.stringify([error.message, error['facts'], String(error.cause)])).not.toContain(
      'topsecret',
    );
  });

  it('reuses connections and does not use HTTP/2', async () => {
    const transport = await openHttpTransport({ tls: { kind: 'insecure' } });
    const before = connections;
    for (let count = 0; count < 5; count += 1) {
      const reply = await transport.request({ method: 'GET', url: base, timeoutMs: 5_000 });
      expect(reply.headers['x-alpn']).toBe('1.1');
      await readText(reply.body);
    }
    // A second connection opens if a request starts before the first connection is free again.
    expect(connections - before).toBeLessThanOrEqual(2);
    await transport.close();
  });
});
