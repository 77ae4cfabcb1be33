// SPDX-License-Identifier: Apache-2.0
import { expect, it } from 'vitest';
import { ScriptedTransport } from '../ports/fakes/scripted-transport.ts';
import type { TransportRequest } from '../ports/transport.ts';
import { fencedTransport } from './fenced-transport.ts';

function request(method: TransportRequest['method'], path: string): TransportRequest {
  return { method, url: `https://pve1:8006/api2/json${path}`, headTimeoutMs: 1_000 };
}

it('lets nothing out that changes something once the right to act is gone', async () => {
  let mayAct = true;
  const inner = new ScriptedTransport(() => ({ status: 200 }));
  const transport = fencedTransport(inner, { mayAct: () => mayAct });
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
  expect(inner.requests.map(({ method }) => method)).toEqual(['POST', 'GET', 'POST']);
});
