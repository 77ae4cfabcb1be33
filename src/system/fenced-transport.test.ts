// SPDX-License-Identifier: Apache-2.0
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it } from 'vitest';
import { Unreachable } from '../ports/errors.ts';
import { ScriptedTransport } from '../ports/fakes/scripted-transport.ts';
import type { TransportRequest } from '../ports/transport.ts';
import type { RequestOutcome } from '../ports/write-fence.ts';
import { fencedTransport } from './fenced-transport.ts';
import { createHttpTransport } from './http-transport.ts';

function request(method: TransportRequest['method'], path: string): TransportRequest {
  return { method, url: `https://pve1:8006/api2/json${path}`, timeoutMs: 1_000 };
}

it('refuses requests with side effects once this process is no longer the driver', async () => {
  let mayAct = true;
  const inner = new ScriptedTransport(() => ({ status: 200 }));
  const transport = fencedTransport(inner, {
    mayAct: () => mayAct,
    beginRequest: () => () => undefined,
  });
  await transport.request(request('POST', '/nodes/pve1/qemu'));
  mayAct = false;
  for (const method of ['POST', 'PUT', 'DELETE'] as const) {
    await expect(transport.request(request(method, '/nodes/pve1/qemu'))).rejects.toMatchObject({
      code: 'LEASE_LOST',
      facts: { requestSent: false },
    });
  }
  await transport.request(request('GET', '/cluster/resources'));
  await transport.request(request('POST', '/access/ticket'));
  await transport.request(request('POST', '/nodes/pve1/qemu/100/agent/ping'));
  expect(inner.requests.map(({ method }) => method)).toEqual(['POST', 'GET', 'POST', 'POST']);
});

it('sends nothing when this process ceases to be the driver while it connects', async () => {
  let mayAct = true;
  const received: string[] = [];
  const server = createServer((incoming, response) => {
    received.push(incoming.method ?? '');
    response.end();
  });
  server.on('connection', () => {
    mayAct = false;
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;
  const http = createHttpTransport();
  const outcomes: RequestOutcome[] = [];
  const transport = fencedTransport(http, {
    mayAct: () => mayAct,
    beginRequest: () => (end) => outcomes.push(end),
  });
  const post = { method: 'POST', url: `http://127.0.0.1:${port}/`, timeoutMs: 60_000 } as const;
  await expect(transport.request(post)).rejects.toMatchObject({
    code: 'LEASE_LOST',
    facts: { requestSent: false },
  });
  expect(outcomes).toEqual(['settled']);
  await transport.request({ ...post, method: 'GET' });
  expect(received).toEqual(['GET']);
  await transport.close();
  server.close();
});

function recordOutcomes(answer: ConstructorParameters<typeof ScriptedTransport>[0]) {
  const outcomes: (RequestOutcome | 'in progress')[] = [];
  const fence = {
    mayAct: () => true,
    beginRequest: () => {
      const index = outcomes.push('in progress') - 1;
      return (end: RequestOutcome) => {
        outcomes[index] = end;
      };
    },
  };
  return { outcomes, transport: fencedTransport(new ScriptedTransport(answer), fence) };
}

const refused = (requestSent?: boolean) => () => {
  const facts = requestSent === undefined ? {} : { requestSent };
  throw new Unreachable('PVE_UNREACHABLE', 'connection reset', { facts });
};

it.each([
  ['a success', () => ({ status: 200 }), 'settled'],
  ['an error response', () => ({ status: 500 }), 'settled'],
  ['an error from a forwarding Proxmox node', () => ({ status: 596 }), 'unknown'],
  ['a request that was never sent', refused(false), 'settled'],
  ['a lost response', refused(true), 'unknown'],
  ['an error without requestSent', refused(), 'unknown'],
] as const)('records the outcome of %s', async (_what, answer, end) => {
  const { outcomes, transport } = recordOutcomes(answer);
  const sent = transport.request(request('POST', '/nodes/pve1/qemu')).catch(() => undefined);
  expect(outcomes).toEqual(['in progress']);
  await sent;
  expect(outcomes).toEqual([end]);
});

it('does not track requests without side effects', async () => {
  const { outcomes, transport } = recordOutcomes(() => ({ status: 200 }));
  await transport.request(request('GET', '/cluster/resources'));
  await transport.request(request('POST', '/access/ticket'));
  expect(outcomes).toEqual([]);
});
