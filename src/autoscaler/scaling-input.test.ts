// SPDX-License-Identifier: Apache-2.0
import { expect, it } from 'vitest';
import { createFleet, type FleetCapacity } from '../fleet/index.ts';
import { someSettings } from '../fleet/testing/settings.ts';
import type { Machine, MachineId } from '../model/machine.ts';
import { MemoryStore } from '../ports/fakes/memory-store.ts';
import { aClusterNode } from '../ports/fakes/sample-cluster.ts';
import { SeededRandom } from '../ports/fakes/seeded-random.ts';
import { VirtualClock } from '../ports/fakes/virtual-clock.ts';
import { EMPTY_MEMORY } from '../scaling/index.ts';
import { Snapshot } from '../scheduling/index.ts';
import { scalingInput } from './scaling-input.ts';
import { aWorkerPool, SETTINGS } from './testing/test-site.ts';

const GIB = 2 ** 30;
const LEFT = { cpus: 10, memoryBytes: 40 * GIB, diskBytes: 200 * GIB };

function idOf(number: number): MachineId {
  return `00000000-0000-4000-8000-00000000000${number}` as MachineId;
}

function aMachine(number: number, over: Partial<Machine> = {}): Machine {
  return {
    id: idOf(number),
    pool: 'workers',
    phase: 'requested',
    phaseSince: 0,
    requestedAt: 0,
    size: aWorkerPool().size,
    attempts: 0,
    ...over,
  };
}

/** The input of a fleet with these machines on host pve1. */
async function inputOf(
  machines: readonly Machine[],
  {
    staleReason = () => undefined,
    ...over
  }: Partial<Pick<FleetCapacity, 'counted' | 'unplaced'>> & {
    readonly staleReason?: (region: string) => string | undefined;
  } = {},
) {
  const clock = new VirtualClock();
  const store = new MemoryStore({ clock });
  for (const machine of machines) await store.machines.create(machine.id, machine);
  const pool = aWorkerPool({ name: 'workers', memoryOverheadBytes: GIB });
  const fleet = createFleet({
    store,
    clock,
    random: new SeededRandom(1),
    settings: someSettings([pool]),
    hypervisors: new Map(),
  });
  await fleet.view.refresh();
  const hosts = [{ host: 'pve1', ...LEFT }];
  const identities = { machines: 5, reason: 'no VM id is free' };
  return scalingInput({
    observed: {
      snapshot: Snapshot.of({ nodes: [] }),
      pending: [],
      disruptionBudgets: [],
      nodes: new Map([['worker-1', aClusterNode()]]),
      revision: 1,
    },
    pools: [pool],
    view: fleet.view,
    capacity: {
      computedAt: 0,
      counted: new Set(),
      unplaced: new Map(),
      regions: [{ region: 'lab', takenAt: 0, pools: [{ pool: 'workers', hosts, identities }] }],
      ...over,
    },
    staleReason,
    settings: SETTINGS,
    memory: EMPTY_MEMORY,
    now: clock.now(),
    seed: 1,
  });
}

it('what hosts and identities have left is less by machines that were requested since it was computed', async () => {
  const refusal = { code: 'NO_HOST_FITS' as const, message: 'host pve1 is full' };
  const { hosts, pools, machines } = await inputOf([aMachine(1), aMachine(2), aMachine(3)], {
    counted: new Set([idOf(1)]),
    unplaced: new Map([[idOf(2), refusal]]),
  });
  expect(hosts[0]?.pools['workers']).toEqual({
    cpus: 8,
    memoryBytes: 35 * GIB,
    diskBytes: 180 * GIB,
  });
  expect(pools[0]?.freeIdentities?.machines).toBe(4);
  expect(machines.map((machine) => machine.refusal)).toEqual([undefined, refusal, undefined]);
});

it('a machine has the Node of its name and uid only', async () => {
  const nodeOf = async (nodeUid: string) => {
    const ready = aMachine(1, { phase: 'ready', nodeName: 'worker-1', nodeUid });
    return (await inputOf([ready])).machines[0]?.node?.name;
  };
  expect(await nodeOf('uid-of-worker-1')).toBe('worker-1');
  expect(await nodeOf('uid-of-another')).toBeUndefined();
});

it('a region that cannot be read is named, and its hosts are refused', async () => {
  const placement = {
    region: 'attic',
    host: 'pve9',
    vmId: 9,
    name: 'workers-9',
    diskStorage: 'local-lvm',
    addresses: [],
  };
  const { hosts, unreadRegions } = await inputOf([aMachine(1, { phase: 'ready', placement })], {
    staleReason: (region) => `no answer from ${region}`,
  });
  expect(hosts[0]?.pools['workers']).toMatchObject({
    refusal: { code: 'VIEW_STALE', message: 'region lab: no answer from lab' },
  });
  // The pool does not use region attic any more, but a machine of it is there.
  const regions = [...aWorkerPool().regions, 'attic'];
  expect(unreadRegions).toEqual(
    Object.fromEntries(regions.map((region) => [region, `no answer from ${region}`])),
  );
});
