// SPDX-License-Identifier: Apache-2.0
// Three replicas whose records are objects of the cluster, under load, with random kills, freezes and restarts of replicas and
// of the API server. Runs for as many minutes as the variable says.
import { it } from 'vitest';
import { SeededRandom } from '../../src/ports/fakes/seeded-random.ts';
import type { Random } from '../../src/ports/random.ts';
import { systemClock } from '../../src/system/index.ts';
import { waitUntil } from './controlplane/index.ts';
import { listNodes } from './support/kube-objects.ts';
import {
  NAMES,
  type ReplicaSet,
  scaleToZero,
  startReplica,
  startReplicaSet,
  targetSize,
  waitForNodes,
} from './support/replica-set.ts';
import { countVmTasks, POOL, waitUntilReady } from './support/simulated-site.ts';

const MINUTES = Number(process.env['E2E_FAULT_MINUTES'] ?? 0);
const SEED = Number(process.env['E2E_SEED'] ?? 1);
const MAX_MACHINES = 30;
/** After it no replica answers with older records: it would know that they are stale. */
const PROPAGATION_MS = 3_000;
const MAX_STALENESS_MS = 25_000;

interface Run extends ReplicaSet {
  readonly random: Random;
  /** Machines that were requested, without those whose deletion was. */
  expected: number;
  created: number;
}

function between(random: Random, from: number, to: number): number {
  return from + Math.floor(random.fraction() * (to - from + 1));
}

const sleep = (ms: number) => systemClock.sleep(ms);

async function readTarget({ client }: Run): Promise<number> {
  let size = -1;
  await waitUntil(
    'a replica answers',
    async () => {
      size = await targetSize(client);
      return true;
    },
    300_000,
  );
  return size;
}

/** A call that failed may have been accepted: its response was lost. */
async function settle(run: Run, change: number): Promise<void> {
  await sleep(MAX_STALENESS_MS);
  const size = await readTarget(run);
  if (size === run.expected + change) apply(run, change);
  else if (size !== run.expected)
    throw new Error(`target ${size} after a failed call, not ${run.expected} or ${change} more`);
}

function apply(run: Run, change: number): void {
  run.expected += change;
  if (change > 0) run.created += change;
}

async function grow(run: Run): Promise<void> {
  const delta = Math.min(between(run.random, 1, 6), MAX_MACHINES - run.expected);
  if (delta <= 0) return;
  await run.client
    .call('NodeGroupIncreaseSize', { id: POOL, delta }, { deadlineMs: 5_000 })
    .then(() => apply(run, delta))
    .catch(() => settle(run, delta));
}

async function shrink(run: Run): Promise<void> {
  const nodes = (await listNodes(run.plane.api).catch(() => []))
    .slice(0, between(run.random, 1, 4))
    .map(({ metadata, spec }) => ({ name: metadata.name, providerID: spec.providerID }));
  const { client } = run;
  const before = await targetSize(client).catch(() => undefined);
  // Nodes of machines that are being deleted already are no members.
  if (before !== run.expected || nodes.length === 0) return;
  await client
    .call('NodeGroupDeleteNodes', { id: POOL, nodes }, { deadlineMs: 5_000 })
    .catch(() => undefined);
  await sleep(PROPAGATION_MS);
  const after = await readTarget(run);
  if (after < run.expected - nodes.length || after > run.expected)
    throw new Error(`target ${after} after the deletion of ${nodes.length} of ${run.expected}`);
  run.expected = after;
}

async function fault(run: Run): Promise<string> {
  const { random, plane, replicas } = run;
  const name = NAMES[between(random, 0, NAMES.length - 1)] ?? 'a';
  const program = replicas.get(name)?.program;
  const kind = random.fraction();
  if (kind < 0.25) {
    await plane.killApiServer();
    await sleep(between(random, 100, 20_000));
    await plane.startApiServer();
    return 'API server restarted';
  }
  if (kind < 0.5) {
    const seconds = between(random, 1, 90);
    program?.sendSignal('SIGSTOP');
    await sleep(seconds * 1_000);
    program?.sendSignal('SIGCONT');
    return `${name} frozen for ${seconds} s`;
  }
  program?.sendSignal(kind < 0.75 ? 'SIGKILL' : 'SIGTERM');
  await program?.waitForExit();
  await sleep(between(random, 0, 5_000));
  await startReplica(run, name);
  return `${name} ${kind < 0.75 ? 'killed' : 'stopped'} and restarted`;
}

it.skipIf(MINUTES === 0)(
  `replicas lose, repeat and leak nothing during ${MINUTES} minutes of faults (seed ${SEED})`,
  async (context) => {
    const random = new SeededRandom(SEED);
    const run: Run = { ...(await startReplicaSet(context)), random, expected: 0, created: 0 };
    const stop = new AbortController();
    const loading = (async () => {
      while (!stop.signal.aborted) {
        await (random.fraction() < 0.6 ? grow(run) : shrink(run));
        await sleep(between(random, 500, 8_000));
      }
    })();
    loading.catch(() => undefined);
    const until = systemClock.monotonic() + MINUTES * 60_000;
    while (systemClock.monotonic() < until) {
      await sleep(between(random, 1_000, 20_000));
      const what = await Promise.race([fault(run), loading.then(() => 'load ended')]);
      process.stderr.write(`${new Date().toISOString()} ${what}; expected ${run.expected}\n`);
    }
    stop.abort();
    await loading;
    for (const replica of run.replicas.values()) await waitUntilReady(replica);
    await waitForNodes(run, run.expected);
    context.expect(await targetSize(run.client)).toBe(run.expected);
    const { created, destroyed } = countVmTasks(run.site);
    process.stderr.write(`${run.created} requested, ${created} created, ${destroyed} destroyed\n`);
    context.expect(created - destroyed).toBe(run.expected);
    context.expect(created).toBeLessThanOrEqual(run.created);
    const left = (await listNodes(run.plane.api)).length - run.expected;
    process.stderr.write(`${left} Nodes without a VM\n`);
    await scaleToZero(run, run.expected, { created, nodesLimitMs: 15 * 60_000 });
  },
  (MINUTES + 20) * 60_000,
);
