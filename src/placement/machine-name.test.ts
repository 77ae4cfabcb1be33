// SPDX-License-Identifier: Apache-2.0
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { MachineId, Phase } from '../model/machine.ts';

import { chooseMachineName, type MachineNameRequest } from './machine-name.ts';

const ID = '3c9f4a52-7d1b-4c5e-9a6f-0b2d4e6f8a10' as MachineId;
const OTHER = 'aaaaaaaa-7d1b-4c5e-9a6f-0b2d4e6f8a10' as MachineId;

function nameOf(overrides: Partial<MachineNameRequest> = {}): string {
  return chooseMachineName({
    names: { prefix: 'worker', suffix: 'id' },
    machine: ID,
    machines: [],
    vmNames: [],
    nodeNames: [],
    ...overrides,
  });
}

function machine(name: string, phase: Phase = 'ready', id = OTHER) {
  const placement = {
    region: 'lab',
    host: 'pve1',
    vmId: 1250,
    name,
    diskStorage: 's',
    addresses: [],
  };
  return { id, phase, placement };
}

const ordinal = { prefix: 'k8s', role: 'worker', suffix: 'ordinal' } as const;

describe('chooseMachineName', () => {
  it('ends the name with the first eight digits of the machine id', () => {
    expect(nameOf()).toBe('worker-3c9f4a52');
    expect(nameOf({ names: { ...ordinal, suffix: 'id' } })).toBe('k8s-worker-3c9f4a52');
  });

  it.each([
    ['a VM', { vmNames: ['worker-3c9f4a52'] }],
    ['a Node', { nodeNames: ['worker-3c9f4a52'] }],
    ['another machine', { machines: [machine('worker-3c9f4a52')] }],
    ['a VM in upper case', { vmNames: ['Worker-3C9F4A52'] }],
  ])('uses the whole id if the short name is taken by %s', (_, taken) => {
    expect(nameOf(taken)).toBe(`worker-${ID}`);
  });

  it("ignores the machine's own record", () => {
    expect(nameOf({ machines: [machine('worker-3c9f4a52', 'placed', ID)] })).toBe(
      'worker-3c9f4a52',
    );
  });

  it('shortens a long prefix to a valid host name', () => {
    const prefix = `${'a'.repeat(53)}.b`;
    expect(nameOf({ names: { prefix, suffix: 'id' } })).toBe(`${'a'.repeat(53)}-3c9f4a52`);
    const separators = `${'a'.repeat(52)}.-b`;
    expect(nameOf({ names: { prefix: separators, suffix: 'id' } })).toBe(
      `${'a'.repeat(52)}-3c9f4a52`,
    );
    expect(nameOf({ names: { prefix: 'p'.repeat(54), suffix: 'id' } })).toHaveLength(63);
  });
});

describe('chooseMachineName with ordinals', () => {
  it('uses the lowest number that no VM, machine or Node has', () => {
    const taken = {
      vmNames: [undefined, 'k8s-worker-1', 'K8S-worker-4'],
      machines: [machine('k8s-worker-2')],
      nodeNames: ['k8s-worker-3', 'k8s-worker-6'],
    };
    expect(nameOf({ names: ordinal })).toBe('k8s-worker-1');
    expect(nameOf({ names: ordinal, ...taken })).toBe('k8s-worker-5');
  });

  it.each(['gone', 'failed'] as const)(
    'reuses the name of a machine that is %s, but not while its Node exists',
    (phase) => {
      const machines = [machine('k8s-worker-1', phase)];
      expect(nameOf({ names: ordinal, machines })).toBe('k8s-worker-1');
      expect(nameOf({ names: ordinal, machines, nodeNames: ['k8s-worker-1'] })).toBe(
        'k8s-worker-2',
      );
    },
  );

  it('ignores machines without a name', () => {
    const machines = [{ id: OTHER, phase: 'requested' as const }];
    expect(nameOf({ names: { prefix: 'autoscaler.node', suffix: 'ordinal' }, machines })).toBe(
      'autoscaler.node-1',
    );
  });

  it('always returns the lowest free number', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 12 })), fc.nat(2), (numbers, shift) => {
        const names = numbers.map((number) => `k8s-worker-${number}`);
        const part = (index: number) => names.filter((_, at) => (at + shift) % 3 === index);
        const name = nameOf({
          names: ordinal,
          vmNames: part(0),
          nodeNames: part(1),
          machines: part(2).map((one) => machine(one)),
        });
        let lowest = 1;
        while (numbers.includes(lowest)) lowest += 1;
        expect(name).toBe(`k8s-worker-${lowest}`);
      }),
    );
  });
});
