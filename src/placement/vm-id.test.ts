// SPDX-License-Identifier: Apache-2.0
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { PHASES, type Phase } from '../model/machine.ts';
import { COOL_DOWN_MS } from './cool-down.ts';
import { chooseVmId, type IdRecord, type VmIdRequest } from './vm-id.ts';

const NOW = 1_000_000_000;
const MINUTE = 60_000;

function record(vmId: number, phase: Phase, overrides: Partial<IdRecord> = {}): IdRecord {
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

function ask(overrides: Partial<VmIdRequest> = {}) {
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
  const choice = ask(overrides);
  return choice.chosen ? choice.vmId : undefined;
}

describe('the next VM id', () => {
  it.each([
    ['begins with the range', {}, 1250],
    ['follows the last given', { lastGiven: 1251 }, 1252],
    ['wraps at the end of the range', { lastGiven: 1254 }, 1250],
    ['begins anew when the range was moved', { lastGiven: 300 }, 1250],
    ['begins anew when the range was shortened', { lastGiven: 9999 }, 1250],
    ['skips VMs and containers', { lastGiven: 1250, takenVmIds: [1251, 1252] }, 1253],
    ['skips machines in flight', { machines: [record(1250, 'placed')], lastGiven: 1254 }, 1251],
    ['skips what was put back', { machines: [record(1250, 'requested')], lastGiven: 1254 }, 1251],
    ['skips what was freed lately', { machines: [record(1250, 'gone')], lastGiven: 1254 }, 1251],
    ['skips what failed lately', { machines: [record(1250, 'failed')], lastGiven: 1254 }, 1251],
    ['skips what a Node names', { nodeProviderIds: ['proxmox://lab/1250'] }, 1251],
    ['ignores Nodes of other regions', { nodeProviderIds: ['proxmox://other/1250'] }, 1250],
    ['ignores other provider ids', { nodeProviderIds: ['k3s://1250', '', 'aws:///1250'] }, 1250],
    [
      'follows the machine asked for last',
      { machines: [record(1252, 'gone', { requestedAt: NOW }), record(1253, 'ready')] },
      1254,
    ],
    [
      'follows the highest of those asked for at once',
      { machines: [record(1251, 'ready'), record(1252, 'ready')] },
      1253,
    ],
    ['follows the highest in use without records', { takenVmIds: [1252, 1251, 90_000] }, 1253],
    ['ignores records of other ranges', { machines: [record(300, 'ready')] }, 1250],
  ] as const)('%s', (_, overrides, expected) => {
    expect(idOf(overrides)).toBe(expected);
  });

  it('ignores machines without a place, and of other regions', () => {
    const { placement, ...unplaced } = record(1250, 'requested');
    const elsewhere = record(1250, 'ready', { placement: { ...placement!, region: 'other' } });
    expect(idOf({ machines: [unplaced, elsewhere] })).toBe(1250);
  });

  it('comes back after half an hour, or after what it is told', () => {
    const freed = (ago: number) => ({
      machines: [record(1250, 'gone', { phaseSince: NOW - ago })],
      lastGiven: 1254,
    });
    expect(idOf(freed(COOL_DOWN_MS - 1))).toBe(1251);
    expect(idOf(freed(COOL_DOWN_MS))).toBe(1250);
    expect(idOf({ ...freed(MINUTE), coolDownMs: MINUTE })).toBe(1250);
    expect(idOf({ ...freed(MINUTE), coolDownMs: MINUTE + 1 })).toBe(1251);
  });

  it('rests as well when the clock was set back', () => {
    const machines = [record(1250, 'gone', { phaseSince: NOW + 90 * MINUTE })];
    expect(idOf({ machines, lastGiven: 1254 })).toBe(1251);
  });
});

describe('without a free VM id', () => {
  it('it says who has them, and when the next is free', () => {
    expect(
      ask({
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
      sentence:
        'none of the 5 VM ids 1250-1254 of region lab is free (exist: 2, reserved: 1, freed lately: 1, ' +
        'named by Nodes: 1); the next is free in 20 min',
      numbers: {
        from: 1250,
        to: 1254,
        ids: 5,
        exist: 2,
        reserved: 1,
        resting: 1,
        namedByNodes: 1,
        nextFreeInMs: 20 * MINUTE,
      },
    });
  });

  it('it names the shortest rest of several', () => {
    const machines = [
      record(100, 'gone', { phaseSince: NOW - 10 * MINUTE }),
      record(101, 'gone', { phaseSince: NOW - 25 * MINUTE }),
    ];
    const choice = ask({ range: { from: 100, to: 101 }, machines });
    expect(choice).toMatchObject({ numbers: { resting: 2, nextFreeInMs: 5 * MINUTE } });
  });

  it('it names no time where none is resting', () => {
    const choice = ask({ range: { from: 100, to: 100 }, takenVmIds: [100] });
    expect(choice).toMatchObject({ chosen: false, numbers: { ids: 1, exist: 1 } });
    expect(choice).not.toHaveProperty('numbers.nextFreeInMs');
    expect(choice).toHaveProperty('sentence', expect.stringMatching(/named by Nodes: 0\)$/));
  });
});

describe('properties of VM ids', () => {
  const anId = fc.integer({ min: 1248, max: 1256 });
  const aRecord = fc
    .record({ id: anId, phase: fc.constantFrom(...PHASES), since: fc.nat(60), asked: fc.nat(3) })
    .map(({ id, phase, since, asked }) =>
      record(id, phase, { phaseSince: NOW - since * MINUTE, requestedAt: NOW - asked }),
    );
  const aCase = fc.record({
    takenVmIds: fc.array(anId, { maxLength: 4 }),
    machines: fc.array(aRecord, { maxLength: 6 }),
    nodeProviderIds: fc.array(
      anId.map((id) => `proxmox://lab/${id}`),
      { maxLength: 3 },
    ),
    lastGiven: fc.option(anId, { nil: undefined }),
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

  it('one is given exactly if one is free, and it is free', () => {
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

  it('order does not matter', () => {
    fc.assert(
      fc.property(aCase, (facts) => {
        const { takenVmIds, machines, nodeProviderIds } = facts;
        const turned = {
          ...facts,
          takenVmIds: takenVmIds.toReversed(),
          machines: machines.toReversed(),
          nodeProviderIds: nodeProviderIds.toReversed(),
        };
        expect(ask(turned)).toEqual(ask(facts));
      }),
      { numRuns: 1_000 },
    );
  });

  it('a whole round is made before one comes back', () => {
    const given: number[] = [];
    for (let count = 0; count < 12; count += 1) given.push(idOf({ lastGiven: given.at(-1) })!);
    expect(given).toEqual([1250, 1251, 1252, 1253, 1254, 1250, 1251, 1252, 1253, 1254, 1250, 1251]);
  });

  it('a range of all ids is not walked through', () => {
    const range = { from: 100, to: 999_999_999 };
    expect(idOf({ range, takenVmIds: [999_999_999, 100, 101] })).toBe(102);
  });
});
