// SPDX-License-Identifier: Apache-2.0
// Crash points of machines that join a cluster, with records in Kubernetes: after writes to the API server and to the local
// file, and at calls to Proxmox and Kubernetes. What the process has deferred is lost.
import { describe, expect, it } from 'vitest';
import {
  type CrashBench,
  crashPointsOf,
  expectRecoveryAfter,
  type Scenario,
} from '../../src/fleet/testing/joining-crash.ts';
import { MemoryStore } from '../../src/ports/fakes/memory-store.ts';
import { SeededRandom } from '../../src/ports/fakes/seeded-random.ts';
import type { VirtualClock } from '../../src/ports/fakes/virtual-clock.ts';
import { KubernetesRecords, type ProcessStore } from '../soak/kubernetes-records.ts';

const SAMPLED = 6;

const SCENARIOS: readonly Scenario[] = [
  { name: 'create', before: 0, expected: 1 },
  { name: 'delete', before: 1, expected: 0 },
  { name: 'drain', before: 1, expected: 0, drain: 'complete' },
  { name: 'undo a drain', before: 1, expected: 1, drain: 'blocked' },
];

/** Crashes that lost something deferred. */
let losses = 0;

function openBench(clock: VirtualClock): CrashBench {
  const records = new KubernetesRecords(clock, 1);
  const local = new MemoryStore({ clock });
  let last: ProcessStore | undefined;
  const openStore = (onWrite: () => void = () => undefined): ProcessStore => {
    last = records.open({
      local,
      seed: 1,
      fence: { mayAct: () => true, beginRequest: () => () => undefined },
      observer: {
        beforeWrite: () => Promise.resolve(),
        afterWrite: () => undefined,
        afterLateWrite: () => Promise.resolve(),
        onWrite,
      },
      onError: () => undefined,
    });
    return last;
  };
  const open = async () => {
    if (last !== undefined) await endProcess(last, records);
    const store = openStore();
    await store.open();
    return store;
  };
  return {
    open,
    records: { reopen: ({ onWrite }) => openStore(onWrite) },
    lose: () => {
      records.lose();
      return open();
    },
  };
}

async function endProcess(store: ProcessStore, records: KubernetesRecords): Promise<void> {
  const seen = (await store.machines.list()).map(({ value }) => JSON.stringify(value));
  const stored = records.list('machines').map((value) => JSON.stringify(value));
  if (seen.join() !== stored.join()) losses += 1;
  store.crashAfterWrites(0);
  await store.close();
}

describe.each(SCENARIOS)('crash points with records in Kubernetes, $name', (scenario) => {
  it('recovers from each of a sample', async () => {
    const random = new SeededRandom(17);
    const left = [...(await crashPointsOf(scenario, openBench)).crashPoints];
    expect(left.length).toBeGreaterThan(SAMPLED);
    for (let drawn = 0; drawn < SAMPLED; drawn += 1) {
      const [crashPoint] = left.splice(random.integer(left.length), 1);
      if (crashPoint !== undefined) await expectRecoveryAfter(scenario, crashPoint, openBench);
    }
  });
});

it('some of the crashes lost deferred writes', () => {
  expect(losses).toBeGreaterThan(0);
});
