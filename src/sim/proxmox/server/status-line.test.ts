// SPDX-License-Identifier: Apache-2.0
// Status lines on the socket: the reason phrases of the simulator must arrive unchanged.
import { Buffer } from 'node:buffer';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SeededRandom } from '../../../ports/fakes/seeded-random.ts';
import { createProxmoxSim } from '../sim.ts';
import { TOKEN, testCluster } from '../testing/sim-harness.ts';
import { type ServedSim, serveProxmoxSim } from './serve.ts';

const INSTANT_CLOCK = {
  now: () => 1_800_000_000_000,
  monotonic: () => 1,
  sleep: () => Promise.resolve(),
};
const AUTHORIZED = `Authorization: ${TOKEN}`;
const FORM = 'Content-Type: application/x-www-form-urlencoded';

function makeSim() {
  const sim = createProxmoxSim({
    cluster: { ...testCluster(3), vms: [{ id: 100, host: 'pve1' }] },
    clock: INSTANT_CLOCK,
    random: new SeededRandom(1),
  });
  sim.externalChanges.hostDown('pve2');
  return sim;
}

/** Reads until the server closes the connection. */
function sendRaw(url: string, request: string): Promise<string> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    const socket = connect(Number(port), hostname, () => socket.write(request));
    socket.on('data', (chunk: Buffer) => chunks.push(chunk));
    socket.on('error', reject);
    socket.on('close', () => resolve(Buffer.concat(chunks).toString('latin1')));
  });
}

interface StatusLineCase {
  readonly line: string;
  readonly headers?: readonly string[];
  readonly body?: string;
  readonly expected: string;
}

const CASES: readonly StatusLineCase[] = [
  { line: 'GET /api2/json/version', expected: '200 OK' },
  { line: 'GET /api2/json/version', headers: ['Host: x'], expected: '401 No ticket' },
  {
    line: 'GET /api2/json/nodes/pve1/qemu/999/config',
    expected: "500 Configuration file 'nodes/pve1/qemu-server/999.conf' does not exist",
  },
  {
    line: 'POST /api2/json/nodes/pve1/qemu/100/status/reset',
    expected: '500 VM 100 not running',
  },
  {
    line: 'POST /api2/json/nodes/pve1/qemu',
    headers: [FORM],
    body: 'vmid=1',
    expected: '400 Parameter verification failed.',
  },
  { line: 'GET /api2/json/nodes/pve2/qemu', expected: '595 No route to host' },
  { line: 'GET /api2/json/none', expected: "501 Method 'GET /none' not implemented" },
  { line: 'GET /api2/json/n%C3%A4h', expected: "501 Method 'GET /n\u00c3\u00a4h' not implemented" },
  { line: 'HEAD /api2/json/version', expected: "501 method 'HEAD' not available" },
  { line: 'PATCH /api2/json/version', expected: "501 method 'PATCH' not available" },
  { line: 'TRACE /api2/json/version', expected: "501 method 'TRACE' not available" },
  {
    line: 'POST /api2/json/pools',
    headers: ['Transfer-Encoding: chunked'],
    body: '8\r\npoolid=x\r\n0\r\n\r\n',
    expected: '501 chunked transfer encoding not supported',
  },
  {
    line: 'DELETE /api2/json/nodes/pve1/qemu/100',
    headers: [FORM],
    body: 'purge=1',
    expected: "501 Unexpected content for method 'DELETE'",
  },
  {
    line: 'GET /api2/json/version',
    headers: [FORM],
    body: 'a=1',
    expected: "501 Unexpected content for method 'GET'",
  },
  {
    line: 'PUT /api2/json/nodes/pve1/qemu/100/config',
    headers: [FORM],
    body: `description=${'x'.repeat(600 * 1024)}`,
    expected: '501 for data too large',
  },
  { line: 'GET /elsewhere', expected: "501 no such file '/elsewhere'" },
  // Request targets that the Hono adapter cannot parse as a URL.
  { line: 'GET /api2/json/no\\such', expected: "501 Method 'GET /no\\such' not implemented" },
  { line: 'GET /api2/json/version', headers: ['Host: [', AUTHORIZED], expected: '200 OK' },
];

function formatRequest({ line, headers = [], body = '' }: StatusLineCase, version: string): string {
  const named = (name: string) => headers.some((header) => header.startsWith(name));
  const all = [
    ...(named('Host') ? [] : ['Host: pve1:8006', AUTHORIZED]),
    'Connection: close',
    ...headers,
    ...(body === '' || named('Transfer-Encoding') ? [] : [`Content-Length: ${body.length}`]),
  ];
  return `${line} HTTP/${version}\r\n${all.join('\r\n')}\r\n\r\n${body}`;
}

describe('the status line', () => {
  let served: ServedSim;
  beforeAll(async () => {
    served = await serveProxmoxSim(makeSim(), { listen: '127.0.0.1:0' });
  });
  afterAll(() => served.close());

  it.each(CASES)('$line returns $expected', async (one) => {
    const response = await sendRaw(served.url, formatRequest(one, '1.1'));
    expect(response.split('\r\n')[0]).toBe(`HTTP/1.1 ${one.expected}`);
    const [head = '', body = ''] = response.split('\r\n\r\n');
    expect(head).toMatch(/\r\ncontent-length: \d+(\r\n|$)/);
    expect(head).not.toMatch(/transfer-encoding/i);
    if (!one.line.startsWith('HEAD')) {
      expect(head).toContain(`\r\ncontent-length: ${body.length}`);
    }
    expect(head).toContain('\r\nserver: pve-api-daemon/3.0');
  });

  it('accepts an HTTP/1.0 request without a Host header', async () => {
    const request = `GET /api2/json/version HTTP/1.0\r\n${AUTHORIZED}\r\n\r\n`;
    expect((await sendRaw(served.url, request)).split('\r\n')[0]).toBe('HTTP/1.1 200 OK');
  });

  it('closes the connection on too many or too long headers', async () => {
    const one = (headers: readonly string[]): StatusLineCase => ({
      line: 'GET /api2/json/version',
      headers,
      expected: '',
    });
    const many = (count: number) => Array.from({ length: count }, (_, at) => `X-${at}: 1`);
    // Host, Authorization and Connection are added to each request.
    expect(await sendRaw(served.url, formatRequest(one(many(59)), '1.1'))).toMatch(
      /^HTTP\/1\.1 200 OK/,
    );
    expect(await sendRaw(served.url, formatRequest(one(many(60)), '1.1'))).toBe('');
    const long = (length: number) => [`X: ${'x'.repeat(length)}`];
    expect(await sendRaw(served.url, formatRequest(one(long(7_900)), '1.1'))).toMatch(
      /^HTTP\/1\.1 200 OK/,
    );
    expect(await sendRaw(served.url, formatRequest(one(long(8_200)), '1.1'))).toBe('');
  });

  it('sends the non-standard status 596 with its reason phrase', async () => {
    const sim = makeSim();
    sim.faults.add({ kind: 'error', status: 596, message: 'Connection timed out' });
    const slow = await serveProxmoxSim(sim, { listen: '127.0.0.1:0' });
    const response = await sendRaw(
      slow.url,
      formatRequest({ line: 'GET /api2/json/version', expected: '' }, '1.1'),
    );
    expect(response).toMatch(/^HTTP\/1\.1 596 Connection timed out\r\n/);
    expect(response).toContain('\r\nconnection: close\r\n');
    expect(response.endsWith('\r\n\r\n')).toBe(true);
    await slow.close();
  });
});
