// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { type Machine, PHASES } from './machine.ts';
import { buildPercent, describeBuild } from './template-progress.ts';

const BUILD = {
  pool: 'role:template',
  phase: 'creating',
  placement: { name: 'ubuntu', host: 'pve1' },
} as Machine;

describe('progress of a template build', () => {
  it('grows from phase to phase, and with the report of the guest', () => {
    const phases = PHASES.slice(0, PHASES.indexOf('ready') + 1);
    const values = phases.map((phase) => buildPercent(phase));
    expect(values).toEqual(values.toSorted((a, b) => a - b));
    expect(new Set(values).size).toBe(phases.length);
    expect([0, 50, 100].map((percent) => buildPercent('booting', percent))).toEqual([50, 70, 90]);
    expect(buildPercent('creating', 50)).toBe(buildPercent('creating'));
  });

  it('names template, host and step', () => {
    expect(describeBuild(BUILD)).toBe('ubuntu on pve1: 30 %, importing the image');
  });

  it('is undefined for other machines, and for a template that is deleted', () => {
    expect(describeBuild({ ...BUILD, pool: 'workers' })).toBeUndefined();
    expect(describeBuild({ ...BUILD, phase: 'deleting' })).toBeUndefined();
  });
});
