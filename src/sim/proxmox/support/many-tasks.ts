// SPDX-License-Identifier: Apache-2.0
// Does the simulator stay small? Creates, starts, stops and destroys VMs over and over on virtual time and
// measures what remains. Run by hand for the long version:
//   node --expose-gc src/sim/proxmox/support/many-tasks.ts
import { getHeapStatistics } from 'node:v8';
import { Bench } from './bench.ts';

export interface Growth {
  readonly tasks: number;
  /** Heap after the first tenth, and at the end. */
  readonly earlyBytes: number;
  readonly lateBytes: number;
}

const AT_ONCE = 20;

function heapBytes(): number {
  if ('gc' in globalThis && typeof globalThis.gc === 'function') globalThis.gc();
  return getHeapStatistics().used_heap_size;
}

async function oneRound(bench: Bench): Promise<void> {
  const ids = Array.from({ length: AT_ONCE }, (_, index) => 100 + index);
  const each = (
    method: string,
    path: (id: number) => string,
    params: (id: number) => Record<string, number> = () => ({}),
  ) => Promise.all(ids.map((id) => bench.call(method, path(id), params(id))));
  await each(
    'POST',
    () => '/nodes/pve1/qemu',
    (vmid) => ({ vmid }),
  );
  await bench.clock.advance(5000);
  await each('POST', (id) => `/nodes/pve1/qemu/${id}/status/start`);
  await bench.clock.advance(5000);
  await each('POST', (id) => `/nodes/pve1/qemu/${id}/status/stop`);
  await bench.clock.advance(5000);
  await each('DELETE', (id) => `/nodes/pve1/qemu/${id}`);
  await bench.clock.advance(5000);
}

export async function manyTasks(count: number): Promise<Growth> {
  const bench = new Bench();
  let earlyBytes = 0;
  while (bench.sim.inspect().tasksStarted < count) {
    await oneRound(bench);
    if (earlyBytes === 0 && bench.sim.inspect().tasksStarted >= count / 10)
      earlyBytes = heapBytes();
  }
  const { tasksStarted, vms, heldLocks, runningTasks } = bench.sim.inspect();
  if (vms.length + heldLocks.length + runningTasks.length > 0)
    throw new Error('something was left behind');
  return { tasks: tasksStarted, earlyBytes, lateBytes: heapBytes() };
}

if (import.meta.main) {
  const { tasks, earlyBytes, lateBytes } = await manyTasks(1_000_000);
  const grown = Math.round((lateBytes - earlyBytes) / 2 ** 20);
  if (grown > 20) throw new Error(`${tasks} tasks left ${grown} MiB behind`);
}
