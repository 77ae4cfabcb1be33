// SPDX-License-Identifier: Apache-2.0
// Measures whether the heap of the simulator grows: creates, starts, stops and destroys VMs on virtual time. Run it
// by hand with a million tasks:
//   node --expose-gc src/sim/proxmox/testing/heap-growth.ts
import { getHeapStatistics } from 'node:v8';
import { SimHarness } from './sim-harness.ts';

export interface HeapGrowth {
  readonly tasks: number;
  /** Heap size after the first tenth of the tasks. */
  readonly earlyBytes: number;
  /** Heap size at the end. */
  readonly lateBytes: number;
}

const CONCURRENT_VMS = 20;

function heapBytes(): number {
  if ('gc' in globalThis && typeof globalThis.gc === 'function') globalThis.gc();
  return getHeapStatistics().used_heap_size;
}

async function runVmLifecycles(harness: SimHarness): Promise<void> {
  const ids = Array.from({ length: CONCURRENT_VMS }, (_, index) => 100 + index);
  const each = (
    method: string,
    path: (id: number) => string,
    params: (id: number) => Record<string, number> = () => ({}),
  ) => Promise.all(ids.map((id) => harness.call(method, path(id), params(id))));
  await each(
    'POST',
    () => '/nodes/pve1/qemu',
    (vmid) => ({ vmid }),
  );
  await harness.clock.advance(5000);
  await each('POST', (id) => `/nodes/pve1/qemu/${id}/status/start`);
  await harness.clock.advance(5000);
  await each('POST', (id) => `/nodes/pve1/qemu/${id}/status/stop`);
  await harness.clock.advance(5000);
  await each('DELETE', (id) => `/nodes/pve1/qemu/${id}`);
  await harness.clock.advance(5000);
}

export async function measureHeapGrowth(count: number): Promise<HeapGrowth> {
  const harness = new SimHarness();
  let earlyBytes = 0;
  while (harness.sim.inspect().tasksStarted < count) {
    await runVmLifecycles(harness);
    if (earlyBytes === 0 && harness.sim.inspect().tasksStarted >= count / 10)
      earlyBytes = heapBytes();
  }
  const { tasksStarted, vms, heldLocks, runningTasks } = harness.sim.inspect();
  if (vms.length + heldLocks.length + runningTasks.length > 0)
    throw new Error('VMs, locks or tasks remain after all VMs were destroyed');
  return { tasks: tasksStarted, earlyBytes, lateBytes: heapBytes() };
}

if (import.meta.main) {
  const { tasks, earlyBytes, lateBytes } = await measureHeapGrowth(1_000_000);
  const grown = Math.round((lateBytes - earlyBytes) / 2 ** 20);
  if (grown > 20) throw new Error(`the heap grew by ${grown} MiB over ${tasks} tasks`);
}
