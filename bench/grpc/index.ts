// SPDX-License-Identifier: Apache-2.0
// The gRPC face under the Cluster Autoscaler's calls, while machines are being made by the same process.
import { closeSync, fsyncSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { create, type DescMessage, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import {
  NodeGroupAutoscalingOptionsRequestSchema,
  NodeGroupDecreaseTargetSizeRequestSchema,
  NodeGroupForNodeRequestSchema,
  NodeGroupIncreaseSizeRequestSchema,
  NodeGroupTargetSizeRequestSchema,
} from '../../src/externalgrpc/gen/externalgrpc/cloud_provider_pb.js';
import { serveExternalGrpc } from '../../src/externalgrpc/index.ts';
import { createFleet } from '../../src/fleet/index.ts';
import { REGION } from '../../src/fleet/testing/settings.ts';
import type { Machine } from '../../src/model/machine.ts';
import { systemClock, systemRandom } from '../../src/system/index.ts';
import { aGroup } from '../../test/interop/stage.ts';
import { type Benchmark, median } from '../benchmark.ts';
import type { Load, Measured } from './load.ts';
import { hypervisorOf, machinesOf, poolsOf, type Scale, settingsOf, storeWith } from './site.ts';

const QUICK: Scale = { pools: 5, machinesPerPool: 50 };
const FULL: Scale = { pools: 50, machinesPerPool: 1_000 };

function bytes<S extends DescMessage>(schema: S, value: MessageInitShape<S>): Uint8Array {
  return toBinary(schema, create(schema, value));
}

/** Shares of the autoscaler's calls in a loop over fifty groups: nodes and options dominate. */
function readsOf(machines: readonly Machine[], groups: readonly string[]): Load['reads'] {
  const byId = groups.map((id) => bytes(NodeGroupTargetSizeRequestSchema, { id }));
  const none = [new Uint8Array()];
  const nodes = machines
    .filter((_, index) => index % 97 === 0)
    .map(({ nodeName: name = '', providerId: providerID = '' }) =>
      bytes(NodeGroupForNodeRequestSchema, { node: { name, providerID } }),
    );
  return [
    { rpc: 'NodeGroupForNode', share: 40, requests: nodes },
    {
      rpc: 'NodeGroupGetOptions',
      share: 30,
      requests: groups.map((id) => bytes(NodeGroupAutoscalingOptionsRequestSchema, { id })),
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
  const abort = new AbortController();
  try {
    say(`${scale.pools} pools of ${scale.machinesPerPool} machines are set up`);
    const machines = machinesOf(scale);
    const store = await storeWith(folder, machines);
    const settings = settingsOf(scale);
    const hypervisors = new Map([[REGION, hypervisorOf(machines)]]);
    const fleet = createFleet({
      store,
      hypervisors,
      clock: systemClock,
      random: systemRandom,
      settings,
    });
    const pools = poolsOf(scale);
    const face = await serveExternalGrpc({
      fleet,
      settings: {
        groups: pools.map((pool) => aGroup(pool)),
        pricing: { vcpuHour: 0.01, memoryGiBHour: 0.002 },
        gpu: { label: 'gpu', types: [] },
      },
      listen: { host: '127.0.0.1', port: 0 },
      tls: undefined,
      insecure: true,
      expander: undefined,
      clock: systemClock,
      read: () => Promise.reject(new Error('no files')),
      warn: () => undefined,
    });
    const rounds: number[] = [];
    let begunAt = 0;
    const driving = fleet.drive({
      signal: abort.signal,
      events: {
        onRoundBegin: () => {
          begunAt = performance.now();
        },
        onRoundEnd: () => void rounds.push(performance.now() - begunAt),
      },
    });
    while (face.waitingFor().length > 0) await systemClock.sleep(50);
    say('100 machines are asked for, and the calls begin');
    for (const { name } of pools)
      await fleet.request(name, Math.ceil(100 / pools.length), {
        by: 'bench',
        reason: 'to have some under way',
      });
    const names = pools.map(({ name }) => name);
    const load: Load = {
      port: face.port,
      seconds: quick ? 3 : 20,
      perSecond: quick ? 100 : 300,
      mutationsPerSecond: 5,
      reads: readsOf(machines, names),
      mutations: names.flatMap((id) => [
        {
          rpc: 'NodeGroupIncreaseSize',
          request: bytes(NodeGroupIncreaseSizeRequestSchema, { id, delta: 1 }),
        },
        {
          rpc: 'NodeGroupDecreaseTargetSize',
          request: bytes(NodeGroupDecreaseTargetSizeRequestSchema, { id, delta: -1 }),
        },
      ]),
    };
    const measured = await fromWorker(load);
    const rssMiB = Math.round(process.memoryUsage().rss / 2 ** 20);
    abort.abort();
    await Promise.all([driving, face.close()]);
    await store.close();
    if (measured.failures > 0)
      throw new Error(`${measured.failures} calls failed: ${measured.firstFailure}`);
    return outcome(measured, {
      rssMiB,
      fsyncMs: fsyncMs(folder),
      roundMs: Math.round(median(rounds)),
      ...scale,
    });
  } finally {
    abort.abort();
    rmSync(folder, { recursive: true });
  }
};

function fromWorker(load: Load): Promise<Measured> {
  const { promise, resolve, reject } = Promise.withResolvers<Measured>();
  const worker = new Worker(new URL('./load.ts', import.meta.url), { workerData: load });
  worker.once('message', resolve);
  worker.once('error', reject);
  return promise;
}

function outcome(measured: Measured, others: Readonly<Record<string, number>>) {
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

/** What one flush to this disk takes: no durable write is faster. */
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
