// SPDX-License-Identifier: Apache-2.0
// The face in a thread of its own, both ends of the line in one thread here: what crosses it is cloned as between two.
import { createServer } from 'node:net';
import { describe, expect, it } from 'vitest';
import { answer } from '../../src/externalgrpc/thread/answer.ts';
import type { FaceOrder, FromFace, ToFace } from '../../src/externalgrpc/thread/messages.ts';
import { type SupervisedFace, supervise } from '../../src/externalgrpc/thread/supervise.ts';
import { aPool, REGION, someSettings } from '../../src/fleet/testing/settings.ts';
import { aTestFleet, type TestFleet } from '../../src/fleet/testing/test-fleet.ts';
import { RECONCILE_LEASE } from '../../src/model/lease.ts';
import { InvalidConfig, serializeError } from '../../src/ports/errors.ts';
import { advanceUntilSettled } from '../../src/ports/fakes/advance-until-settled.ts';
import { SeededRandom } from '../../src/ports/fakes/seeded-random.ts';
import { threadChannelPair } from '../../src/ports/fakes/thread-channel-pair.ts';
import type { ThreadChannel } from '../../src/ports/thread-channel.ts';
import { RpcClient } from './client.ts';
import { grow, ids, target } from './expectations.ts';
import { aGroup } from './stage.ts';

interface Threads extends TestFleet {
  readonly face: SupervisedFace;
  readonly client: RpcClient;
  readonly calls: string[];
  readonly end: AbortController;
  readonly cut: (error: Error) => void;
  readonly passes: (seconds: number) => Promise<void>;
  /** Drives until the test ends. */
  readonly drive: () => void;
}

function anOrder(bench: TestFleet, port = 0): FaceOrder {
  return {
    settings: {
      groups: [aGroup(aPool())],
      pricing: { vcpuHour: 0.01, memoryGiBHour: 0.002 },
      gpu: { label: 'gpu', types: [] },
    },
    terms: bench.fleet.poolLimits,
    statePath: 'not read here',
    listen: { host: '127.0.0.1', port },
    tls: undefined,
    insecure: true,
    expander: undefined,
  };
}

/** What the other thread does. */
function answering(
  { store, clock }: TestFleet,
  link: ThreadChannel<FromFace, ToFace>,
  order: FaceOrder,
) {
  const random = new SeededRandom(11);
  const read = () => Promise.reject(new Error('no files here'));
  return answer({ link, order: structuredClone(order), store, clock, random, read }).then(
    () => link.send({ kind: 'closed' }),
    (error: unknown) => link.send({ kind: 'failed', error: serializeError(error) }),
  );
}

async function start(bench: TestFleet, port = 0) {
  const { near, far, fail: cut } = threadChannelPair<ToFace, FromFace>();
  void answering(bench, far, anOrder(bench, port));
  const calls: string[] = [];
  const end = new AbortController();
  const face = await supervise({
    link: near,
    forecast: bench.fleet.forecast,
    clock: bench.clock,
    warn: () => undefined,
    onCall: ({ rpc, code }) => void calls.push(`${rpc} ${code}`),
    signal: end.signal,
  });
  return { face, calls, end, cut };
}

function inThreads(test: (threads: Threads) => Promise<void>) {
  return async (): Promise<void> => {
    const bench = aTestFleet(someSettings([aPool()]));
    const started = await start(bench);
    const { face } = started;
    const client = new RpcClient(`127.0.0.1:${face.port}`, 'c.proto');
    const passes = async (seconds: number) => {
      for (let tick = 0; tick < seconds * 10; tick += 1) await bench.clock.advance(100);
    };
    const stop = new AbortController();
    let driving: Promise<void> = Promise.resolve();
    const drive = () => {
      driving = bench.fleet.runDriver({ signal: stop.signal });
    };
    try {
      await test({ ...bench, ...started, client, passes, drive });
    } finally {
      client.close();
      stop.abort();
      await advanceUntilSettled(bench.clock, driving);
      await advanceUntilSettled(bench.clock, face.close());
    }
  };
}

async function failureCode(client: RpcClient): Promise<number> {
  return (await client.failure('NodeGroups', {})).code;
}

describe('a face in a thread of its own', () => {
  it(
    'waits for what the driving thread sees, then takes orders that are carried out there',
    inThreads(async ({ face, client, calls, drive, passes }) => {
      await passes(1);
      expect(face.waitingFor()).toEqual([
        `the first look at region ${REGION} by the process that drives`,
      ]);
      expect(await failureCode(client)).toBe(14);
      drive();
      await passes(3);
      expect(face.waitingFor()).toEqual([]);
      await grow(client, 2);
      expect(await target(client)).toBe(2);
      const before = await ids(client);
      await passes(60);
      const after = await ids(client);
      expect(after).toHaveLength(2);
      expect(after).not.toEqual(before);
      expect(calls).toContain('NodeGroupIncreaseSize OK');
      expect(calls).toContain('NodeGroups Unavailable');
    }),
  );

  it(
    'answers nobody once the driver has lost its right, and again when it has it back',
    inThreads(async ({ client, store, drive, passes }) => {
      drive();
      await passes(3);
      await client.call('NodeGroups');
      await store.leases.release((await store.leases.read(RECONCILE_LEASE))!);
      const request = { name: RECONCILE_LEASE, holder: 'other', durationMs: 3_600_000 };
      const other = await store.leases.acquire(request);
      await passes(6);
      expect(await failureCode(client)).toBe(14);
      await store.leases.release(other);
      await passes(5);
      await client.call('NodeGroups');
    }),
  );

  it('lets a report end with the right of whoever made it, though nothing more is heard', async () => {
    const bench = aTestFleet(someSettings([aPool()]));
    const stop = new AbortController();
    const reports: ToFace[] = [];
    bench.fleet.forecast.onChange(() =>
      reports.push({ kind: 'forecast', report: bench.fleet.forecast.report() }),
    );
    const driving = bench.fleet.runDriver({ signal: stop.signal });
    await bench.clock.advance(2_000);
    const { near, far } = threadChannelPair<ToFace, FromFace>();
    // The driving thread says this much, and is never heard of again.
    for (const report of reports) near.send(report);
    bench.fleet.forecast.onChange(() => undefined);
    stop.abort();
    await advanceUntilSettled(bench.clock, driving);
    const listening = Promise.withResolvers<number>();
    near.onMessage((message) => {
      if (message.kind === 'listening') listening.resolve(message.port);
    });
    const { clock } = bench;
    const done = answering(bench, far, anOrder(bench));
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
    'takes nothing new when the process is told to end',
    inThreads(async ({ client, drive, passes, end }) => {
      drive();
      await passes(3);
      await client.call('NodeGroups');
      end.abort();
      await passes(1);
      expect(await failureCode(client)).toBe(14);
    }),
  );

  it('is not ready when it hangs, and ended all the same', async () => {
    const bench = aTestFleet(someSettings([aPool()]));
    const { near, far } = threadChannelPair<ToFace, FromFace>();
    far.send({ kind: 'listening', port: 1, expanderPort: undefined });
    far.send({ kind: 'waiting', waitingFor: [] });
    const { clock } = bench;
    const face = await supervise({
      link: near,
      forecast: bench.fleet.forecast,
      clock,
      warn: () => undefined,
      onCall: () => undefined,
      signal: new AbortController().signal,
    });
    await clock.advance(9_000);
    expect(face.waitingFor()).toEqual([]);
    await clock.advance(2_000);
    expect(face.waitingFor()).toEqual(['the thread that answers, which is silent for 11 s']);
    await advanceUntilSettled(clock, face.close());
  });

  it('says why it cannot listen', async () => {
    const taken = createServer();
    await new Promise<void>((resolve) => void taken.listen(0, '127.0.0.1', () => resolve()));
    const address = taken.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    await expect(start(aTestFleet(someSettings([aPool()])), port)).rejects.toThrow(InvalidConfig);
    taken.close();
  });

  it(
    'is told of when it dies',
    inThreads(async ({ face, cut }) => {
      cut(new Error('out of memory'));
      await expect(face.failed).rejects.toThrow('out of memory');
    }),
  );
});
