// SPDX-License-Identifier: Apache-2.0
// Writes to both stores: SQLite in a temporary folder, and Kubernetes with etcd and the API server on this machine; then
// start-up and memory of the Kubernetes store with many machines.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { RESOURCE_DEFINITIONS } from '../../src/kubernetes/index.ts';
import { aMachine, aMachineId } from '../../src/ports/fakes/sample-records.ts';
import type { Store } from '../../src/ports/store.ts';
import { openSqliteStore } from '../../src/store/index.ts';
import { systemClock, systemRandom } from '../../src/system/index.ts';
import { setup } from '../../test/e2e/controlplane/build.ts';
import {
  type ControlPlane,
  startControlPlane,
  waitUntil,
} from '../../test/e2e/controlplane/index.ts';
import { type BenchmarkOptions, type Outcome, readNodeOptionsOfImage } from '../benchmark.ts';
import { NAMESPACE, openBenchStore } from './open-bench-store.ts';

const FULL = { writes: 2_000, machines: 5_000 };
const QUICK = { writes: 50, machines: 100 };
const CONCURRENCY = 16;

interface WriteFigures {
  readonly createsPerSecond: number;
  readonly createP99Ms: number;
  readonly replacesPerSecond: number;
  readonly replaceP99Ms: number;
}

interface StartFigures {
  readonly startSeconds: number;
  readonly startCpuSeconds: number;
  readonly heapMiB: number;
  readonly rssMiB: number;
}

export async function storeBenchmark({ quick, say }: BenchmarkOptions): Promise<Outcome> {
  const { writes, machines } = quick ? QUICK : FULL;
  const folder = mkdtempSync(join(tmpdir(), 'pvescaler-bench-store-'));
  say('starting etcd and the API server');
  setup();
  const plane = await startControlPlane();
  try {
    await installDefinitions(plane);
    say(`${writes} creations and replacements, ${CONCURRENCY} at a time, in each store`);
    const sqlite = await openSqliteStore({
      path: join(folder, 'state.db'),
      clock: systemClock,
      random: systemRandom,
    });
    const onSqlite = await measureWrites(sqlite, writes);
    await sqlite.close();
    const store = await openBenchStore(plane.kubeconfig);
    const onKubernetes = await measureWrites(store, writes);
    say(`filling the Kubernetes store with ${machines} machines`);
    await inParallel(machines - writes, (index) => createMachine(store, writes + index));
    await store.close();
    const { heapMiB: emptyHeapMiB } = measureStart(plane.kubeconfig, 'default');
    const start = { ...measureStart(plane.kubeconfig, NAMESPACE), emptyHeapMiB };
    const figures = { writes, machines, sqlite: onSqlite, kubernetes: onKubernetes, start };
    return { figures, table: tableOf(figures) };
  } finally {
    await plane.stop();
    rmSync(folder, { recursive: true });
  }
}

async function installDefinitions({ api }: ControlPlane): Promise<void> {
  await api.create('/api/v1/namespaces', { metadata: { name: NAMESPACE } });
  for (const definition of RESOURCE_DEFINITIONS) {
    await api.create('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', definition);
  }
  await waitUntil('the kinds are served', async () => {
    const lists = RESOURCE_DEFINITIONS.map(({ metadata }) =>
      api.call('GET', `/apis/pvescaler.dev/v1alpha1/${metadata.name.split('.')[0]}`),
    );
    return (await Promise.all(lists)).every(({ status }) => status === 200);
  });
}

async function measureWrites(store: Store, count: number): Promise<WriteFigures> {
  const creations = await inParallel(count, (index) => createMachine(store, index));
  const replacements = await inParallel(count, async (index) => {
    const machine = await store.machines.get(aMachineId(index + 1));
    if (machine === undefined) throw new Error('a machine is missing');
    const value = { ...machine.value, phase: 'placed' as const, phaseSince: systemClock.now() };
    await store.machines.replace(machine, value);
  });
  return {
    createsPerSecond: creations.perSecond,
    createP99Ms: creations.p99Ms,
    replacesPerSecond: replacements.perSecond,
    replaceP99Ms: replacements.p99Ms,
  };
}

async function createMachine(store: Store, index: number): Promise<void> {
  const id = aMachineId(index + 1);
  const at = systemClock.now();
  await store.machines.create(id, aMachine({ id, intent: id, requestedAt: at, phaseSince: at }));
}

async function inParallel(count: number, work: (index: number) => Promise<void>) {
  const times: number[] = [];
  let next = 0;
  const startedAt = systemClock.monotonic();
  const run = async () => {
    while (next < count) {
      const index = next;
      next += 1;
      const from = systemClock.monotonic();
      await work(index);
      times.push(systemClock.monotonic() - from);
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, run));
  const seconds = (systemClock.monotonic() - startedAt) / 1_000;
  times.sort((a, b) => a - b);
  return {
    perSecond: Math.round(times.length / seconds),
    p99Ms: Number((times[Math.floor(times.length * 0.99)] ?? 0).toFixed(1)),
  };
}

/** In a process of its own, with the options of the image. */
function measureStart(kubeconfig: string, namespace: string): StartFigures {
  const output = execFileSync(
    process.execPath,
    ['--expose-gc', join(import.meta.dirname, 'client.ts'), kubeconfig, namespace],
    { encoding: 'utf8', env: { ...process.env, NODE_OPTIONS: readNodeOptionsOfImage() } },
  );
  return JSON.parse(output) as StartFigures;
}

function tableOf({
  sqlite,
  kubernetes,
  start,
  machines,
}: {
  readonly sqlite: WriteFigures;
  readonly kubernetes: WriteFigures;
  readonly start: StartFigures & { readonly emptyHeapMiB: number };
  readonly machines: number;
}): readonly string[] {
  const row = (name: string, { ...figures }: WriteFigures) =>
    `${name.padEnd(11)} create ${figures.createsPerSecond}/s, p99 ${figures.createP99Ms} ms; ` +
    `replace ${figures.replacesPerSecond}/s, p99 ${figures.replaceP99Ms} ms`;
  return [
    row('SQLite', sqlite),
    row('Kubernetes', kubernetes),
    `start with ${machines} machines: ${start.startSeconds} s (${start.startCpuSeconds} s of CPU time), ` +
      `heap ${start.heapMiB} MiB (${start.emptyHeapMiB} without machines), rss ${start.rssMiB} MiB`,
  ];
}
