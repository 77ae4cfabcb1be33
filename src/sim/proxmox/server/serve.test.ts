// SPDX-License-Identifier: Apache-2.0
import { createServer, request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest, type RequestOptions } from 'node:https';
import type { AddressInfo } from 'node:net';
import { describe, expect, it } from 'vitest';
import { SeededRandom } from '../../../ports/fakes/seeded-random.ts';
import { createProxmoxSim, type SimOptions } from '../sim.ts';
import { TOKEN, testCluster } from '../testing/sim-harness.ts';
import { makeCertificate } from './certificate.ts';
import { networkUrlSource, serveProxmoxSim } from './serve.ts';

/** Real sockets cannot use virtual time, so every simulated wait ends at once. */
const INSTANT_CLOCK = {
  now: () => 1_800_000_000_000,
  monotonic: () => 1,
  sleep: () => Promise.resolve(),
};

function makeSim(options: Partial<SimOptions> = {}) {
  return createProxmoxSim({
    cluster: testCluster(2),
    clock: INSTANT_CLOCK,
    random: new SeededRandom(1),
    ...options,
  });
}

interface HttpResponse {
  readonly status: number | undefined;
  readonly reason: string | undefined;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

function sendRequest(url: string, options: RequestOptions = {}, body = ''): Promise<HttpResponse> {
  const request = url.startsWith('https') ? httpsRequest : httpRequest;
  return new Promise((resolve, reject) => {
    const sent = request(
      url,
      { headers: { authorization: TOKEN }, rejectUnauthorized: false, ...options },
      (message) => {
        let text = '';
        message.setEncoding('utf8');
        message.on('data', (chunk: string) => {
          text += chunk;
        });
        message.on('end', () =>
          resolve({
            status: message.statusCode,
            reason: message.statusMessage,
            headers: message.headers,
            body: text,
          }),
        );
      },
    );
    sent.on('error', reject);
    sent.end(body);
  });
}

describe('the simulator on a socket', () => {
  it('sends reason phrases, closes the connection after errors and refuses chunked bodies', async () => {
    const served = await serveProxmoxSim(makeSim(), { listen: '127.0.0.1:0' });
    const good = await sendRequest(`${served.url}/api2/json/version`);
    expect([good.status, good.reason, good.headers['content-type']]).toEqual([
      200,
      'OK',
      'application/json;charset=UTF-8',
    ]);
    const bad = await sendRequest(`${served.url}/api2/json/nodes/pve1/qemu/999/config`);
    expect([bad.status, bad.reason, bad.headers.connection]).toEqual([
      500,
      "Configuration file 'nodes/pve1/qemu-server/999.conf' does not exist",
      'close',
    ]);
    const headers = { authorization: TOKEN, 'transfer-encoding': 'chunked' };
    const chunked = await sendRequest(
      `${served.url}/api2/json/pools`,
      { method: 'POST', headers },
      'poolid=x',
    );
    expect([chunked.status, chunked.reason]).toEqual([
      501,
      'chunked transfer encoding not supported',
    ]);
    const head = await sendRequest(`${served.url}/api2/json/version`, { method: 'HEAD' });
    expect([head.status, head.reason]).toEqual([501, "method 'HEAD' not available"]);
    const post = {
      method: 'POST',
      headers: { authorization: TOKEN, 'content-type': 'application/x-www-form-urlencoded' },
    };
    expect((await sendRequest(`${served.url}/api2/json/pools`, post, 'poolid=x')).status).toBe(200);
    await served.close();
  });

  it('serves TLS with a generated certificate and redirects plain HTTP to https', async () => {
    const served = await serveProxmoxSim(makeSim(), { listen: '127.0.0.1:0', tls: true });
    expect(served.fingerprint).toMatch(/^(?:[0-9A-F]{2}:){31}[0-9A-F]{2}$/);
    expect((await sendRequest(`${served.url}/api2/json/version`)).status).toBe(200);
    const plain = served.url.replace('https', 'http');
    const get = await sendRequest(`${plain}/api2/json/version`);
    expect([get.status, get.headers.location]).toEqual([301, `${served.url}/api2/json/version`]);
    expect((await sendRequest(`${plain}/api2/json/version`, { method: 'POST' })).status).toBe(308);
    await served.close();
  });

  it('resets the connection for an injected fault and for an offline host', async () => {
    const sim = makeSim();
    const served = await serveProxmoxSim(sim, { listen: '127.0.0.1:0', host: 'pve2' });
    sim.faults.add({ kind: 'response-lost' });
    await expect(sendRequest(`${served.url}/api2/json/version`)).rejects.toThrow(
      /hang up|ECONNRESET/,
    );
    sim.externalChanges.hostDown('pve2');
    await expect(sendRequest(`${served.url}/api2/json/version`)).rejects.toThrow(
      /hang up|ECONNRESET/,
    );
    await served.close();
  });

  it('networkUrlSource downloads from a fixture server', async () => {
    const fixture = createServer((_, response) => response.end('image'));
    await new Promise<void>((resolve) => {
      fixture.listen(0, '127.0.0.1', resolve);
    });
    const { port } = fixture.address() as AddressInfo;
    const found = await networkUrlSource()(`http://127.0.0.1:${port}/x.img`);
    expect(found).toMatchObject({ status: 200, size: 5 });
    fixture.close();
    expect(await networkUrlSource()('http://127.0.0.1:1/x')).toBeUndefined();
  });

  it('makeCertificate accepts host names and addresses', () => {
    const { cert, key } = makeCertificate(['pve1.lab', '192.0.2.1']);
    expect(cert).toContain('BEGIN CERTIFICATE');
    expect(key).toContain('PRIVATE KEY');
  });
});
