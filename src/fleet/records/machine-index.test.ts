// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import type { MachineId } from '../../model/machine.ts';
import { MemoryStore } from '../../ports/fakes/memory-store.ts';
import { aMachine, aMachineId, anIntent } from '../../ports/fakes/sample-records.ts';
import { VirtualClock } from '../../ports/fakes/virtual-clock.ts';
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
