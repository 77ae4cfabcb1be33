// SPDX-License-Identifier: Apache-2.0
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Machine, type MachineId, PHASES, parseMachineId } from '../../model/machine.ts';

import {
  chooseHost,
  chooseMachineName,
  chooseVmId,
  nextFreeVmId,
  pickFreeName,
  reservationsOf,
} from '../../placement/index.ts';
import { aHost, aPool } from '../testing/settings.ts';
import { MachineIndex } from './machine-index.ts';
import { UsageIndex } from './usage-index.ts';

interface Indexes {
  readonly index: MachineIndex;
  readonly usage: UsageIndex;
}

const NOW = 100 * 60_000;
const RANGE = { from: 100, to: 107 };
const REGIONS = ['lab', 'attic'] as const;

function machineId(number: number): MachineId {
  const id = parseMachineId(`00000000-0000-4000-8000-${String(number).padStart(12, '0')}`);
  if (!id.ok) throw new Error(id.problem);
  return id.value;
}

const placement = fc.record({
  region: fc.constantFrom(...REGIONS),
  host: fc.constantFrom('pve1', 'pve2'),
  // Around the range, so that some ids are outside and some are used twice.
  vmId: fc.integer({ min: 98, max: 109 }),
  name: fc.constantFrom('w-1', 'W-2', 'w-3', 'other'),
  diskStorage: fc.constant('local-lvm'),
  addresses: fc.subarray(['10.0.0.5/24', '10.0.0.6/24', '2001:db8::5/64']),
});

const machine: fc.Arbitrary<Machine> = fc
  .record({
    number: fc.nat(7),
    pool: fc.constantFrom('small', 'large'),
    phase: fc.constantFrom(...PHASES),
    phaseSince: fc.constantFrom(NOW, NOW - 29 * 60_000, NOW - 31 * 60_000),
    requestedAt: fc.nat(4),
    placement: fc.option(placement, { nil: undefined, freq: 6 }),
  })
  .map(({ number, placement: where, ...rest }) => ({
    ...rest,
    id: machineId(number),
    size: { cpu: 2, memoryBytes: 2 ** 30, diskBytes: 2 ** 30 },
    attempts: 0,
    ...(where !== undefined && { placement: where }),
  }));

/** A record is written or removed. */
const changes = fc.array(fc.tuple(machine, fc.constantFrom('write', 'write', 'write', 'remove')), {
  minLength: 6,
  maxLength: 30,
});

function expectSameLookups({ index, usage }: Indexes, machines: readonly Machine[]): void {
  for (const phase of PHASES) {
    const there = machines.filter((one) => one.phase === phase);
    expect(new Set(index.inPhase(phase))).toEqual(new Set(there));
  }
  for (const region of REGIONS) {
    const request = { region, range: RANGE, takenVmIds: [], nodeProviderIds: [], now: NOW };
    const choice = chooseVmId({ ...request, machines });
    const last = usage.lastVmId(region, RANGE);
    const vmId = nextFreeVmId({ range: RANGE, last }, (id) => index.isVmIdHeld(region, id, NOW));
    expect(vmId).toBe(choice.chosen ? choice.vmId : undefined);
  }
  for (const number of [0, 7]) {
    const names = { prefix: 'w', suffix: 'ordinal' } as const;
    const request = { names, machine: machineId(number) };
    expect(pickFreeName(request, (name) => index.isNameHeld(name, request.machine))).toBe(
      chooseMachineName({ ...request, machines, vmNames: [], nodeNames: [] }),
    );
  }
}

function expectSameAddresses({ index }: Indexes, machines: readonly Machine[]): void {
  for (const region of REGIONS) {
    const there = machines.filter(
      ({ placement }) => placement?.region === region && placement.addresses.length > 0,
    );
    expect(new Set(index.withAddresses(region))).toEqual(new Set(there));
    for (const address of ['10.0.0.5', '2001:db8::5/64']) {
      const [bare = ''] = address.split('/');
      const has = ({ phase, placement }: Machine) =>
        !['gone', 'failed'].includes(phase) &&
        placement?.addresses.some((one) => one.startsWith(`${bare}/`)) === true;
      const holders = there.filter(has).map(({ id }) => id);
      const other = index.otherHolder(region, address, machineId(7));
      const others = holders.filter((id) => id !== machineId(7));
      if (others.length === 0) expect(other).toBeUndefined();
      else expect(others).toContain(other?.id);
    }
  }
}

function expectSameHostChoice(usage: UsageIndex, machines: readonly Machine[]): void {
  const pool = aPool();
  const hosts = ['pve1', 'pve2'].map((name) => aHost(name));
  const vms = [101, 103, 105].map((vmId) => ({
    vmId,
    host: 'pve2',
    power: 'running' as const,
    isTemplate: false,
    cpus: 4,
    memoryBytes: 2 ** 31,
  }));
  const request = {
    pool: 'small',
    size: { cpu: 1, memoryBytes: 2 ** 28, diskBytes: 2 ** 28 },
    source: { kind: 'netboot' as const },
    storages: ['local-lvm'],
    regionHosts: { allow: [], deny: [] },
    placement: pool.placement,
  };
  const reservations = reservationsOf(machines, 'lab');
  const facts = { hosts, vms, reservations };
  const allocations = usage.allocationsOf({
    region: 'lab',
    vms: vms.slice(1),
    containers: vms.slice(0, 1),
  });
  const pending = reservations.filter(({ pendingDiskBytes }) => pendingDiskBytes > 0);
  expect(chooseHost(request, { hosts, vms: [], reservations: pending, allocations })).toEqual(
    chooseHost(request, facts),
  );
}

/** Two reservations of one VM id: which one counts depends on the order of writes, which records do not keep. */
function hasDuplicateVmIds(machines: readonly Machine[]): boolean {
  const ids = reservationsOf(machines, 'lab').map(({ vmId }) => vmId);
  return new Set(ids).size < ids.length;
}

describe('MachineIndex and UsageIndex, updated change by change', () => {
  it('return after each change what a scan of all records returns', () => {
    fc.assert(
      fc.property(changes, fc.nat(5), (all, firstRead) => {
        const records = new Map<string, Machine>();
        const usage = new UsageIndex(() => [...records.values()]);
        const index = new MachineIndex((id) => records.get(id));
        for (const [step, [next, kind]] of all.entries()) {
          const before = records.get(next.id);
          if (kind === 'write') records.set(next.id, next);
          else records.delete(next.id);
          const after = records.get(next.id);
          if (before === undefined && after === undefined) continue;
          usage.machineChanged(before, after);
          index.machineChanged(before, after);
          if (step < firstRead) continue;
          const machines = [...records.values()];
          expectSameLookups({ index, usage }, machines);
          expectSameAddresses({ index, usage }, machines);
          if (!hasDuplicateVmIds(machines)) expectSameHostChoice(usage, machines);
        }
      }),
    );
  });
});

describe('UsageIndex.updateReservations', () => {
  it('reserves what the pool of a machine now needs in addition', () => {
    let overhead = 0;
    const placed = {
      id: machineId(1),
      pool: 'small',
      phase: 'placed',
      phaseSince: NOW,
      requestedAt: NOW,
      attempts: 0,
      size: { cpu: 2, memoryBytes: 2 ** 30, diskBytes: 2 ** 30 },
      placement: {
        region: 'lab',
        host: 'pve1',
        vmId: 101,
        name: 'w-1',
        diskStorage: 'local-lvm',
        addresses: [],
      },
    } satisfies Machine;
    const usage = new UsageIndex(
      () => [placed],
      () => overhead,
    );
    const allocations = usage.allocationsOf({ region: 'lab', vms: [], containers: [] });
    const reserved = () => allocations.allocationOf('pve1')?.memoryBytes;
    expect(reserved()).toBe(2 ** 30);
    overhead = 2 ** 29;
    usage.updateReservations();
    // A pass in progress keeps the object.
    expect(reserved()).toBe(2 ** 30 + 2 ** 29);
  });
});
