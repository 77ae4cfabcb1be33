// SPDX-License-Identifier: Apache-2.0
// When calls are served: only by the driver, and only after it knows every machine. The cache of another process may be
// outdated.
import { once } from 'node:events';
import { describe, expect, it } from 'vitest';
import { aRegion } from '../../src/fleet/testing/settings.ts';
import { RECONCILE_LEASE } from '../../src/model/lease.ts';
import type { Machine, MachineId } from '../../src/model/machine.ts';

import { advanceUntilSettled } from '../../src/ports/fakes/advance-until-settled.ts';
import type { RpcResponse } from './client.ts';
import { fakeNode, findGroup, increaseSize, listInstanceIds, targetSize } from './expectations.ts';
import { openSession } from './http2-peer.ts';
import { aPool, REGION, type ServerFixture, withServer } from './test-server.ts';

async function advanceSeconds({ clock }: ServerFixture, seconds: number): Promise<void> {
  for (let second = 0; second < seconds; second += 1) await clock.advance(1_000);
}

async function whileDriving(fixture: ServerFixture, test: () => Promise<void>): Promise<void> {
  const stop = new AbortController();
  const driving = fixture.fleet.runDriver({ signal: stop.signal });
  try {
    await advanceSeconds(fixture, 3);
    await test();
  } finally {
    stop.abort();
    await advanceUntilSettled(fixture.clock, driving);
  }
}

/** Another replica takes the lease; the returned function releases it. */
async function takeLease({ store }: ServerFixture): Promise<() => Promise<void>> {
  const held = await store.leases.read(RECONCILE_LEASE);
  await store.leases.release(held!);
  const lease = await store.leases.acquire({
    name: RECONCILE_LEASE,
    holder: 'other',
    durationMs: 3_600_000,
  });
  return () => store.leases.release(lease);
}

const FAR: Machine = {
  id: '00000000-0000-4000-8000-0000000000fa' as MachineId,
  pool: 'far',
  phase: 'ready',
  phaseSince: 0,
  requestedAt: 0,
  size: aPool().size,
  attempts: 0,
  placement: {
    region: 'other',
    host: 'pve1',
    vmId: 1_250,
    name: 'far-1',
    diskStorage: 'local-lvm',
    addresses: [],
  },
};

const CHANGES = [
  ['NodeGroupIncreaseSize', { id: 'workers', delta: 1 }],
  ['NodeGroupDecreaseTargetSize', { id: 'workers', delta: -1 }],
  ['NodeGroupDeleteNodes', { id: 'workers', nodes: [fakeNode('x')] }],
] as const;

describe('calls', () => {
  it(
    'are refused by a process that has never been the driver',
    withServer({ isReady: false }, async (fixture) => {
      await fixture.fleet.view.refresh();
      for (const [rpc, request] of [['NodeGroups', {}] as const, ...CHANGES])
        expect((await fixture.client.expectError(rpc, request)).code, rpc).toBe(14);
    }),
  );

  it(
    'are refused after the driver loses its lease, reads and writes',
    withServer({ isReady: false }, (fixture) =>
      whileDriving(fixture, async () => {
        const { client } = fixture;
        await increaseSize(client, 1);
        await advanceSeconds(fixture, 30);
        const [id = ''] = await listInstanceIds(client);
        const before = await fixture.store.intents.list();
        const release = await takeLease(fixture);
        await advanceSeconds(fixture, 6);
        for (const [rpc, request] of [['NodeGroups', {}] as const, ...CHANGES])
          expect((await client.expectError(rpc, request)).code, rpc).toBe(14);
        expect(await fixture.store.intents.list()).toEqual(before);
        await release();
        await advanceSeconds(fixture, 5);
        expect(await listInstanceIds(client)).toEqual([id]);
      }),
    ),
  );

  it('that change something are refused during shutdown', async () => {
    const end = new AbortController();
    await withServer({ serve: { signal: end.signal } }, async (fixture) => {
      await fixture.client.call('NodeGroups');
      end.abort();
      for (const [rpc, request] of CHANGES)
        expect((await fixture.client.expectError(rpc, request)).code, rpc).toBe(14);
      expect(await fixture.store.intents.list()).toEqual([]);
    })();
  });

  it('in progress finish during shutdown, and the client is told to connect elsewhere', async () => {
    const end = new AbortController();
    await withServer({ serve: { signal: end.signal } }, async ({ client, server, store }) => {
      const { promise: begun, resolve: markBegun } = Promise.withResolvers<void>();
      const { promise: released, resolve: release } = Promise.withResolvers<void>();
      const create = store.intents.create.bind(store.intents);
      store.intents.create = async (key, value, options) => {
        markBegun();
        await released;
        return create(key, value, options);
      };
      const session = openSession(`http://127.0.0.1:${server.port}`);
      const goaway = once(session, 'goaway');
      await once(session, 'connect');
      const increasing = increaseSize(client, 1);
      await begun;
      end.abort();
      expect((await goaway).at(0)).toBe(0);
      const refused = openSession(`http://127.0.0.1:${server.port}`);
      await expect(once(refused, 'connect')).rejects.toThrow('ECONNREFUSED');
      release();
      await increasing;
      expect(await store.intents.list()).toHaveLength(1);
    })();
  });

  it(
    'are refused until machines without a record are adopted',
    withServer({ isReady: false }, (fixture) =>
      whileDriving(fixture, async () => {
        const { client, store, hypervisor } = fixture;
        await increaseSize(client, 2);
        await advanceSeconds(fixture, 60);
        const release = await takeLease(fixture);
        await advanceSeconds(fixture, 6);
        for (const record of await store.machines.list()) await store.machines.remove(record);
        const { promise: requested, resolve: markRequested } = Promise.withResolvers<void>();
        const { promise: released, resolve: releaseConfig } = Promise.withResolvers<void>();
        const config = hypervisor.vmConfig.bind(hypervisor);
        hypervisor.vmConfig = async (...args) => {
          markRequested();
          await released;
          return config(...args);
        };
        await release();
        await advanceSeconds(fixture, 2);
        await requested;
        const early = await client.call('NodeGroups').then(
          () => 0,
          (error: { readonly code: number }) => error.code,
        );
        releaseConfig();
        expect(early).toBe(14);
        await advanceSeconds(fixture, 3);
        expect(await targetSize(client)).toBe(2);
      }),
    ),
  );

  it(
    'omit a group whose regions were not read, unless it has records',
    withServer(
      {
        pools: [aPool(), aPool({ name: 'far', regions: ['other'] })],
        fleet: { regions: { [REGION]: aRegion(), other: aRegion({ name: 'other' }) } },
      },
      async ({ client, store, fleet }) => {
        const groups = async () =>
          (await client.call('NodeGroups'))['nodeGroups'].map((group: RpcResponse) => group['id']);
        const node = { name: 'far-1', providerID: 'proxmox://other/1250' };
        expect(await groups()).toEqual(['workers']);
        expect(await findGroup(client, node)).toBe('');
        // An error, not an empty group: its machines may still exist.
        for (const rpc of ['NodeGroupTargetSize', 'NodeGroupNodes'])
          expect(await client.expectError(rpc, { id: 'far' })).toMatchObject({ code: 14 });
        await store.machines.create(FAR.id, FAR);
        await fleet.view.refresh();
        expect(await groups()).toEqual(['workers', 'far']);
        expect(await findGroup(client, node)).toBe('far');
        expect(await targetSize(client, 'far')).toBe(1);
        const [group] = (await client.call('NodeGroups'))['nodeGroups'].slice(1);
        expect(group).toMatchObject({ maxSize: 1 });
      },
    ),
  );
});
