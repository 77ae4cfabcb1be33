// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import type { DeleteIntent } from '../../model/intent.ts';
import type { Machine, MachineId, Phase } from '../../model/machine.ts';
import { MemoryStore } from '../../ports/fakes/memory-store.ts';
import { aMachine, aMachineId, anIntent } from '../../ports/fakes/sample-records.ts';
import { VirtualClock } from '../../ports/fakes/virtual-clock.ts';
import { MachineIndex } from './machine-index.ts';
import { RecordCache } from './record-cache.ts';

function aStore(): MemoryStore {
  return new MemoryStore({ clock: new VirtualClock() });
}

describe('MachineIndex', () => {
  const placement = {
    region: 'lab',
    host: 'pve1',
    vmId: 1250,
    name: 'worker-1',
    diskStorage: 'x',
    addresses: [],
  };
  const put = async (
    cache: RecordCache,
    overrides: Parameters<typeof aMachine>[0] & { id: MachineId },
  ) => cache.machines.put(overrides.id, aMachine(overrides), {});

  it('finds another machine that has an address in another notation', async () => {
    const cache = new RecordCache(aStore());
    await cache.refresh();
    const addresses = ['10.10.10.11/24', '2001:DB8::00ff/64'];
    await put(cache, { id: aMachineId(1), phase: 'ready', placement: { ...placement, addresses } });
    for (const address of ['10.10.10.11', '2001:db8::ff', '2001:db8:0::ff/64'])
      expect(cache.index.otherHolder('lab', address, aMachineId(2))?.id).toBe(aMachineId(1));
    expect(cache.index.otherHolder('lab', '2001:db8::fe', undefined)).toBeUndefined();
    await cache.machines.remove(aMachineId(1), {});
    expect(cache.index.otherHolder('lab', '2001:db8::ff', undefined)).toBeUndefined();
  });

  it('finds a machine by VM, name and provider id, and prefers an active machine to one that is gone', async () => {
    const cache = new RecordCache(aStore());
    await cache.refresh();
    await put(cache, { id: aMachineId(1), phase: 'gone', placement, requestedAt: 1 });
    await put(cache, {
      id: aMachineId(2),
      phase: 'ready',
      placement,
      nodeName: 'node-x',
      providerId: 'k3s://node-x',
      requestedAt: 0,
    });
    const { index } = cache;
    expect(index.byVm('lab', 1250)?.id).toBe(aMachineId(2));
    expect(index.byVm('lab', 1251)).toBeUndefined();
    expect(index.byName('worker-1')?.id).toBe(aMachineId(2));
    expect(index.byName('node-x')?.id).toBe(aMachineId(2));
    expect(index.byProviderId('k3s://node-x')?.id).toBe(aMachineId(2));
    await cache.machines.remove(aMachineId(2), {});
    expect(index.byVm('lab', 1250)?.id).toBe(aMachineId(1));
    expect(index.byProviderId('k3s://node-x')).toBeUndefined();
  });

  it('counts requested machines as members of their pool, and excludes those whose deletion is requested', async () => {
    const cache = new RecordCache(aStore());
    await cache.refresh();
    const { index } = cache;
    const before = index.version('a');
    const create = anIntent({ id: 'c', pool: 'a', machines: [aMachineId(1), aMachineId(2)] });
    await cache.intents.put('c', create, {});
    expect(index.membersOf('a')).toHaveLength(2);
    expect(index.requested(aMachineId(1))?.id).toBe('c');
    const { size: _, ...common } = anIntent({ id: 'd', pool: 'a', machines: [aMachineId(1)] });
    await cache.intents.put('d', { ...common, kind: 'cancel' }, {});
    expect(index.membersOf('a').map(({ id }) => id)).toEqual([aMachineId(2)]);
    expect(index.isDeletionRequested(aMachineId(1))).toBe(true);
    await cache.intents.put('d', { ...common, kind: 'cancel', state: 'done' }, {});
    await cache.intents.put('c', { ...create, state: 'done' }, {});
    expect(index.membersOf('a')).toEqual([]);
    expect(index.isDeletionRequested(aMachineId(1))).toBe(false);
    expect(index.version('a')).toBeGreaterThan(before);
  });
});

describe('MachineIndex: who has a VM id or a name', () => {
  const MINUTE_MS = 60_000;
  const at = (vmId: number, region = 'lab', name = `worker-${vmId}`) => ({
    region,
    host: 'pve1',
    vmId,
    name,
    diskStorage: 'x',
    addresses: [],
  });

  function anIndex(...machines: readonly Machine[]) {
    const index = new MachineIndex((id) => machines.find((machine) => machine.id === id));
    for (const machine of machines) index.machineChanged(undefined, machine);
    return index;
  }

  it.each<[Phase, boolean]>([
    ['requested', false],
    ['placed', true],
    ['creating', true],
    ['ready', true],
    ['deleting', true],
    ['gone', false],
    ['failed', false],
  ])('a machine that is %s claims its VM: %s', (phase, isClaimed) => {
    const index = anIndex(aMachine({ phase, placement: at(1_250) }));
    expect(index.isVmClaimed('lab', 1_250)).toBe(isClaimed);
    expect(index.isVmClaimed('edge', 1_250)).toBe(false);
    expect(index.isVmClaimed('lab', 1_251)).toBe(false);
  });

  it('holds the VM id of a deleted machine for the cool-down, and of any other without end', () => {
    const now = 100 * MINUTE_MS;
    const gone = { phase: 'gone', placement: at(1_250) } as const;
    const young = anIndex(aMachine({ ...gone, phaseSince: now - 29 * MINUTE_MS }));
    expect(young.isVmIdHeld('lab', 1_250, now)).toBe(true);
    expect(young.isVmIdHeld('edge', 1_250, now)).toBe(false);
    const old = anIndex(aMachine({ ...gone, phaseSince: now - 31 * MINUTE_MS }));
    expect(old.isVmIdHeld('lab', 1_250, now)).toBe(false);
    const live = anIndex(aMachine({ phase: 'ready', placement: at(1_250), phaseSince: 0 }));
    expect(live.isVmIdHeld('lab', 1_250, now)).toBe(true);
  });

  it('holds the names of VMs and Nodes, in any case, except of machines that are over', () => {
    const node = { nodeName: 'Node-X' };
    const index = anIndex(
      aMachine({ id: aMachineId(1), phase: 'ready', placement: at(1_250), ...node }),
      aMachine({ id: aMachineId(2), phase: 'gone', placement: at(1_251) }),
      aMachine({ id: aMachineId(3), phase: 'failed', placement: at(1_252) }),
    );
    expect(index.isNameHeld('WORKER-1250', aMachineId(9))).toBe(true);
    expect(index.isNameHeld('node-x', aMachineId(9))).toBe(true);
    expect(index.isNameHeld('worker-1250', aMachineId(1))).toBe(false);
    expect(index.isNameHeld('worker-1251', aMachineId(9))).toBe(false);
    expect(index.isNameHeld('worker-1252', aMachineId(9))).toBe(false);
  });

  it('finds the machine that was requested last when none of those with a VM id exists', () => {
    const gone = { phase: 'gone', placement: at(1_250) } as const;
    const index = anIndex(
      aMachine({ ...gone, id: aMachineId(1), requestedAt: 5 }),
      aMachine({ ...gone, id: aMachineId(2), requestedAt: 9 }),
      aMachine({ ...gone, id: aMachineId(3), requestedAt: 7 }),
    );
    expect(index.byVm('lab', 1_250)?.id).toBe(aMachineId(2));
  });

  it('finds machines by the uid of their Node, by phase and by pool', () => {
    const [one, two, three] = [1, 2, 3].map((n) =>
      aMachine({
        id: aMachineId(n),
        phase: n === 3 ? 'ready' : 'booting',
        pool: n === 1 ? 'a' : 'b',
        nodeUid: `uid-${n}`,
      }),
    ) as [Machine, Machine, Machine];
    const index = anIndex(one, two, three);
    expect(index.byNodeUid('uid-2')).toEqual([two]);
    expect(index.byNodeUid('uid-9')).toEqual([]);
    expect(index.inPhase('booting')).toEqual([one, two]);
    expect(index.inPhase('ready', 'booting')).toEqual([three, one, two]);
    expect(index.machinesOf('b')).toEqual([two, three]);
    index.machineChanged(two, undefined);
    expect(index.byNodeUid('uid-2')).toEqual([]);
    expect(index.machinesOf('b')).toEqual([three]);
  });

  it('returns the same lists and version until something of the pool changes', () => {
    const machine = aMachine({ pool: 'a', phase: 'ready' });
    const index = anIndex(machine, aMachine({ id: aMachineId(2), pool: 'b', phase: 'ready' }));
    const before = { members: index.membersOf('a'), version: index.version('a') };
    expect(before.members).toHaveLength(1);
    index.machineChanged(undefined, aMachine({ id: aMachineId(3), pool: 'b' }));
    expect(index.membersOf('a')).toBe(before.members);
    expect(index.machinesOf('a')).toBe(index.machinesOf('a'));
    expect(index.version('a')).toBe(before.version);
    index.machineChanged(machine, { ...machine, phase: 'deleting' });
    expect(index.version('a')).toBeGreaterThan(before.version);
    expect(index.membersOf('a')).toEqual([]);
    expect(index.version('unknown')).toBe(0);
  });
});

describe('MachineIndex: open intents', () => {
  const id = aMachineId(1);
  const { size: _, ...common } = anIntent({ pool: 'a', machines: [id] });

  it('a deletion that two intents request is requested until both are done', () => {
    const index = new MachineIndex(() => undefined);
    const [first, second] = ['d1', 'd2'].map((name) => ({
      ...common,
      id: name,
      kind: 'delete' as const,
    })) as [DeleteIntent, DeleteIntent];
    index.intentChanged(undefined, first);
    index.intentChanged(undefined, second);
    expect(index.openIntentsOf('a')).toEqual([first, second]);
    index.intentChanged(first, { ...first, state: 'done' });
    expect(index.isDeletionRequested(id)).toBe(true);
    expect(index.hasOpenIntents).toBe(true);
    index.intentChanged(second, undefined);
    expect(index.isDeletionRequested(id)).toBe(false);
    expect(index.hasOpenIntents).toBe(false);
    expect(index.openIntentsOf('a')).toEqual([]);
  });

  it('a machine with a record is not merely requested', () => {
    const machine = aMachine({ id, pool: 'a' });
    const index = new MachineIndex((one) => (one === id ? machine : undefined));
    index.machineChanged(undefined, machine);
    index.intentChanged(undefined, anIntent({ pool: 'a', machines: [id, aMachineId(2)] }));
    expect(index.requested(id)).toBeUndefined();
    expect(index.requested(aMachineId(2))?.kind).toBe('create');
    expect(index.membersOf('a').map((member) => member.id)).toEqual([aMachineId(2), id]);
  });

  it('a deletion under the name of another pool changes the members of the pool of the machine', () => {
    const machine = aMachine({ id, pool: 'b', phase: 'ready' });
    const index = new MachineIndex(() => machine);
    index.machineChanged(undefined, machine);
    expect(index.membersOf('b')).toHaveLength(1);
    index.intentChanged(undefined, { ...common, kind: 'delete' });
    expect(index.membersOf('b')).toEqual([]);
  });

  it('a decision about a VM creates and deletes no machine', () => {
    const index = new MachineIndex(() => undefined);
    const decision = { region: 'lab', host: 'pve1', vmId: 5, digest: 'x' };
    index.intentChanged(undefined, { ...common, ...decision, kind: 'forget' });
    expect(index.hasOpenIntents).toBe(true);
    expect(index.isDeletionRequested(id)).toBe(false);
  });
});
