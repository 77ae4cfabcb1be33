// SPDX-License-Identifier: Apache-2.0
// A fleet on fakes, with the gRPC server on a real socket.
import type { PoolConfig } from '../../src/config/types/index.ts';
import {
  CurrentSettings,
  type ExternalGrpcOptions,
  type ExternalGrpcSettings,
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

export function aGroup(pool: PoolSettings, overrides: Partial<PoolConfig> = {}): PoolConfig {
  return {
    ...pool,
    labels: { tier: 'test' },
    taints: [{ key: 'dedicated', value: 'test', effect: 'NoSchedule' }],
    instanceType: 'medium',
    capacity: {
      maxPods: 110,
      kubeReserved: { cpuMilli: 100, memoryBytes: 256 * MIB, diskBytes: 1_024 * MIB },
      systemReserved: { cpuMilli: 100, memoryBytes: 128 * MIB, diskBytes: 0 },
      evictionThreshold: { memoryBytes: 100 * MIB, diskPercentage: 10 },
    },
    ...overrides,
  };
}

export interface ServerFixtureOptions {
  readonly pools?: readonly PoolSettings[];
  readonly fleet?: Partial<FleetSettings>;
  readonly group?: Partial<PoolConfig>;
  readonly settings?: Partial<ExternalGrpcSettings>;
  readonly serve?: Partial<ExternalGrpcOptions>;
  /** Whether a reconcile pass runs before the first call. */
  readonly isReady?: boolean;
}

export interface ServerFixture extends TestFleet {
  readonly server: RunningExternalGrpc;
  readonly settings: CurrentSettings;
  readonly warnings: readonly string[];
  readonly client: RpcClient;
  readonly clientOf: (generation: Generation) => RpcClient;
  readonly reconcile: () => Promise<void>;
  readonly settle: () => Promise<void>;
}

/** Runs a test with its own server and fleet, and closes them afterwards. */
export function withServer(
  options: ServerFixtureOptions,
  test: (fixture: ServerFixture) => Promise<void>,
) {
  return async (): Promise<void> => {
    const pools = options.pools ?? [aPool()];
    const testFleet = aTestFleet(
      someSettings(pools, { unplacedTimeoutMs: 30_000, ...options.fleet }),
    );
    await prepare(testFleet, options.isReady ?? true);
    const warnings: string[] = [];
    const settings = new CurrentSettings(
      {
        pools: pools.map((pool) => aGroup(pool, options.group)),
        pricing: { vcpuHour: 0.01, memoryGiBHour: 0.002 },
        gpu: { label: 'autoscaler.proxmox/gpu', types: [] },
        ...options.settings,
      },
      testFleet.clock,
    );
    const server = await serveExternalGrpc({
      fleet: testFleet.fleet,
      settings,
      listen: { host: '127.0.0.1', port: 0 },
      tls: undefined,
      insecure: true,
      expander: undefined,
      clock: testFleet.clock,
      read: () => Promise.reject(new Error('no files here')),
      warn: (message) => void warnings.push(message),
      ...options.serve,
    });
    const clients: RpcClient[] = [];
    const clientOf = (generation: Generation) => {
      const client = new RpcClient(`127.0.0.1:${server.port}`, `${generation}.proto`);
      clients.push(client);
      return client;
    };
    try {
      await test({
        ...testFleet,
        server,
        settings,
        warnings,
        client: clientOf('c'),
        clientOf,
        reconcile: async () => void (await onePass(testFleet.fleet, testFleet)),
        settle: () => untilAtRest(testFleet.fleet, testFleet),
      });
    } finally {
      for (const client of clients) client.close();
      // The server destroys connections that stay open after a timeout.
      const closing = server.close();
      await testFleet.clock.advance(10_000);
      await closing;
    }
  };
}

async function prepare(testFleet: TestFleet, isReady: boolean): Promise<void> {
  if (isReady) await onePass(testFleet.fleet, testFleet);
}
