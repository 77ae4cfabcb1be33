// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { aMachine, aMachineId } from '../ports/fakes/sample-records.ts';
import { findMachineIn } from './find-machine.ts';

describe('findMachineIn', () => {
  it('chooses none of several templates with one name', () => {
    const on = (number: number, host: string) =>
      aMachine({
        id: aMachineId(number),
        pool: 'role:template',
        phase: 'ready',
        placement: {
          region: 'home',
          host,
          vmId: 9_000 + number,
          name: 'ubuntu',
          diskStorage: 'local-lvm',
          addresses: [],
        },
      });
    const machines = [on(1, 'pve1'), on(2, 'pve2')];
    expect(() => findMachineIn(machines, 'ubuntu')).toThrow("2 machines have the name 'ubuntu'");
    expect(findMachineIn(machines, aMachineId(2)).placement?.host).toBe('pve2');
  });
});
