// SPDX-License-Identifier: Apache-2.0
// Who may answer: only the process that drives, and only once it knows every machine. Another one's records are its
// own, and may be those of yesterday.
import { describe, expect, it } from 'vitest';
import { aRegion } from '../../src/fleet/testing/settings.ts';
import { RECONCILE_LEASE } from '../../src/model/lease.ts';
import type { Machine } from '../../src/model/machine.ts';
import type { MachineId } from '../../src/model/machine-id.ts';
import { advanceUntilSettled } from '../../src/ports/fakes/advance-until-settled.ts';
import type { Answer } from './client.ts';
import { fakeNode, groupOf, grow, ids, target } from './expectations.ts';
import { aPool, onStage, REGION, type Stage } from './stage.ts';

async function passes({ clock }: Stage, seconds: number): Promise<void> {
  for (let second = 0; second < seconds; second += 1) await clock.advance(1_000);
}

async function whileDriving(stage: Stage, test: () => Promise<void>): Promise<void> {
  const stop = new AbortController();
  const driving = stage.fleet.runDriver({ signal: stop.signal });
  try {
    await passes(stage, 3);
    await test();
  } finally {
    stop.abort();
    await advanceUntilSettled(stage.clock, driving);
  }
}

/** As when another replica has become the leader; gives the lease back on call. */
async function takeLease({ store }: Stage): Promise<() => Promise<void>> {
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

describe('answers', () => {
  it(
    'come from nobody who has never driven',
    onStage({ isReady: false }, async (stage) => {
      await stage.fleet.view.refresh();
      for (const [rpc, request] of [['NodeGroups', {}] as const, ...CHANGES])
        expect((await stage.client.failure(rpc, request)).code, rpc).toBe(14);
    }),
  );

  it(
    'end with the leadership, for what is read and for what is asked',
    onStage({ isReady: false }, (stage) =>
      whileDriving(stage, async () => {
        const { client } = stage;
        await grow(client, 1);
        await passes(stage, 30);
        const [id = ''] = await ids(client);
        const before = await stage.store.intents.list();
        const giveBack = await takeLease(stage);
        await passes(stage, 6);
        for (const [rpc, request] of [['NodeGroups', {}] as const, ...CHANGES])
          expect((await client.failure(rpc, request)).code, rpc).toBe(14);
        expect(await stage.store.intents.list()).toEqual(before);
        await giveBack();
        await passes(stage, 5);
        expect(await ids(client)).toEqual([id]);
      }),
    ),
  );

  it('end when the process is told to end: nobody might carry out what is asked', async () => {
    const end = new AbortController();
    await onStage({ serve: { signal: end.signal } }, async (stage) => {
      await stage.client.call('NodeGroups');
      end.abort();
      for (const [rpc, request] of CHANGES)
        expect((await stage.client.failure(rpc, request)).code, rpc).toBe(14);
      expect(await stage.store.intents.list()).toEqual([]);
    })();
  });

  it(
    'wait until machines without a record have one again',
    onStage({ isReady: false }, (stage) =>
      whileDriving(stage, async () => {
        const { client, store, hypervisor } = stage;
        await grow(client, 2);
        await passes(stage, 60);
        const giveBack = await takeLease(stage);
        await passes(stage, 6);
        for (const record of await store.machines.list()) await store.machines.remove(record);
        const { promise: asked, resolve: ask } = Promise.withResolvers<void>();
        const { promise: answered, resolve: answer } = Promise.withResolvers<void>();
        const config = hypervisor.vmConfig.bind(hypervisor);
        hypervisor.vmConfig = async (...about) => {
          ask();
          await answered;
          return config(...about);
        };
        await giveBack();
        await passes(stage, 2);
        await asked;
        const early = await client.call('NodeGroups').then(
          () => 0,
          (error: { readonly code: number }) => error.code,
        );
        answer();
        expect(early).toBe(14);
        await passes(stage, 3);
        expect(await target(client)).toBe(2);
      }),
    ),
  );

  it(
    'do not speak of a group whose regions were not read, unless the records do',
    onStage(
      {
        pools: [aPool(), aPool({ name: 'far', regions: ['other'] })],
        fleet: { regions: { [REGION]: aRegion(), other: aRegion({ name: 'other' }) } },
      },
      async ({ client, store, fleet }) => {
        const groups = async () =>
          (await client.call('NodeGroups'))['nodeGroups'].map((group: Answer) => group['id']);
        const node = { name: 'far-1', providerID: 'proxmox://other/1250' };
        expect(await groups()).toEqual(['workers']);
        expect(await groupOf(client, node)).toBe('');
        // Not as empty: whatever was made of it is still there.
        for (const rpc of ['NodeGroupTargetSize', 'NodeGroupNodes'])
          expect(await client.failure(rpc, { id: 'far' })).toMatchObject({ code: 14 });
        await store.machines.create(FAR.id, FAR);
        await fleet.view.refresh();
        expect(await groups()).toEqual(['workers', 'far']);
        expect(await groupOf(client, node)).toBe('far');
        expect(await target(client, 'far')).toBe(1);
        const [group] = (await client.call('NodeGroups'))['nodeGroups'].slice(1);
        expect(group).toMatchObject({ maxSize: 1 });
      },
    ),
  );
});
