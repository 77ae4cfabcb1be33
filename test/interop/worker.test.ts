// SPDX-License-Identifier: Apache-2.0
// The gRPC worker thread. Both ends of the link run in one thread here; messages are cloned as between two.
import { createServer } from 'node:net';
import { describe, expect, it } from 'vitest';
import type {
  GrpcServerOptions,
  MessageFromWorker,
  MessageToWorker,
} from '../../src/externalgrpc/worker/messages.ts';
import { runGrpcWorker } from '../../src/externalgrpc/worker/run-worker.ts';
import {
  type SupervisedGrpcServer,
  superviseGrpcWorker,
} from '../../src/externalgrpc/worker/supervise.ts';
import type { PoolSettings } from '../../src/fleet/index.ts';
import { aPool, REGION, someSettings } from '../../src/fleet/testing/settings.ts';
import { aTestFleet, type TestFleet } from '../../src/fleet/testing/test-fleet.ts';
import { RECONCILE_LEASE } from '../../src/model/lease.ts';
import { InvalidConfig, serializeError } from '../../src/ports/errors.ts';
import { advanceUntilSettled } from '../../src/ports/fakes/advance-until-settled.ts';
import { SeededRandom } from '../../src/ports/fakes/seeded-random.ts';
import { threadChannelPair } from '../../src/ports/fakes/thread-channel-pair.ts';
import type { ThreadChannel } from '../../src/ports/thread-channel.ts';
import { RpcClient } from './client.ts';
import { increaseSize, listInstanceIds, targetSize } from './expectations.ts';
import { aGroup } from './test-server.ts';

interface WorkerFixture extends TestFleet {
  readonly server: SupervisedGrpcServer;
  readonly client: RpcClient;
  readonly calls: string[];
  readonly end: AbortController;
  readonly breakLink: (error: Error) => void;
  readonly advanceSeconds: (seconds: number) => Promise<void>;
  /** Runs the driver until the test ends. */
  readonly startDriver: () => void;
}

function workerOptions(port = 0): GrpcServerOptions {
  return {
    settings: {
      pools: [aGroup(aPool())],
      pricing: { vcpuHour: 0.01, memoryGiBHour: 0.002 },
      gpu: { label: 'gpu', types: [] },
    },
    state: { path: 'unused', kubernetes: undefined },
    listen: { host: '127.0.0.1', port },
    tls: undefined,
    insecure: true,
    expander: undefined,
  };
}

/** Runs the worker end. */
function runWorker(
  { store, clock }: TestFleet,
  channel: ThreadChannel<MessageFromWorker, MessageToWorker>,
  order: GrpcServerOptions,
) {
  const random = new SeededRandom(11);
  const read = () => Promise.reject(new Error('no files here'));
  return runGrpcWorker({
    channel,
    options: structuredClone(order),
    store,
    clock,
    random,
    read,
  }).then(
    () => channel.send({ kind: 'closed' }),
    (error: unknown) => channel.send({ kind: 'failed', error: serializeError(error) }),
  );
}

async function start(testFleet: TestFleet, port = 0) {
  const { near, far, fail: breakLink } = threadChannelPair<MessageToWorker, MessageFromWorker>();
  void runWorker(testFleet, far, workerOptions(port));
  const calls: string[] = [];
  const end = new AbortController();
  const server = await superviseGrpcWorker({
    channel: near,
    forecast: testFleet.fleet.forecast,
    clock: testFleet.clock,
    warn: () => undefined,
    onCall: ({ rpc, code }) => void calls.push(`${rpc} ${code}`),
    signal: end.signal,
  });
  return { server, calls, end, breakLink };
}

function withWorker(
  test: (fixture: WorkerFixture) => Promise<void>,
  prepare: (testFleet: TestFleet) => void = () => undefined,
) {
  return async (): Promise<void> => {
    const testFleet = aTestFleet(someSettings([aPool()]));
    prepare(testFleet);
    const started = await start(testFleet);
    const { server } = started;
    const client = new RpcClient(`127.0.0.1:${server.port}`, 'c.proto');
    const advanceSeconds = async (seconds: number) => {
      for (let tick = 0; tick < seconds * 10; tick += 1) await testFleet.clock.advance(100);
    };
    const stop = new AbortController();
    let driving: Promise<void> = Promise.resolve();
    const startDriver = () => {
      driving = testFleet.fleet.runDriver({ signal: stop.signal });
    };
    try {
      await test({ ...testFleet, ...started, client, advanceSeconds, startDriver });
    } finally {
      client.close();
      stop.abort();
      await advanceUntilSettled(testFleet.clock, driving);
      await advanceUntilSettled(testFleet.clock, server.close());
    }
  };
}

async function failureCode(client: RpcClient): Promise<number> {
  return (await client.expectError('NodeGroups', {})).code;
}

describe('the gRPC worker', () => {
  it(
    'waits for the forecast of the driver, then accepts requests that the driver carries out',
    withWorker(async ({ server, client, calls, startDriver, advanceSeconds }) => {
      await advanceSeconds(1);
      expect(server.waitingFor()).toEqual([`the first read of region ${REGION}`]);
      expect(await failureCode(client)).toBe(14);
      startDriver();
      await advanceSeconds(3);
      expect(server.waitingFor()).toEqual([]);
      await increaseSize(client, 2);
      expect(await targetSize(client)).toBe(2);
      const before = await listInstanceIds(client);
      await advanceSeconds(60);
      const after = await listInstanceIds(client);
      expect(after).toHaveLength(2);
      expect(after).not.toEqual(before);
      expect(calls).toContain('NodeGroupIncreaseSize OK');
      expect(calls).toContain('NodeGroups Unavailable');
    }),
  );

  it(
    'refuses calls while the driver has lost its lease',
    withWorker(async ({ client, store, startDriver, advanceSeconds }) => {
      startDriver();
      await advanceSeconds(3);
      await client.call('NodeGroups');
      await store.leases.release((await store.leases.read(RECONCILE_LEASE))!);
      const request = { name: RECONCILE_LEASE, holder: 'other', durationMs: 3_600_000 };
      const other = await store.leases.acquire(request);
      await advanceSeconds(6);
      expect(await failureCode(client)).toBe(14);
      await store.leases.release(other);
      await advanceSeconds(5);
      await client.call('NodeGroups');
    }),
  );

  it(
    'serves new settings from the next Refresh on, and limits requests by them',
    withWorker(async ({ server, fleet, client, startDriver, advanceSeconds }) => {
      startDriver();
      await advanceSeconds(3);
      const maxima = async () => {
        const groups = (await client.call('NodeGroups')).nodeGroups;
        return groups.map(
          ({ id, maxSize }: Record<string, unknown>) => `${String(id)} ${String(maxSize)}`,
        );
      };
      const replace = (pools: readonly PoolSettings[]) => {
        fleet.replaceSettings(someSettings(pools));
        server.replaceSettings({
          ...workerOptions().settings,
          pools: pools.map((pool) => aGroup(pool)),
        });
      };
      const limited = (max: number) => aPool({ limits: { ...aPool().limits, max } });
      replace([limited(1), { ...aPool(), name: 'added' }]);
      await advanceSeconds(8);
      expect(await maxima()).toHaveLength(1);
      await client.call('Refresh');
      expect(await maxima()).toEqual(['workers 1', expect.stringMatching(/^added [1-9]/)]);
      await client.expectError('NodeGroupIncreaseSize', { id: 'workers', delta: 2 });
      await increaseSize(client, 1);
      replace([limited(1)]);
      await advanceSeconds(8);
      await client.call('NodeGroupTargetSize', { id: 'added' });
      await client.call('Refresh');
      expect((await client.expectError('NodeGroupTargetSize', { id: 'added' })).code).toBe(5);
      replace([]);
      await advanceSeconds(59);
      expect(await maxima()).toHaveLength(1);
      await advanceSeconds(2);
      expect(await maxima()).toEqual([]);
    }),
  );

  it('drops a forecast when the lease of its driver expires without further messages', async () => {
    const testFleet = aTestFleet(someSettings([aPool()]));
    const stop = new AbortController();
    const reports: MessageToWorker[] = [];
    testFleet.fleet.forecast.onChange(() =>
      reports.push({ kind: 'forecast', report: testFleet.fleet.forecast.report() }),
    );
    const driving = testFleet.fleet.runDriver({ signal: stop.signal });
    await testFleet.clock.advance(2_000);
    const { near, far } = threadChannelPair<MessageToWorker, MessageFromWorker>();
    // The driver sends these forecasts and nothing more.
    for (const report of reports) near.send(report);
    testFleet.fleet.forecast.onChange(() => undefined);
    stop.abort();
    await advanceUntilSettled(testFleet.clock, driving);
    const listening = Promise.withResolvers<number>();
    near.onMessage((message) => {
      if (message.kind === 'listening') listening.resolve(message.port);
    });
    const { clock } = testFleet;
    const done = runWorker(testFleet, far, workerOptions());
    const client = new RpcClient(`127.0.0.1:${await listening.promise}`, 'c.proto');
    await clock.advance(500);
    await client.call('NodeGroups');
    await clock.advance(20_000);
    expect(await failureCode(client)).toBe(14);
    client.close();
    near.send({ kind: 'close' });
    await advanceUntilSettled(clock, done);
  });

  it(
    'refuses calls during shutdown',
    withWorker(async ({ client, startDriver, advanceSeconds, end }) => {
      startDriver();
      await advanceSeconds(3);
      await client.call('NodeGroups');
      end.abort();
      await advanceSeconds(1);
      expect(await failureCode(client)).toBe(14);
    }),
  );

  it(
    'of a process that does not drive accepts requests and answers with them at once',
    withWorker(async (fixture) => {
      const { client, server, advanceSeconds, fleet, store, clock } = fixture;
      await store.leases.acquire({ name: RECONCILE_LEASE, holder: 'other', durationMs: 3_600_000 });
      const stop = new AbortController();
      const following = fleet.followCapacity(stop.signal);
      await advanceSeconds(3);
      expect(server.waitingFor()).toEqual([]);
      await increaseSize(client, 2);
      expect(await targetSize(client)).toBe(2);
      expect(await listInstanceIds(client)).toHaveLength(2);
      expect((await store.intents.list()).map(({ value }) => value.state)).toEqual(['open']);
      stop.abort();
      await advanceUntilSettled(clock, following);
    }),
  );

  it('refuses calls while its records are stale, and says why', () => {
    let reason: string | undefined;
    return withWorker(
      async ({ client, server, startDriver, advanceSeconds }) => {
        startDriver();
        await advanceSeconds(3);
        await client.call('NodeGroups');
        reason = 'nothing received for 40 s';
        expect(await client.expectError('NodeGroups', {})).toMatchObject({
          code: 14,
          details: expect.stringContaining('nothing received for 40 s'),
        });
        await advanceSeconds(1);
        expect(server.waitingFor()).toEqual(['current records: nothing received for 40 s']);
        reason = undefined;
        await client.call('NodeGroups');
      },
      ({ store }) => Object.assign(store, { staleness: () => reason }),
    )();
  });

  it('counts as not ready when it hangs, and can still be closed', async () => {
    const testFleet = aTestFleet(someSettings([aPool()]));
    const { near, far } = threadChannelPair<MessageToWorker, MessageFromWorker>();
    far.send({ kind: 'listening', port: 1, expanderPort: undefined });
    far.send({ kind: 'waiting', waitingFor: [] });
    const { clock } = testFleet;
    const server = await superviseGrpcWorker({
      channel: near,
      forecast: testFleet.fleet.forecast,
      clock,
      warn: () => undefined,
      onCall: () => undefined,
      signal: new AbortController().signal,
    });
    await clock.advance(9_000);
    expect(server.waitingFor()).toEqual([]);
    await clock.advance(2_000);
    expect(server.waitingFor()).toEqual(['the gRPC worker thread, silent for 11 s']);
    await advanceUntilSettled(clock, server.close());
  });

  it('reports why it cannot listen', async () => {
    const taken = createServer();
    await new Promise<void>((resolve) => void taken.listen(0, '127.0.0.1', () => resolve()));
    const address = taken.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    await expect(start(aTestFleet(someSettings([aPool()])), port)).rejects.toThrow(InvalidConfig);
    taken.close();
  });

  it(
    'rejects `failed` when it dies',
    withWorker(async ({ server, breakLink }) => {
      breakLink(new Error('out of memory'));
      await expect(server.failed).rejects.toThrow('out of memory');
    }),
  );
});
