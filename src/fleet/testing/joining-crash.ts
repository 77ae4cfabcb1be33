// SPDX-License-Identifier: Apache-2.0
// Crash points of machines that join a cluster: after each durable write, and at each mutating call to Proxmox or
// Kubernetes. The next process must end with exactly the requested machines on both sides.
import { expect } from 'vitest';
import { STARTUP_TAINT } from '../../bootstrap/index.ts';
import { DRAIN_TAINT } from '../../model/drain.ts';
import { AUTOSCALER } from '../../model/intent.ts';
import { vmProviderId } from '../../model/provider-id.ts';
import { MemoryStore, SimulatedCrash } from '../../ports/fakes/memory-store.ts';
import { aClusterPod } from '../../ports/fakes/sample-cluster.ts';
import type { VirtualClock } from '../../ports/fakes/virtual-clock.ts';
import type { Store } from '../../ports/store.ts';
import type { CheckDrain } from '../context/options.ts';
import {
  type CrashableRecords,
  type CrashableStore,
  CrashingProcess,
  type CrashPoint,
} from './crashing-process.ts';
import { aJoiningTestFleet, type JoiningTestFleet, joiningSettings } from './joining-test-fleet.ts';
import { REGION } from './settings.ts';
import { aFleet, existingResources, machinesIn, REASON, untilAtRest } from './test-fleet.ts';

export interface Scenario {
  readonly name: string;
  readonly before: number;
  readonly expected: number;
  /** How the last machine is removed; absent: without a drain. */
  readonly drain?: 'complete' | 'refused' | 'blocked';
}

export const SCENARIOS: readonly Scenario[] = [
  { name: 'create', before: 0, expected: 2 },
  { name: 'delete', before: 2, expected: 1 },
  { name: 'drain', before: 2, expected: 1, drain: 'complete' },
  { name: 'undo a drain that the check refuses', before: 2, expected: 2, drain: 'refused' },
  { name: 'undo a drain that timed out', before: 2, expected: 2, drain: 'blocked' },
];

/** Where the records are. */
export interface CrashBench {
  /** For the next process. */
  open(): Promise<Store>;
  readonly records: CrashableRecords<CrashableStore>;
  /** The records are lost. */
  lose(): Promise<Store>;
}

type OpenBench = (clock: VirtualClock) => CrashBench;

const openMemoryBench: OpenBench = (clock) => {
  const store = new MemoryStore({ clock });
  return {
    open: () => Promise.resolve(store),
    records: store,
    lose: () => Promise.resolve(new MemoryStore({ clock })),
  };
};

/** A fleet whose records are not in the memory store. */
interface CrashFleet extends Omit<JoiningTestFleet, 'store'> {
  readonly store: Store;
  readonly bench: CrashBench;
}

async function prepare(scenario: Scenario, openBench: OpenBench): Promise<CrashFleet> {
  const parts = aJoiningTestFleet();
  const bench = openBench(parts.clock);
  const store = await bench.open();
  const fleet = aFleet({ ...parts, store, settings: joiningSettings(), seed: 1 });
  return prepareMachines({ ...parts, store, bench, fleet }, scenario);
}

async function prepareMachines(
  testFleet: CrashFleet,
  { before, expected, drain }: Scenario,
): Promise<CrashFleet> {
  testFleet.guests.behaviour = { withoutProviderId: true };
  if (before > 0) {
    await testFleet.fleet.scaleTo('workers', before, REASON);
    await untilAtRest(testFleet.fleet, testFleet);
  }
  if (drain === undefined) await testFleet.fleet.scaleTo('workers', expected, REASON);
  else await requestDrain(testFleet, drain);
  return testFleet;
}

const DRAIN_TIMEOUT_MS = 15_000;

/** Of one machine, whose Node has two pods. */
async function requestDrain(
  { store, cluster, fleet }: CrashFleet,
  how: NonNullable<Scenario['drain']>,
): Promise<void> {
  const [machine] = await machinesIn(store);
  if (machine?.nodeName === undefined) throw new Error('there is no ready machine');
  const { state } = cluster;
  for (const name of ['web-0', 'web-1'])
    state.putPod(aClusterPod({ name, nodeName: machine.nodeName }));
  if (how === 'blocked') state.protectedPods.set('default/web-1', 'a budget');
  const by = how === 'refused' ? AUTOSCALER : 'test';
  const machines = [{ id: machine.id }];
  await fleet.drain({ ...REASON, by, machines, timeoutMs: DRAIN_TIMEOUT_MS });
}

const refuseDrain: CheckDrain = () => Promise.resolve({ ok: false, reason: 'it is needed' });

async function runUntilCrash(
  testFleet: CrashFleet,
  crashPoint: CrashPoint,
): Promise<CrashingProcess<CrashableStore>> {
  const { records } = testFleet.bench;
  const process = new CrashingProcess(records, testFleet.hypervisor, crashPoint);
  const { store, hypervisor } = process;
  await store.open?.();
  const cluster = process.wrap(testFleet.cluster);
  const settings = joiningSettings();
  const parts = { ...testFleet, store, hypervisor, cluster, settings };
  const fleet = aFleet({ ...parts, seed: 2, checkDrain: refuseDrain });
  await untilAtRest(fleet, { ...testFleet, store }).catch((error: unknown) => {
    if (!(error instanceof SimulatedCrash)) throw error;
  });
  return process;
}

async function expectExactly(testFleet: CrashFleet, expected: number): Promise<void> {
  const left = existingResources(testFleet.hypervisor);
  const alive = (await machinesIn(testFleet.store)).filter(({ phase }) => phase === 'ready');
  expect(left.vms).toHaveLength(expected);
  expect(left.machines.toSorted()).toEqual(alive.map(({ id }) => id).sort());
  expect(left.isos).toEqual([]);
  const nodes = [...testFleet.cluster.state.nodes.values()];
  expect(nodes.map(({ systemUuid }) => systemUuid).sort()).toEqual(left.machines.toSorted());
  for (const { id, placement, nodeName, nodeUid, providerId } of alive) {
    const node = nodes.find(({ systemUuid }) => systemUuid === id);
    expect(node).toMatchObject({
      name: nodeName,
      uid: nodeUid,
      providerId,
      ready: true,
      labels: { 'node-role.kubernetes.io/worker': '' },
    });
    expect(providerId).toBe(vmProviderId(REGION, placement?.vmId ?? 0));
    const taints = node?.taints.map(({ key }) => key);
    expect(taints).not.toContain(STARTUP_TAINT.key);
    expect(taints).not.toContain(DRAIN_TAINT.key);
    expect(node?.unschedulable).toBe(false);
  }
  expect(testFleet.cluster.state.existingTokens).toEqual([]);
  await expectNoSecretKept(testFleet);
}

async function expectNoSecretKept({ store, cluster }: CrashFleet): Promise<void> {
  const kept = JSON.stringify([await machinesIn(store), await store.journal.read()]);
  for (const { token } of cluster.state.tokens) expect(kept).not.toContain(token.split('.')[1]);
}

async function expectRecovery(crashed: CrashFleet, expected: number): Promise<void> {
  const testFleet = { ...crashed, store: await crashed.bench.open() };
  const settings = joiningSettings();
  const fleet = aFleet({ ...testFleet, settings, seed: 3, checkDrain: refuseDrain });
  await untilAtRest(fleet, testFleet);
  await expectExactly(testFleet, expected);
}

async function expectRecoveryWithoutDatabase(
  testFleet: CrashFleet,
  expected: number,
): Promise<void> {
  const fresh = { ...testFleet, store: await testFleet.bench.lose() };
  const fleet = aFleet({ ...fresh, settings: joiningSettings(), seed: 4 });
  await untilAtRest(fleet, fresh);
  await fleet.scaleTo('workers', expected, REASON);
  await untilAtRest(fleet, fresh);
  // The Node of a machine whose record was lost is orphaned, and is deleted after nodeLostAfterMs.
  for (let pass = 0; pass < 8; pass += 1) {
    await testFleet.clock.advance(60_000);
    await untilAtRest(fleet, fresh);
  }
  await expectExactly(fresh, expected);
}

/** All crash points of a run without a crash, in their order, and the calls of that run. */
export async function crashPointsOf(
  scenario: Scenario,
  openBench: OpenBench = openMemoryBench,
): Promise<{ readonly crashPoints: readonly CrashPoint[]; readonly calls: readonly string[] }> {
  const { writes, calls } = await runUntilCrash(await prepare(scenario, openBench), {
    kind: 'never',
  });
  const crashPoints: CrashPoint[] = [
    ...Array.from({ length: writes }, (_, at) => ({ kind: 'write', number: at + 1 }) as const),
    ...calls.flatMap((_, at) => [
      { kind: 'unseen', number: at + 1 } as const,
      { kind: 'seen', number: at + 1 } as const,
    ]),
  ];
  return { crashPoints, calls };
}

/** With the database and without it. */
export async function expectRecoveryAfter(
  scenario: Scenario,
  crashPoint: CrashPoint,
  openBench: OpenBench = openMemoryBench,
): Promise<void> {
  for (const expectation of [expectRecovery, expectRecoveryWithoutDatabase]) {
    const testFleet = await prepare(scenario, openBench);
    await runUntilCrash(testFleet, crashPoint);
    await expectation(testFleet, scenario.expected).catch((cause: unknown) => {
      throw new Error(`after ${JSON.stringify(crashPoint)}, ${expectation.name}`, { cause });
    });
  }
}
