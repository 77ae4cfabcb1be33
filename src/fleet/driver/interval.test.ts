// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { RECONCILE_LEASE } from '../../model/lease.ts';
import { untilSettled } from '../../ports/fakes/until-settled.ts';
import { aPool, aRegion, REGION, someSettings } from '../testing/settings.ts';
import { aTestFleet, leftovers, machinesIn, type TestFleet, WHY } from '../testing/test-fleet.ts';

/** Far longer than everything that happens in between. */
const BUSY_MS = 600_000;

function aSlowBench(): TestFleet {
  const limits = { createsPerHost: 1, createsPerStorage: 1 };
  const region = aRegion({ limits });
  const pool = aPool({ limits: { ...aPool().limits, max: 20 } });
  return aTestFleet(
    someSettings([pool], { busyMs: BUSY_MS, reconcileMs: BUSY_MS, regions: { [REGION]: region } }),
  );
}

async function passes(bench: TestFleet, seconds: number): Promise<void> {
  for (let second = 0; second < seconds; second += 1) await bench.clock.advance(1_000);
}

interface Told {
  readonly rounds: number;
  readonly steps: number;
}

async function driven(
  bench: TestFleet,
  work: (stop: AbortController) => Promise<void>,
): Promise<Told> {
  const finish = new AbortController();
  const signal = new AbortController();
  let [rounds, begins, ends] = [0, 0, 0];
  const driving = bench.fleet.runDriver({
    signal: signal.signal,
    finish: finish.signal,
    events: {
      onPass: () => {
        rounds += 1;
      },
      onPassBegin: () => {
        begins += 1;
      },
      onPassEnd: () => {
        ends += 1;
      },
    },
  });
  await work(finish);
  finish.abort();
  await untilSettled(bench.clock, driving);
  expect(ends).toBe(begins);
  return { rounds, steps: begins - rounds };
}

/** The image is there already: a download is only looked at by rounds. */
async function withImage(bench: TestFleet): Promise<void> {
  const file = 'noble-with-agent-abababababab.qcow2';
  for (const host of ['pve1', 'pve2', 'pve3']) {
    await untilSettled(
      bench.clock,
      bench.hypervisor.downloadImage({
        host,
        storage: 'local',
        url: 'https://images.example/noble-with-agent.img',
        fileName: file,
        verifyCertificates: true,
      }),
    );
  }
  await passes(bench, 30);
}

describe('between two rounds', () => {
  it('machines go on when their tasks end and their guests are up, and the turns they free are taken', async () => {
    const bench = aSlowBench();
    await withImage(bench);
    await bench.fleet.scaleTo('workers', 9, WHY);
    const { rounds, steps } = await driven(bench, async () => {
      await passes(bench, 60);
      const machines = await machinesIn(bench.store);
      expect(machines.map(({ phase }) => phase)).toEqual(Array.from({ length: 9 }, () => 'ready'));
    });
    // The first, and the one that sees that nothing moves any more.
    expect(rounds).toBeLessThanOrEqual(3);
    expect(steps).toBeGreaterThan(9);
    expect(leftovers(bench.hypervisor).vms).toHaveLength(9);
  });

  it('limits hold as they do in a round', async () => {
    const bench = aSlowBench();
    await withImage(bench);
    await bench.fleet.scaleTo('workers', 9, WHY);
    await driven(bench, async () => {
      for (let look = 0; look < 200; look += 1) {
        await bench.clock.advance(300);
        const making = (await machinesIn(bench.store)).filter(({ phase }) =>
          ['placed', 'creating'].includes(phase),
        );
        const hosts = making.map(({ placement }) => placement?.host);
        expect(new Set(hosts).size).toBe(hosts.length);
      }
    });
  });

  it('nothing new is begun once the end was asked for', async () => {
    const bench = aSlowBench();
    await withImage(bench);
    await bench.fleet.scaleTo('workers', 1, WHY);
    await driven(bench, async (finish) => {
      await passes(bench, 2);
      finish.abort();
      await passes(bench, 60);
      const [machine] = await machinesIn(bench.store);
      expect(machine?.phase).not.toBe('ready');
    });
  });

  it('a lost lease ends it as it ends a round', async () => {
    const bench = aSlowBench();
    await withImage(bench);
    await bench.fleet.scaleTo('workers', 3, WHY);
    await driven(bench, async () => {
      await passes(bench, 2);
      const lease = await bench.store.leases.read(RECONCILE_LEASE);
      await bench.store.leases.release(lease!);
      const request = { name: RECONCILE_LEASE, holder: 'thief', durationMs: 3_600_000 };
      await bench.store.leases.acquire(request);
      const records = await machinesIn(bench.store);
      await passes(bench, 60);
      expect(await machinesIn(bench.store)).toEqual(records);
      expect(records.some(({ phase }) => phase === 'ready')).toBe(false);
    });
  });
});
