// SPDX-License-Identifier: Apache-2.0
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { MachineId } from '../../model/machine-id.ts';
import { MemoryStore } from '../../ports/fakes/memory-store.ts';
import { aMachine, aMachineId, anIntent, aPoolState } from '../../ports/fakes/sample-records.ts';
import { VirtualClock } from '../../ports/fakes/virtual-clock.ts';
import type { Store } from '../../ports/store.ts';
import { Mirror } from './mirror.ts';

function aStore(): MemoryStore {
  return new MemoryStore({ clock: new VirtualClock() });
}

const byId = (a: { readonly id: string }, b: { readonly id: string }) => (a.id < b.id ? -1 : 1);

async function expectInStep(mirror: Mirror, store: Store): Promise<void> {
  const machines = (await store.machines.list()).map(({ value }) => value);
  expect([...mirror.machines.all()].sort(byId)).toEqual(machines);
  const intents = (await store.intents.list()).map(({ value }) => value);
  expect([...mirror.intents.all()].sort(byId)).toEqual(intents);
}

describe('what this process writes', () => {
  it('is there as soon as it is durable, without following', async () => {
    const store = aStore();
    const mirror = new Mirror(store);
    await mirror.follow();
    await mirror.machines.put(aMachineId(1), aMachine({ id: aMachineId(1), pool: 'a' }), {});
    expect(mirror.roster.machinesOf('a').map(({ id }) => id)).toEqual([aMachineId(1)]);
    await mirror.machines.put(aMachineId(1), aMachine({ id: aMachineId(1), pool: 'b' }), {});
    expect(mirror.roster.machinesOf('a')).toEqual([]);
    await mirror.machines.remove(aMachineId(1), {});
    expect(mirror.machines.all()).toEqual([]);
    expect(mirror.roster.machinesOf('b')).toEqual([]);
  });

  it('is not there when the write was refused', async () => {
    const store = aStore();
    const mirror = new Mirror(store);
    await mirror.follow();
    const signal = AbortSignal.abort();
    const refused = mirror.machines.put(aMachineId(1), aMachine({ id: aMachineId(1) }), { signal });
    await expect(refused).rejects.toMatchObject({ code: 'CANCELLED' });
    expect(mirror.machines.all()).toEqual([]);
  });
});

describe('what others write', () => {
  it('is there after following, also when it was read half way', async () => {
    const store = aStore();
    const other = store.reopen();
    const mirror = new Mirror(store);
    expect(mirror.isRead).toBe(false);
    await mirror.follow();
    expect(mirror.isRead).toBe(true);
    const seen = await other.pools.create('p', aPoolState({ pool: 'p' }));
    const early = mirror.follow();
    await other.pools.replace(seen, aPoolState({ pool: 'p', allocatable: {} }));
    const later = await other.machines.create('m', aMachine({ id: aMachineId(7) }));
    await Promise.all([early, mirror.follow()]);
    expect(mirror.machines.all()).toEqual([later.value]);
  });

  it('is read as a whole when too much has happened since', async () => {
    const store = aStore();
    const other = store.reopen();
    const mirror = new Mirror(store);
    const gone = await other.pools.create('gone', aPoolState({ pool: 'gone' }));
    await mirror.follow();
    await other.pools.remove(gone);
    let seen = await other.pools.create('p', aPoolState({ pool: 'p' }));
    for (let n = 0; n < 500; n += 1) seen = await other.pools.replace(seen, aPoolState());
    expect(await store.changes(1)).toBeUndefined();
    await mirror.follow();
    expect(mirror.pools.get('gone')).toBeUndefined();
    expect(mirror.pools.get('p')).toEqual(seen.value);
  });

  it('does not bring back what we removed while it was being read', async () => {
    const store = aStore();
    const other = store.reopen();
    const mirror = new Mirror(store);
    await mirror.follow();
    await mirror.machines.put(aMachineId(1), aMachine({ id: aMachineId(1) }), {});
    await other.pools.create('p', aPoolState());
    const following = mirror.follow();
    await mirror.machines.remove(aMachineId(1), {});
    await following;
    expect(mirror.machines.all()).toEqual([]);
  });
});

interface Step {
  readonly what: 'machine' | 'intent' | 'remove';
  readonly number: number;
  readonly pool: string;
}

const step = fc.record({
  who: fc.constantFrom('us' as const, 'them' as const),
  what: fc.constantFrom('machine' as const, 'intent' as const, 'remove' as const),
  number: fc.integer({ min: 1, max: 4 }),
  pool: fc.constantFrom('a', 'b'),
  awaited: fc.boolean(),
});

describe('any order of writes', () => {
  it('ends in the picture the store has', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
        const store = aStore();
        const [ours, theirs] = [new Mirror(store), new Mirror(store.reopen())];
        await Promise.all([ours.follow(), theirs.follow()]);
        const running: Promise<unknown>[] = [];
        for (const { who, awaited, ...rest } of steps) {
          const mirror = who === 'us' ? ours : theirs;
          const call = mirror
            .follow()
            .then(() => act(mirror, rest))
            .catch(() => undefined);
          running.push(call);
          if (awaited) await call;
        }
        await Promise.all(running);
        await Promise.all([ours.follow(), theirs.follow()]);
        await expectInStep(ours, store);
        await expectInStep(theirs, store);
        expectRosterInStep(ours);
      }),
      { numRuns: 100 },
    );
  });
});

function act(mirror: Mirror, { what, number, pool }: Step) {
  const id = aMachineId(number);
  switch (what) {
    case 'machine':
      return mirror.machines.put(id, aMachine({ id, pool }), {});
    case 'intent':
      return mirror.intents.put(`i${number}`, anIntent({ id: `i${number}`, pool }), {});
    default:
      return mirror.machines.remove(id, {});
  }
}

function expectRosterInStep({ roster, machines }: Mirror): void {
  const inPools = [...roster.machinesOf('a'), ...roster.machinesOf('b')];
  expect(inPools.toSorted(byId)).toEqual([...machines.all()].sort(byId));
}

describe('the roster', () => {
  const placement = {
    region: 'lab',
    host: 'pve1',
    vmId: 1250,
    name: 'worker-1',
    diskStorage: 'x',
    addresses: [],
  };
  const put = async (
    mirror: Mirror,
    overrides: Parameters<typeof aMachine>[0] & { id: MachineId },
  ) => mirror.machines.put(overrides.id, aMachine(overrides), {});

  it('finds a machine by VM, name and provider id; a living one before one that is over', async () => {
    const mirror = new Mirror(aStore());
    await mirror.follow();
    await put(mirror, { id: aMachineId(1), phase: 'gone', placement, requestedAt: 1 });
    await put(mirror, {
      id: aMachineId(2),
      phase: 'ready',
      placement,
      nodeName: 'node-x',
      providerId: 'k3s://node-x',
      requestedAt: 0,
    });
    const { roster } = mirror;
    expect(roster.atVm('lab', 1250)?.id).toBe(aMachineId(2));
    expect(roster.atVm('lab', 1251)).toBeUndefined();
    expect(roster.named('worker-1')?.id).toBe(aMachineId(2));
    expect(roster.named('node-x')?.id).toBe(aMachineId(2));
    expect(roster.withProviderId('k3s://node-x')?.id).toBe(aMachineId(2));
    await mirror.machines.remove(aMachineId(2), {});
    expect(roster.atVm('lab', 1250)?.id).toBe(aMachineId(1));
    expect(roster.withProviderId('k3s://node-x')).toBeUndefined();
  });

  it('counts who is coming and who is leaving', async () => {
    const mirror = new Mirror(aStore());
    await mirror.follow();
    const { roster } = mirror;
    const before = roster.version('a');
    const create = anIntent({ id: 'c', pool: 'a', machines: [aMachineId(1), aMachineId(2)] });
    await mirror.intents.put('c', create, {});
    expect(roster.membersOf('a')).toHaveLength(2);
    expect(roster.coming(aMachineId(1))?.id).toBe('c');
    const { size: _, ...common } = anIntent({ id: 'd', pool: 'a', machines: [aMachineId(1)] });
    await mirror.intents.put('d', { ...common, kind: 'cancel' }, {});
    expect(roster.membersOf('a').map(({ id }) => id)).toEqual([aMachineId(2)]);
    expect(roster.isLeaving(aMachineId(1))).toBe(true);
    await mirror.intents.put('d', { ...common, kind: 'cancel', state: 'done' }, {});
    await mirror.intents.put('c', { ...create, state: 'done' }, {});
    expect(roster.membersOf('a')).toEqual([]);
    expect(roster.isLeaving(aMachineId(1))).toBe(false);
    expect(roster.version('a')).toBeGreaterThan(before);
  });
});
