// SPDX-License-Identifier: Apache-2.0
// A process that is the driver: what it reports, and how it ends.
import { RECONCILE_LEASE } from '../../model/lease.ts';
import { StoreUnusable, Unreachable } from '../../ports/errors.ts';
import { advanceUntilSettled } from '../../ports/fakes/advance-until-settled.ts';
import { MemoryCluster } from '../../ports/fakes/memory-cluster.ts';
import { SeededRandom } from '../../ports/fakes/seeded-random.ts';
import { aPool, someSettings } from '../testing/settings.ts';
import { aFleet, aTestFleet, REASON, type TestFleet } from '../testing/test-fleet.ts';
import { itTraces, type Trace } from '../testing/trace.ts';

const STORE_BUSY = new StoreUnusable('STORE_BUSY', 'locked');
const settings = someSettings([aPool({ limits: { ...aPool().limits, min: 1 } })], { holder: 'a' });
const aDriver = () => aTestFleet(settings);

async function seconds({ clock }: TestFleet, count: number): Promise<void> {
  for (let second = 0; second < count; second += 1) await clock.advance(1_000);
}

/** Runs the driver until `work` ends, and records its events and how it ended. */
async function drive(
  trace: Trace,
  { fleet, clock }: TestFleet,
  work: (finish: AbortController) => Promise<void>,
): Promise<void> {
  const [stop, finish] = [new AbortController(), new AbortController()];
  let waitsFor: string | undefined;
  const driving = fleet.runDriver({
    signal: stop.signal,
    finish: finish.signal,
    events: {
      onPassBegin: () => trace.count('passes'),
      onPassEnd: (outcome) => trace.count(`passes: ${outcome}`),
      onPass: () => trace.count('reports'),
      onWaiting: (holder) => {
        if (holder !== waitsFor) trace.add(`waits for ${holder}`);
        waitsFor = holder;
      },
      onSeparateStore: (holder) => trace.add(`${holder} has a separate store`),
      onError: ({ code, message }) => trace.add(`error ${code}: ${message}`),
      onLeading: (isLeading) => trace.add(isLeading ? 'leads' : 'does not lead'),
      onHeartbeat: () => trace.count('heartbeats'),
    },
  });
  const ended = trace.result('the driver ended', driving);
  await work(finish);
  stop.abort();
  await advanceUntilSettled(clock, ended);
}

itTraces('a driver that is stopped', aDriver, async (trace, testFleet) => {
  await drive(trace, testFleet, async () => {
    await seconds(testFleet, 60);
    await trace.result('status', testFleet.fleet.status());
    await trace.result(
      'pause',
      testFleet.fleet.pausePool('workers', { reason: 'x', at: 1 } as never),
    );
  });
  await trace.result(
    'pause',
    testFleet.fleet.pausePool('workers', { reason: 'x', at: 1 } as never),
  );
  await trace.result('lease', testFleet.store.leases.read(RECONCILE_LEASE));
});

itTraces('a driver that finishes its work', aDriver, async (trace, testFleet) => {
  await drive(trace, testFleet, async (finish) => {
    await seconds(testFleet, 3);
    trace.note('it is to finish');
    finish.abort();
    await seconds(testFleet, 5);
  });
});

itTraces('a store that is busy', aDriver, async (trace, testFleet) => {
  testFleet.store.failNext(STORE_BUSY, 'write');
  await drive(trace, testFleet, async () => {
    for (let time = 0; time < 12; time += 1) {
      await seconds(testFleet, 2);
      testFleet.store.failNext(STORE_BUSY, time % 2 === 0 ? 'write' : 'read');
    }
    await seconds(testFleet, 30);
  });
});

itTraces('a database that fails while machines are created', aDriver, async (trace, testFleet) => {
  await drive(trace, testFleet, async () => {
    await seconds(testFleet, 5);
    testFleet.store.crashAfterWrites(0);
    await seconds(testFleet, 30);
  });
});

itTraces('a database that fails at rest', aDriver, async (trace, testFleet) => {
  await drive(trace, testFleet, async () => {
    await seconds(testFleet, 40);
    testFleet.store.crashAfterWrites(0);
    await seconds(testFleet, 30);
  });
});

itTraces('a lease that is lost', aDriver, async (trace, testFleet) => {
  await drive(trace, testFleet, async () => {
    await seconds(testFleet, 5);
    const { store } = testFleet;
    await store.leases.release((await store.leases.read(RECONCILE_LEASE))!);
    const name = RECONCILE_LEASE;
    await store.leases.acquire({ name, holder: 'other', durationMs: 40_000 });
    trace.note('another process has the lease');
    await seconds(testFleet, 60);
  });
});

itTraces('a lease that expires', aDriver, async (trace, testFleet) => {
  await drive(trace, testFleet, async () => {
    await seconds(testFleet, 5);
    const { store, clock } = testFleet;
    store.leases.renew = () => Promise.reject(STORE_BUSY);
    trace.note('it cannot be renewed');
    await seconds(testFleet, 40);
    trace.note('the clock jumps');
    clock.setWallClock(clock.now() + 3_600_000);
    await seconds(testFleet, 5);
  });
});

itTraces('a region that fails', aDriver, async (trace, testFleet) => {
  for (let time = 0; time < 3; time += 1)
    testFleet.hypervisor.failNext('view', new Unreachable('PVE_UNREACHABLE', 'refused'));
  await drive(trace, testFleet, () => seconds(testFleet, 30));
});

itTraces(
  'two processes with a cluster and separate stores',
  () => aTestFleet(settings, (clock) => new MemoryCluster({ clock, random: new SeededRandom(6) })),
  async (trace, testFleet) => {
    const store = aTestFleet(settings).store;
    const other = aFleet({ ...testFleet, store, settings: { ...settings, holder: 'b' }, seed: 2 });
    const stop = new AbortController();
    const driving = other.runDriver({ signal: stop.signal });
    const failure = new Unreachable('KUBERNETES_UNREACHABLE', 'connection refused');
    await seconds(testFleet, 3);
    await drive(trace, testFleet, async () => {
      await seconds(testFleet, 5);
      testFleet.cluster?.failNext('acquireLease', failure);
      await seconds(testFleet, 5);
      await testFleet.fleet.scaleTo('workers', 2, REASON);
      trace.note('the other process ends');
      stop.abort();
      await seconds(testFleet, 60);
    });
    await driving;
  },
);
