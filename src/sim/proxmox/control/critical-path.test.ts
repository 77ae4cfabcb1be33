// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { SimHarness } from '../testing/sim-harness.ts';

const DISK = 'local-lvm:0,import-from=local:import/noble-with-agent.qcow2';

async function make(harness: SimHarness, id: number): Promise<void> {
  await harness.createVm(id, { scsi0: DISK, net0: 'virtio,bridge=vmbr0', agent: 1 });
  await harness.waitForTask(await harness.call('POST', `/nodes/pve1/qemu/${id}/status/start`));
}

async function untilUp(harness: SimHarness, id: number): Promise<void> {
  while (harness.sim.guest(id)?.agentAnswers() !== true) await harness.clock.advanceToNext();
}

describe('the critical path', () => {
  it('is the time that one machine takes when nobody hesitates', async () => {
    const harness = new SimHarness();
    const began = harness.clock.now();
    await make(harness, 100);
    await untilUp(harness, 100);
    expect(harness.sim.criticalPathMs(1)).toBeCloseTo(harness.clock.now() - began, 3);
  });

  it('is never longer than what happened, and shorter where several are made at once', async () => {
    const harness = new SimHarness();
    const began = harness.clock.now();
    for (const id of [100, 101, 102]) await make(harness, id);
    for (const id of [100, 101, 102]) await untilUp(harness, id);
    const oneByOne = harness.sim.criticalPathMs(1);
    expect(oneByOne).toBeLessThanOrEqual(harness.clock.now() - began);
    expect(harness.sim.criticalPathMs(3)).toBeLessThan(oneByOne);
  });

  it('of nothing is nothing', () => {
    expect(new SimHarness().sim.criticalPathMs(2)).toBe(0);
  });
});
