// SPDX-License-Identifier: Apache-2.0
import { execFileSync } from 'node:child_process';
import { createHash, X509Certificate } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  type PeerAnswer,
  type PeerRequest,
  textOf,
  transportContract,
} from '../ports/contract/transport.contract.ts';
import { createHttpTransport } from './http-transport.ts';
import { systemClock } from './index.ts';

type Peer = (request: PeerRequest) => PeerAnswer;

async function bodyOf(request: IncomingMessage): Promise<string> {
  let text = '';
  for await (const part of request.setEncoding('utf8')) text += String(part);
  return text;
}

async function answer(peer: Peer, request: IncomingMessage, response: ServerResponse) {
  const headers = Object.fromEntries(
    Object.entries(request.headers).map(([name, value]) => [name, String(value)]),
  );
  const body = await bodyOf(request);
  const reply = peer({ method: request.method ?? '', path: request.url ?? '', headers, body });
  if (reply === 'silence') return;
  if (reply === 'reset') {
    request.socket.destroy();
    return;
  }
  response.writeHead(reply.status, reply.reason ?? '', reply.headers);
  response.flushHeaders();
  for (const part of reply.parts ?? []) {
    response.write(part);
    await systemClock.sleep(1);
  }
  if (reply.unfinished !== true) response.end();
}

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

transportContract('http', () => {
  const servers: Server[] = [];
  const transport = createHttpTransport();
  const serve = async (peer: Peer) => {
    const server = createServer((request, response) => void answer(peer, request, response));
    servers.push(server);
    return `http://127.0.0.1:${await listen(server)}`;
  };
  return Promise.resolve({
    transport,
    serve,
    nobody: async () => {
      const server = createServer();
      const port = await listen(server);
      await stop(server);
      return `http://127.0.0.1:${port}`;
    },
    pass: (ms: number) => systemClock.sleep(ms),
    cleanup: async () => {
      await transport.close();
      await Promise.all(servers.map(stop));
    },
  });
});

describe('TLS', () => {
  const folder = mkdtempSync(join(tmpdir(), 'pvescaler-tls-'));
  const read = (name: string) => readFileSync(join(folder, name), 'utf8');
  let server: Server;
  let base = '';
  let fingerprint = '';
  let connections = 0;

  beforeAll(async () => {
    const openssl = (...args: string[]) =>
      execFileSync('openssl', args, { cwd: folder, stdio: 'ignore' });
    const subject = '-subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1';
    const key = '-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout key.pem';
    openssl(...`req -x509 ${key} -out cert.pem -days 2 ${subject}`.split(' '));
    const certificate = new X509Certificate(read('cert.pem'));
    fingerprint = createHash('sha256').update(certificate.raw).digest('hex');
    server = createTlsServer(
      { key: read('key.pem'), cert: read('cert.pem') },
      (request, response) => {
        response.writeHead(200, 'fine', { 'x-alpn': request.httpVersion });
        response.end('ok');
      },
    );
    server.on('secureConnection', () => {
      connections += 1;
    });
    base = `https://127.0.0.1:${await listen(server)}`;
  });
  afterAll(async () => {
    await stop(server);
    rmSync(folder, { recursive: true });
  });

  async function ask(transport: ReturnType<typeof createHttpTransport>) {
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
    await expect(ask(createHttpTransport())).rejects.toMatchObject(refused);
  });

  it('accepts it by its authority, by one of several fingerprints, or unchecked when told to', async () => {
    const colons = (fingerprint.toUpperCase().match(/../g) ?? []).join(':');
    const ways = [
      { kind: 'verify', caPem: read('cert.pem') },
      { kind: 'fingerprints', sha256: ['00'.repeat(32), colons] },
      { kind: 'fingerprints', sha256: [fingerprint] },
      { kind: 'insecure' },
    ] as const;
    for (const tls of ways) expect(await ask(createHttpTransport({ tls }))).toBe('200 fine ok');
  });

  it('refuses any other fingerprint, names the one seen, and shows no token', async () => {
    const transport = createHttpTransport({
      tls: { kind: 'fingerprints', sha256: ['ab'.repeat(32)] },
    });
    const error: Error & Record<string, unknown> = await ask(transport).then(
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
    const transport = createHttpTransport({ tls: { kind: 'insecure' } });
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

describe('the peer', () => {
  it('is named by the code', async () => {
    const transport = createHttpTransport({ unreachable: 'KUBERNETES_UNREACHABLE' });
    const url = 'https://no-such-host.invalid:6443/';
    await expect(
      transport.request({ method: 'GET', url, headTimeoutMs: 5_000 }),
    ).rejects.toMatchObject({ code: 'KUBERNETES_UNREACHABLE' });
    await transport.close();
  });
});

describe('names', () => {
  it('is Unreachable for a name that does not exist', async () => {
    const transport = createHttpTransport();
    await expect(
      transport.request({
        method: 'POST',
        url: 'https://no-such-host.invalid:8006/',
        body: 'x',
        headTimeoutMs: 5_000,
      }),
    ).rejects.toMatchObject({ class: 'Unreachable', facts: { requestSent: false } });
    await transport.close();
  });
});
