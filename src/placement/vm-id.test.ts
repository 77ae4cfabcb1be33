// SPDX-License-Identifier: Apache-2.0
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { PHASES, type Phase } from '../model/machine.ts';
import { COOL_DOWN_MS } from './cool-down.ts';
import { chooseVmId, type VmIdRecord, type VmIdRequest } from './vm-id.ts';

const NOW = 1_000_000_000;
const MINUTE = 60_000;

function record(vmId: number, phase: Phase, overrides: Partial<VmIdRecord> = {}): VmIdRecord {
  return {
    phase,
    phaseSince: NOW - MINUTE,
    requestedAt: NOW - 60 * MINUTE,
    placement: {
      region: 'lab',
      host: 'pve1',
      vmId,
      name: `small-${vmId}`,
      diskStorage: 'local-lvm',
      addresses: [],
    },
    ...overrides,
  };
}

function choose(overrides: Partial<VmIdRequest> = {}) {
  return chooseVmId({
    region: 'lab',
    range: { from: 1250, to: 1254 },
    takenVmIds: [],
    machines: [],
    nodeProviderIds: [],
    now: NOW,
    ...overrides,
  });
}

function idOf(overrides: Partial<VmIdRequest>): number | undefined {
  const choice = choose(overrides);
  return choice.chosen ? choice.vmId : undefined;
}

describe('chooseVmId', () => {
  it.each([
    ['starts with the first id of the range', {}, 1250],
    ['continues after the last allocated id', { lastAllocated: 1251 }, 1252],
    ['wraps at the end of the range', { lastAllocated: 1254 }, 1250],
    ['restarts when the range was moved', { lastAllocated: 300 }, 1250],
    ['restarts when the range was shortened', { lastAllocated: 9999 }, 1250],
    ['skips VMs and containers', { lastAllocated: 1250, takenVmIds: [1251, 1252] }, 1253],
    [
      'skips ids of machines being created',
      { machines: [record(1250, 'placed')], lastAllocated: 1254 },
      1251,
    ],
    [
      'skips the id of a machine that returned to requested',
      { machines: [record(1250, 'requested')], lastAllocated: 1254 },
      1251,
    ],
    [
      'skips an id that was freed recently',
      { machines: [record(1250, 'gone')], lastAllocated: 1254 },
      1251,
    ],
    [
      'skips the id of a machine that failed recently',
      { machines: [record(1250, 'failed')], lastAllocated: 1254 },
      1251,
    ],
    ['skips an id that a Node refers to', { nodeProviderIds: ['proxmox://lab/1250'] }, 1251],
    ['ignores Nodes of other regions', { nodeProviderIds: ['proxmox://other/1250'] }, 1250],
    ['ignores other provider ids', { nodeProviderIds: ['k3s://1250', '', 'aws:///1250'] }, 1250],
    [
      'continues after the machine requested last',
      { machines: [record(1252, 'gone', { requestedAt: NOW }), record(1253, 'ready')] },
      1254,
    ],
    [
      'continues after the highest id of machines requested at the same time',
      { machines: [record(1251, 'ready'), record(1252, 'ready')] },
      1253,
    ],
    [
      'continues after the highest id in use if there are no records',
      { takenVmIds: [1252, 1251, 90_000] },
      1253,
    ],
    ['ignores records of other ranges', { machines: [record(300, 'ready')] }, 1250],
  ] as const)('%s', (_, overrides, expected) => {
    expect(idOf(overrides)).toBe(expected);
  });

  it('ignores machines without a placement and machines of other regions', () => {
    const { placement, ...unplaced } = record(1250, 'requested');
    const elsewhere = record(1250, 'ready', { placement: { ...placement!, region: 'other' } });
    expect(idOf({ machines: [unplaced, elsewhere] })).toBe(1250);
  });

  it('reassigns an id after the default or the given cool-down', () => {
    const freed = (ago: number) => ({
      machines: [record(1250, 'gone', { phaseSince: NOW - ago })],
      lastAllocated: 1254,
    });
    expect(idOf(freed(COOL_DOWN_MS - 1))).toBe(1251);
    expect(idOf(freed(COOL_DOWN_MS))).toBe(1250);
    expect(idOf({ ...freed(MINUTE), coolDownMs: MINUTE })).toBe(1250);
    expect(idOf({ ...freed(MINUTE), coolDownMs: MINUTE + 1 })).toBe(1251);
  });

  it('applies the cool-down also after the clock was set back', () => {
    const machines = [record(1250, 'gone', { phaseSince: NOW + 90 * MINUTE })];
    expect(idOf({ machines, lastAllocated: 1254 })).toBe(1251);
  });
});

describe('chooseVmId without a free VM id', () => {
  it('reports why the ids are held and when the next one is free', () => {
    expect(
      choose({
        takenVmIds: [1250, 1251],
        machines: [
          record(1251, 'ready'),
          record(1252, 'placed'),
          record(1252, 'gone'),
          record(1253, 'gone', { phaseSince: NOW - 29 * MINUTE }),
          record(1253, 'gone', { phaseSince: NOW - 10 * MINUTE }),
        ],
        nodeProviderIds: ['proxmox://lab/1254'],
      }),
    ).toEqual({
      chosen: false,
      code: 'NO_VM_ID_FREE',
      message:
        'none of the 5 VM ids 1250-1254 of region lab is free (existing: 2, reserved: 1, cooling down: 1, ' +
        'named by Nodes: 1); the next is free in 20 min',
      numbers: {
        from: 1250,
        to: 1254,
        ids: 5,
        exist: 2,
        reserved: 1,
        coolingDown: 1,
        namedByNodes: 1,
        nextFreeInMs: 20 * MINUTE,
      },
    });
  });

  it('reports the shortest of several cool-downs', () => {
    const machines = [
      record(100, 'gone', { phaseSince: NOW - 10 * MINUTE }),
      record(101, 'gone', { phaseSince: NOW - 25 * MINUTE }),
    ];
    const choice = choose({ range: { from: 100, to: 101 }, machines });
    expect(choice).toMatchObject({ numbers: { coolingDown: 2, nextFreeInMs: 5 * MINUTE } });
  });

  it('reports no time if no id is cooling down', () => {
    const choice = choose({ range: { from: 100, to: 100 }, takenVmIds: [100] });
    expect(choice).toMatchObject({ chosen: false, numbers: { ids: 1, exist: 1 } });
    expect(choice).not.toHaveProperty('numbers.nextFreeInMs');
    expect(choice).toHaveProperty('message', expect.stringMatching(/named by Nodes: 0\)$/));
  });
});

describe('chooseVmId, for random requests', () => {
  const anId = fc.integer({ min: 1248, max: 1256 });
  const aRecord = fc
    .record({
      id: anId,
      phase: fc.constantFrom(...PHASES),
      since: fc.nat(60),
      requestedAgo: fc.nat(3),
    })
    .map(({ id, phase, since, requestedAgo }) =>
      record(id, phase, { phaseSince: NOW - since * MINUTE, requestedAt: NOW - requestedAgo }),
    );
  const aCase = fc.record({
    takenVmIds: fc.array(anId, { maxLength: 4 }),
    machines: fc.array(aRecord, { maxLength: 6 }),
    nodeProviderIds: fc.array(
      anId.map((id) => `proxmox://lab/${id}`),
      { maxLength: 3 },
    ),
    lastAllocated: fc.option(anId, { nil: undefined }),
  });

  function isFree(vmId: number, facts: Partial<VmIdRequest>): boolean {
    const isHeld = facts.machines!.some(
      ({ placement, phase, phaseSince }) =>
        placement!.vmId === vmId &&
        (!['gone', 'failed'].includes(phase) || phaseSince > NOW - COOL_DOWN_MS),
    );
    const isNamed = facts.nodeProviderIds!.includes(`proxmox://lab/${vmId}`);
    return !isHeld && !isNamed && !facts.takenVmIds!.includes(vmId);
  }

  it('returns an id if and only if one is free, and that id is free', () => {
    fc.assert(
      fc.property(aCase, (facts) => {
        const free = [1250, 1251, 1252, 1253, 1254].filter((id) => isFree(id, facts));
        const given = idOf(facts);
        if (free.length === 0) expect(given).toBeUndefined();
        else expect(free).toContain(given);
      }),
      { numRuns: 1_000 },
    );
  });

  it('does not depend on the order of its input', () => {
    fc.assert(
      fc.property(aCase, (facts) => {
        const { takenVmIds, machines, nodeProviderIds } = facts;
        const turned = {
          ...facts,
          takenVmIds: takenVmIds.toReversed(),
          machines: machines.toReversed(),
          nodeProviderIds: nodeProviderIds.toReversed(),
        };
        expect(choose(turned)).toEqual(choose(facts));
      }),
      { numRuns: 1_000 },
    );
  });

  it('uses every id of the range before it reuses one', () => {
    const given: number[] = [];
    for (let count = 0; count < 12; count += 1) given.push(idOf({ lastAllocated: given.at(-1) })!);
    expect(given).toEqual([1250, 1251, 1252, 1253, 1254, 1250, 1251, 1252, 1253, 1254, 1250, 1251]);
  });

  it('does not iterate over a huge range', () => {
    const range = { from: 100, to: 999_999_999 };
    expect(idOf({ range, takenVmIds: [999_999_999, 100, 101] })).toBe(102);
  });
});
