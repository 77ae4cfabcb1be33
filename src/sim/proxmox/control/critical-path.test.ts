// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { SimHarness } from '../testing/sim-harness.ts';

const DISK = 'local-lvm:0,import-from=local:import/noble-with-agent.qcow2';

async function createAndStart(harness: SimHarness, id: number): Promise<void> {
  await harness.createVm(id, { scsi0: DISK, net0: 'virtio,bridge=vmbr0', agent: 1 });
  await harness.waitForTask(await harness.call('POST', `/nodes/pve1/qemu/${id}/status/start`));
}

async function waitForAgent(harness: SimHarness, id: number): Promise<void> {
  while (harness.sim.guest(id)?.isAgentRunning() !== true) await harness.clock.advanceToNext();
}

describe('criticalPathMs', () => {
  it('equals the measured time of one VM that is created without idle time', async () => {
    const harness = new SimHarness();
    const startedAt = harness.clock.now();
    await createAndStart(harness, 100);
    await waitForAgent(harness, 100);
    expect(harness.sim.criticalPathMs(1)).toBeCloseTo(harness.clock.now() - startedAt, 3);
  });

  it('is at most the measured time, and shorter with more concurrent creations', async () => {
    const harness = new SimHarness();
    const startedAt = harness.clock.now();
    for (const id of [100, 101, 102]) await createAndStart(harness, id);
    for (const id of [100, 101, 102]) await waitForAgent(harness, id);
    const oneByOne = harness.sim.criticalPathMs(1);
    expect(oneByOne).toBeLessThanOrEqual(harness.clock.now() - startedAt);
    expect(harness.sim.criticalPathMs(3)).toBeLessThan(oneByOne);
  });

  it('is zero without VMs', () => {
    expect(new SimHarness().sim.criticalPathMs(2)).toBe(0);
  });
});
