// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { Bench } from '../support/bench.ts';

const DISK = 'local-lvm:0,import-from=local:import/noble-with-agent.qcow2';

async function make(bench: Bench, id: number): Promise<void> {
  await bench.vm(id, { scsi0: DISK, net0: 'virtio,bridge=vmbr0', agent: 1 });
  await bench.task(await bench.call('POST', `/nodes/pve1/qemu/${id}/status/start`));
}

async function untilUp(bench: Bench, id: number): Promise<void> {
  while (bench.sim.guest(id)?.agentAnswers() !== true) await bench.clock.advanceToNext();
}

describe('the critical path', () => {
  it('is the time that one machine takes when nobody hesitates', async () => {
    const bench = new Bench();
    const began = bench.clock.now();
    await make(bench, 100);
    await untilUp(bench, 100);
    expect(bench.sim.criticalPathMs(1)).toBeCloseTo(bench.clock.now() - began, 3);
  });

  it('is never longer than what happened, and shorter where several are made at once', async () => {
    const bench = new Bench();
    const began = bench.clock.now();
    for (const id of [100, 101, 102]) await make(bench, id);
    for (const id of [100, 101, 102]) await untilUp(bench, id);
    const oneByOne = bench.sim.criticalPathMs(1);
    expect(oneByOne).toBeLessThanOrEqual(bench.clock.now() - began);
    expect(bench.sim.criticalPathMs(3)).toBeLessThan(oneByOne);
  });

  it('of nothing is nothing', () => {
    expect(new Bench().sim.criticalPathMs(2)).toBe(0);
  });
});
