// SPDX-License-Identifier: Apache-2.0
import { expect, it } from 'vitest';
import { Unreachable } from '../ports/errors.ts';
import { ScriptedTransport } from '../ports/fakes/scripted-transport.ts';
import type { RequestEnd } from '../ports/fence.ts';
import type { TransportRequest } from '../ports/transport.ts';
import { fencedTransport } from './fenced-transport.ts';

function request(method: TransportRequest['method'], path: string): TransportRequest {
  return { method, url: `https://pve1:8006/api2/json${path}`, headTimeoutMs: 1_000 };
}

it('lets nothing out that changes something once the right to act is gone', async () => {
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

function watchedBy(answer: ConstructorParameters<typeof ScriptedTransport>[0]) {
  const ends: (RequestEnd | 'under way')[] = [];
  const gate = {
    mayAct: () => true,
    beginRequest: () => {
      const place = ends.push('under way') - 1;
      return (end: RequestEnd) => {
        ends[place] = end;
      };
    },
  };
  return { ends, transport: fencedTransport(new ScriptedTransport(answer), gate) };
}

const refused = (requestSent?: boolean) => () => {
  const facts = requestSent === undefined ? {} : { requestSent };
  throw new Unreachable('PVE_UNREACHABLE', 'cut', { facts });
};

it.each([
  ['an answer', () => ({ status: 200 }), 'settled'],
  ['a refusal', () => ({ status: 500 }), 'settled'],
  ['a host that does not answer the one that was asked', () => ({ status: 596 }), 'unsure'],
  ['a request that never left', refused(false), 'settled'],
  ['a lost answer', refused(true), 'unsure'],
  ['trouble of which nobody says when', refused(), 'unsure'],
] as const)('keeps account of %s', async (_what, answer, end) => {
  const { ends, transport } = watchedBy(answer);
  const sent = transport.request(request('POST', '/nodes/pve1/qemu')).catch(() => undefined);
  expect(ends).toEqual(['under way']);
  await sent;
  expect(ends).toEqual([end]);
});

it('keeps no account of what changes nothing', async () => {
  const { ends, transport } = watchedBy(() => ({ status: 200 }));
  await transport.request(request('GET', '/cluster/resources'));
  await transport.request(request('POST', '/access/ticket'));
  expect(ends).toEqual([]);
});
