// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import type { Machine, Phase } from '../../model/machine.ts';
import { aHost, aRequest, aReservation, aVm, facts, GIB, rules } from '../testing/builders.ts';
import { chooseHost } from './choose-host.ts';
import { STRATEGIES, type Strategy } from './decision.ts';
import {
  countFits,
  formatFreeBytes,
  formatNeededBytes,
  multiplyExact,
  type RegionFacts,
  reservationsOf,
} from './facts.ts';

/** The remainder of 62 GiB and 32 vCPUs after a machine of 4 GiB and 2 vCPUs. */
function allocated(region: Partial<Omit<RegionFacts, 'hosts'>>, countsStopped?: boolean) {
  const decision = chooseHost(aRequest({ countsStopped }), facts([aHost('pve1')], region));
  if (!decision.placed) throw new Error(decision.message);
  const { memoryFreeBytes, cpusFree, vms, poolMachines } = decision.numbers;
  return {
    memory: 58 - memoryFreeBytes / GIB,
    cpus: 30 - cpusFree,
    vms,
    poolMachines,
  };
}

describe('the allocation of a host', () => {
  it('includes the configured size of running and stopped VMs', () => {
    const vms = [aVm(100, 'pve1'), aVm(101, 'pve1', { power: 'stopped' }), aVm(102, 'pve2')];
    expect(allocated({ vms })).toEqual({ memory: 8, cpus: 4, vms: 2, poolMachines: 0 });
  });

  it('excludes stopped VMs if requested, but neither managed VMs nor VMs in an unknown state', () => {
    const stopped = { power: 'stopped' } as const;
    const vms = [
      aVm(100, 'pve1', stopped),
      aVm(101, 'pve1', { power: 'unknown' }),
      aVm(1250, 'pve1', stopped),
    ];
    const reservations = [aReservation(1250, 'pve1')];
    expect(allocated({ vms, reservations }, false)).toEqual({
      memory: 8,
      cpus: 4,
      vms: 3,
      poolMachines: 1,
    });
  });

  it('excludes templates', () => {
    const vms = [aVm(9000, 'pve1', { isTemplate: true, power: 'stopped' })];
    expect(allocated({ vms })).toEqual({ memory: 0, cpus: 0, vms: 0, poolMachines: 0 });
  });

  it('includes the reservation of a VM that does not exist yet', () => {
    const reservations = [
      aReservation(1250, 'pve1'),
      aReservation(1251, 'pve1', { pool: 'other' }),
    ];
    expect(allocated({ reservations })).toEqual({ memory: 8, cpus: 4, vms: 2, poolMachines: 1 });
  });

  it('counts an existing VM with a reservation once, with the larger size', () => {
    const vms = [aVm(1250, 'pve1', { cpus: 1, memoryBytes: 6 * GIB })];
    const reservations = [aReservation(1250, 'pve1')];
    expect(allocated({ vms, reservations })).toEqual({
      memory: 6,
      cpus: 2,
      vms: 1,
      poolMachines: 1,
    });
  });

  it('uses the reservation of a VM without a size, and 0 for an unmanaged one', () => {
    const making = { cpus: undefined, memoryBytes: undefined, power: 'unknown' } as const;
    const vms = [aVm(1250, 'pve1', making), aVm(100, 'pve1', making)];
    const reservations = [aReservation(1250, 'pve1')];
    expect(allocated({ vms, reservations })).toEqual({
      memory: 4,
      cpus: 2,
      vms: 2,
      poolMachines: 1,
    });
  });

  it('counts a VM on its current host, not on the host it was placed on', () => {
    const vms = [aVm(1250, 'pve2')];
    const reservations = [aReservation(1250, 'pve1')];
    expect(allocated({ vms, reservations })).toEqual({
      memory: 0,
      cpus: 0,
      vms: 0,
      poolMachines: 0,
    });
  });
});

describe('reservationsOf', () => {
  const machine = (
    phase: Phase,
    region = 'lab',
  ): Pick<Machine, 'pool' | 'phase' | 'size' | 'placement'> => ({
    pool: 'small',
    phase,
    size: { cpu: 2, memoryBytes: 4 * GIB, diskBytes: 40 * GIB },
    placement: {
      region,
      host: 'pve1',
      vmId: 1250,
      name: 'small-1',
      diskStorage: 'local-lvm',
      addresses: [],
    },
  });
  const diskGib = (phase: Phase) =>
    reservationsOf([machine(phase)], 'lab').map(({ pendingDiskBytes }) => pendingDiskBytes / GIB);

  it('returns what a machine holds of host and storage', () => {
    expect(reservationsOf([machine('placed')], 'lab')).toEqual([aReservation(1250, 'pve1')]);
  });

  it.each([
    ['requested', []],
    ['placed', [40]],
    ['creating', [40]],
    ['configuring', [40]],
    ['starting', [0]],
    ['ready', [0]],
    ['deleting', [0]],
    ['failed', []],
    ['gone', []],
  ] as const)('for a machine that is %s returns %j', (phase, expected) => {
    expect(diskGib(phase)).toEqual(expected);
  });

  it('ignores machines without a placement and machines of other regions', () => {
    const { placement: _, ...unplaced } = machine('placed');
    expect(reservationsOf([unplaced, machine('ready', 'other')], 'lab')).toEqual([]);
  });
});

describe('placement strategies', () => {
  // pve1: one machine of the pool, 4 VMs, 10 GiB free; pve2: none, 2 VMs, 20 GiB; pve3: two, 2 VMs, 40 GiB.
  const region = facts([aHost('pve3'), aHost('pve1'), aHost('pve2')], {
    vms: [
      ...[100, 101, 102].map((id) => aVm(id, 'pve1', { memoryBytes: 16 * GIB })),
      ...[110, 111].map((id) => aVm(id, 'pve2', { memoryBytes: 21 * GIB })),
    ],
    reservations: [
      aReservation(1250, 'pve1'),
      aReservation(1251, 'pve3', { memoryBytes: 11 * GIB }),
      aReservation(1252, 'pve3', { memoryBytes: 11 * GIB }),
    ],
  });
  const order = (strategy: Strategy, facts: RegionFacts) => {
    const decision = chooseHost(aRequest({ placement: rules({ strategy }) }), facts);
    return decision.placed ? decision.host : decision.code;
  };

  it.each([
    ['spread', 'pve2'],
    ['pack', 'pve1'],
    ['most-free', 'pve3'],
    ['least-vms', 'pve3'],
  ] as const)('%s chooses %s', (strategy, host) => {
    expect(order(strategy, region)).toBe(host);
  });

  it.each(STRATEGIES)('%s chooses the first by name if hosts are equal', (strategy) => {
    expect(order(strategy, facts([aHost('b'), aHost('a'), aHost('c')]))).toBe('a');
  });

  it('pack and most-free compare CPUs if memory is equal', () => {
    const hosts = facts([aHost('a', { cpus: 8 }), aHost('b', { cpus: 4 }), aHost('c')]);
    expect(order('pack', hosts)).toBe('b');
    expect(order('most-free', hosts)).toBe('c');
  });

  it('spread and least-vms compare memory if counts are equal', () => {
    const hosts = facts([aHost('a'), aHost('b', { memoryBytes: 65 * GIB })]);
    expect(order('spread', hosts)).toBe('b');
    expect(order('least-vms', hosts)).toBe('b');
  });

  it.each([
    ['spread', '0 machines of the pool, 16 GiB and 26 vCPUs left after placement'],
    ['pack', '6 GiB and 22 vCPUs left after placement'],
    ['most-free', '36 GiB and 26 vCPUs left after placement'],
    ['least-vms', '2 VMs, 36 GiB and 26 vCPUs left after placement'],
  ] as const)('%s reports the values it compared', (strategy, description) => {
    const decision = chooseHost(aRequest({ placement: rules({ strategy }) }), region);
    expect(decision.message).toContain(`by strategy '${strategy}': ${description}`);
  });
});

describe('amounts', () => {
  it.each([
    [100, 1.15, 115],
    [100, 1.1, 110],
    [3, 0.1, 0],
    [16, 2, 32],
    [64 * GIB, 1.1, 75_591_424_409],
    [2 ** 52, 1.5, 6_755_399_441_055_744],
  ])('multiplies %d by %d to exactly %d', (value, factor, product) => {
    expect(multiplyExact(value, factor)).toBe(product);
  });

  it('never formats different needed and free bytes alike', () => {
    expect([formatNeededBytes(4 * GIB), formatFreeBytes(4 * GIB - 1)]).toEqual([
      '4 GiB',
      '3.9 GiB',
    ]);
    expect([formatNeededBytes(4 * GIB + 1), formatFreeBytes(4 * GIB)]).toEqual([
      '4.1 GiB',
      '4 GiB',
    ]);
    expect([formatNeededBytes(1), formatFreeBytes(1), formatFreeBytes(-5)]).toEqual([
      '0.1 MiB',
      '0 MiB',
      '0 MiB',
    ]);
    expect(formatFreeBytes(512 * 2 ** 20)).toBe('512 MiB');
  });

  it('counts how many times one amount fits into another', () => {
    expect([countFits(9, 3), countFits(8, 3), countFits(0, 3), countFits(-1, 3)]).toEqual([
      3, 2, 0, 0,
    ]);
    expect([countFits(0, 0), countFits(-1, 0)]).toEqual([Number.POSITIVE_INFINITY, 0]);
  });
});
