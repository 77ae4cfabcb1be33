// SPDX-License-Identifier: Apache-2.0
// A fleet on fakes with the gRPC face on a real socket in front of it.
import {
  type ExternalGrpcOptions,
  type FaceSettings,
  type GroupSettings,
  type RunningExternalGrpc,
  serveExternalGrpc,
} from '../../src/externalgrpc/index.ts';
import type { FleetSettings, PoolSettings } from '../../src/fleet/index.ts';
import { aPool, someSettings } from '../../src/fleet/testing/settings.ts';
import {
  aTestFleet,
  onePass,
  type TestFleet,
  untilAtRest,
} from '../../src/fleet/testing/test-fleet.ts';
import { type Generation, RpcClient } from './client.ts';

export { aPool, REGION } from '../../src/fleet/testing/settings.ts';

const MIB = 2 ** 20;

export function aGroup(pool: PoolSettings, overrides: Partial<GroupSettings> = {}): GroupSettings {
  return {
    name: pool.name,
    regions: pool.regions,
    min: pool.limits.min,
    max: pool.limits.max,
    size: pool.size,
    zone: undefined,
    architecture: 'amd64',
    labels: { tier: 'test' },
    groupLabel: 'autoscaler.proxmox/group',
    taints: [{ key: 'dedicated', value: 'test', effect: 'NoSchedule' }],
    instanceType: 'medium',
    gpu: undefined,
    extendedResources: {},
    capacity: {
      maxPods: 110,
      kubeReserved: { cpuMilli: 100, memoryBytes: 256 * MIB, diskBytes: 1_024 * MIB },
      systemReserved: { cpuMilli: 100, memoryBytes: 128 * MIB, diskBytes: 0 },
      evictionThreshold: { memoryBytes: 100 * MIB, diskPercentage: 10 },
    },
    pricePerHour: undefined,
    options: {
      scaleDownUtilizationThreshold: undefined,
      scaleDownGpuUtilizationThreshold: undefined,
      scaleDownUnneededTimeMs: undefined,
      scaleDownUnreadyTimeMs: undefined,
      maxNodeProvisionTimeMs: undefined,
      zeroOrMaxNodeScaling: undefined,
      ignoreDaemonSetsUtilization: undefined,
    },
    ...overrides,
  };
}

export interface StageOptions {
  readonly pools?: readonly PoolSettings[];
  readonly fleet?: Partial<FleetSettings>;
  readonly group?: Partial<GroupSettings>;
  readonly face?: Partial<FaceSettings>;
  readonly serve?: Partial<ExternalGrpcOptions>;
  /** Whether a round has been run before the first call. */
  readonly isReady?: boolean;
}

export interface Stage extends TestFleet {
  readonly face: RunningExternalGrpc;
  readonly warnings: readonly string[];
  readonly client: RpcClient;
  readonly clientOf: (generation: Generation) => RpcClient;
  readonly round: () => Promise<void>;
  readonly rest: () => Promise<void>;
}

/** Runs a test on a stage of its own, and clears it, however it ends. */
export function onStage(options: StageOptions, test: (stage: Stage) => Promise<void>) {
  return async (): Promise<void> => {
    const pools = options.pools ?? [aPool()];
    const bench = aTestFleet(someSettings(pools, { unplacedTimeoutMs: 30_000, ...options.fleet }));
    await prepare(bench, options.isReady ?? true);
    const warnings: string[] = [];
    const face = await serveExternalGrpc({
      fleet: bench.fleet,
      settings: {
        groups: pools.map((pool) => aGroup(pool, options.group)),
        pricing: { vcpuHour: 0.01, memoryGiBHour: 0.002 },
        gpu: { label: 'autoscaler.proxmox/gpu', types: [] },
        ...options.face,
      },
      listen: { host: '127.0.0.1', port: 0 },
      tls: undefined,
      insecure: true,
      expander: undefined,
      clock: bench.clock,
      read: () => Promise.reject(new Error('no files here')),
      warn: (message) => void warnings.push(message),
      ...options.serve,
    });
    const clients: RpcClient[] = [];
    const clientOf = (generation: Generation) => {
      const client = new RpcClient(`127.0.0.1:${face.port}`, `${generation}.proto`);
      clients.push(client);
      return client;
    };
    try {
      await test({
        ...bench,
        face,
        warnings,
        client: clientOf('c'),
        clientOf,
        round: async () => void (await onePass(bench.fleet, bench)),
        rest: () => untilAtRest(bench.fleet, bench),
      });
    } finally {
      for (const client of clients) client.close();
      // Connections that do not end by themselves are made to, after a while.
      const closing = face.close();
      await bench.clock.advance(10_000);
      await closing;
    }
  };
}

async function prepare(bench: TestFleet, isReady: boolean): Promise<void> {
  if (isReady) await onePass(bench.fleet, bench);
}
