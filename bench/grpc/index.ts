// SPDX-License-Identifier: Apache-2.0
// The gRPC server under the Cluster Autoscaler's calls, while the same process creates machines.
import { closeSync, fsyncSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { loadSync } from '@grpc/proto-loader';
import type { GrpcServerOptions } from '../../src/externalgrpc/worker/messages.ts';
import { superviseGrpcWorker } from '../../src/externalgrpc/worker/supervise.ts';
import { createFleet } from '../../src/fleet/index.ts';
import { REGION } from '../../src/fleet/testing/settings.ts';
import type { Machine } from '../../src/model/machine.ts';
import { startThread, systemClock, systemRandom } from '../../src/system/index.ts';
import { aGroup } from '../../test/interop/test-server.ts';
import { type Benchmark, median } from '../benchmark.ts';
import type { Load, Measured } from './load.ts';
import {
  clusterOf,
  hypervisorOf,
  machinesOf,
  poolsOf,
  type Scale,
  settingsOf,
  statePathIn,
  storeWith,
} from './site.ts';

const QUICK: Scale = { pools: 5, machinesPerPool: 50 };
const FULL: Scale = { pools: 50, machinesPerPool: 1_000 };

const PROTOS = join(import.meta.dirname, '../../test/interop/protos');
const SERVICE = 'clusterautoscaler.cloudprovider.v1.externalgrpc.CloudProvider';
const METHODS = loadSync(join(PROTOS, 'c.proto'), { includeDirs: [PROTOS], keepCase: true })[
  SERVICE
];

/** A request as the newest autoscaler encodes it. */
function encodeRequest(rpc: string, request: object): Uint8Array {
  const method: unknown = Object.entries(METHODS ?? {}).find(([name]) => name === rpc)?.[1];
  const { requestSerialize } = method as { requestSerialize: (value: object) => Uint8Array };
  return requestSerialize(request);
}

/** Shares of the autoscaler's calls in a loop over fifty groups: nodes and options dominate. */
function readCalls(machines: readonly Machine[], groups: readonly string[]): Load['reads'] {
  const byId = groups.map((id) => encodeRequest('NodeGroupTargetSize', { id }));
  const none = [new Uint8Array()];
  const nodes = machines
    .filter((_, index) => index % 97 === 0)
    .map(({ nodeName: name = '', providerId: providerID = '' }) =>
      encodeRequest('NodeGroupForNode', { node: { name, providerID } }),
    );
  return [
    { rpc: 'NodeGroupForNode', share: 40, requests: nodes },
    {
      rpc: 'NodeGroupGetOptions',
      share: 30,
      requests: groups.map((id) => encodeRequest('NodeGroupGetOptions', { id })),
    },
    { rpc: 'NodeGroupTargetSize', share: 12, requests: byId },
    { rpc: 'NodeGroupTemplateNodeInfo', share: 6, requests: byId },
    { rpc: 'NodeGroupNodes', share: 4, requests: byId },
    { rpc: 'NodeGroups', share: 4, requests: none },
    { rpc: 'Refresh', share: 2, requests: none },
    { rpc: 'GPULabel', share: 2, requests: none },
  ];
}

export const grpcBenchmark: Benchmark = async ({ quick, say }) => {
  const scale = quick ? QUICK : FULL;
  const folder = mkdtempSync(join(tmpdir(), 'pvescaler-bench-'));
  try {
    say(`setting up ${scale.pools} pools of ${scale.machinesPerPool} machines`);
    const machines = machinesOf(scale);
    const running = await start(scale, machines, folder);
    say('requesting 100 machines and starting the calls');
    const measured = await running.measure(loadOf(scale, machines, { quick, port: running.port }));
    const rssMiB = Math.round(process.memoryUsage().rss / 2 ** 20);
    const passes = await running.stop();
    if (measured.failures > 0) {
      throw new Error(`${measured.failures} calls failed: ${measured.firstFailure}`);
    }
    // Most passes handle single machines; passes over everything are the slowest.
    const passMs = Math.round(Math.max(...passes));
    return buildResult(measured, { rssMiB, fsyncMs: fsyncMs(folder), passMs, ...scale });
  } finally {
    rmSync(folder, { recursive: true });
  }
};

function loadOf(
  scale: Scale,
  machines: readonly Machine[],
  { quick, port }: { readonly quick: boolean; readonly port: number },
): Load {
  const names = poolsOf(scale).map(({ name }) => name);
  return {
    port,
    seconds: quick ? 3 : 20,
    warmUpSeconds: quick ? 1 : 5,
    perSecond: quick ? 100 : 300,
    mutationsPerSecond: 5,
    reads: readCalls(machines, names),
    mutations: names.flatMap((id) =>
      (['NodeGroupIncreaseSize', 'NodeGroupDecreaseTargetSize'] as const).map((rpc, index) => ({
        rpc,
        request: encodeRequest(rpc, { id, delta: index === 0 ? 1 : -1 }),
      })),
    ),
  };
}

/** Driver and gRPC server in this process, each in its own thread, as in `serve`. */
async function start(scale: Scale, machines: readonly Machine[], folder: string) {
  const store = await storeWith(folder, machines);
  const fleet = createFleet({
    store,
    hypervisors: new Map([[REGION, hypervisorOf(machines)]]),
    cluster: clusterOf(machines),
    clock: systemClock,
    random: systemRandom,
    settings: settingsOf(scale),
  });
  const pools = poolsOf(scale);
  const options: GrpcServerOptions = {
    settings: {
      pools: pools.map((pool) => aGroup(pool)),
      pricing: { vcpuHour: 0.01, memoryGiBHour: 0.002 },
      gpu: { label: 'gpu', types: [] },
    },
    state: { path: statePathIn(folder), kubernetes: undefined },
    listen: { host: '127.0.0.1', port: 0 },
    tls: undefined,
    insecure: true,
    expander: undefined,
  };
  const program = new URL('../../src/grpc-worker.ts', import.meta.url);
  const server = await superviseGrpcWorker({
    channel: startThread(program, { name: 'grpc', input: options }),
    forecast: fleet.forecast,
    clock: systemClock,
    warn: () => undefined,
    onCall: () => undefined,
    signal: new AbortController().signal,
  });
  const abort = new AbortController();
  const { passes, events } = measurePasses();
  const driving = fleet.runDriver({ signal: abort.signal, events });
  while (server.waitingFor().length > 0) await systemClock.sleep(50);
  const reason = { by: 'bench', reason: 'machines to create during the calls' };
  for (const { name } of pools) await fleet.request(name, Math.ceil(100 / pools.length), reason);
  return {
    port: server.port,
    measure: runLoadWorker,
    async stop(): Promise<readonly number[]> {
      abort.abort();
      await Promise.all([driving, server.close()]);
      await store.close();
      return passes;
    },
  };
}

function measurePasses() {
  const passes: number[] = [];
  let startedAt = 0;
  const onPassBegin = () => {
    startedAt = performance.now();
  };
  const onPassEnd = () => void passes.push(performance.now() - startedAt);
  return { passes, events: { onPassBegin, onPassEnd } };
}

function runLoadWorker(load: Load): Promise<Measured> {
  const { promise, resolve, reject } = Promise.withResolvers<Measured>();
  const worker = new Worker(new URL('./load.ts', import.meta.url), {
    workerData: load,
    // Short garbage collections in the load generator itself.
    resourceLimits: { maxYoungGenerationSizeMb: 6 },
  });
  worker.once('message', resolve);
  worker.once('error', reject);
  return promise;
}

function buildResult(measured: Measured, others: Readonly<Record<string, number>>) {
  const p99Ms = Object.fromEntries(
    Object.entries(measured.calls).map(([rpc, all]) => [rpc, percentile(all, 0.99)]),
  );
  const p50Ms = Object.fromEntries(
    Object.entries(measured.calls).map(([rpc, all]) => [rpc, percentile(all, 0.5)]),
  );
  const count = Object.values(measured.calls).reduce(
    (sum, all) => sum + all.length,
    measured.mutations.length,
  );
  const figures = {
    p99Ms,
    p50Ms,
    mutationP99Ms: percentile(measured.mutations, 0.99),
    rpcPerSecond: Math.round(count / measured.seconds),
    ...others,
  };
  const table = [
    ...Object.keys(p99Ms).map(
      (rpc) => `${rpc.padEnd(28)} p50 ${p50Ms[rpc]} ms, p99 ${p99Ms[rpc]} ms`,
    ),
    `mutations p99 ${figures.mutationP99Ms} ms; ${JSON.stringify({ rpcPerSecond: figures.rpcPerSecond, ...others })}`,
  ];
  return { figures, table };
}

function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  const value =
    sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
  return Math.round(value * 100) / 100;
}

/** The duration of one flush to this disk: no durable write is faster. */
function fsyncMs(folder: string): number {
  const file = openSync(join(folder, 'probe'), 'w');
  const page = Buffer.alloc(4_096);
  const times = Array.from({ length: 30 }, () => {
    const since = performance.now();
    writeSync(file, page);
    fsyncSync(file);
    return performance.now() - since;
  });
  closeSync(file);
  return Math.round(median(times) * 100) / 100;
}
