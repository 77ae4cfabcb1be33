// SPDX-License-Identifier: Apache-2.0
// Several processes on one database; some are killed at arbitrary instructions.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Store } from '../../../src/ports/store.ts';
import { openSqliteStore } from '../../../src/store/index.ts';
import { systemClock, systemRandom } from '../../../src/system/index.ts';
import { LeaseContest } from './lease-contest.ts';
import { WorkerProcess } from './worker-process.ts';
import { LEASE_MS, type WorkerEvent, type WorkerReport } from './worker-report.ts';

let folder: string;
const contests: LeaseContest[] = [];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'pvescaler-processes-'));
});

afterAll(async () => {
  for (const contest of contests) contest.killAll();
  await rm(folder, { recursive: true, force: true });
});

function createContest(
  name: string,
  rules: { readonly workers: number; readonly kills: number },
): LeaseContest {
  const contest = new LeaseContest(join(folder, name), rules);
  contests.push(contest);
  return contest;
}

async function onStore<T>(name: string, work: (store: Store) => Promise<T>): Promise<T> {
  const path = join(folder, name);
  const store = await openSqliteStore({ path, clock: systemClock, random: systemRandom });
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}

function filterEvents<E extends WorkerEvent>(all: readonly WorkerReport[], event: E) {
  return all.filter(
    (report): report is WorkerReport & { readonly event: E } => report.event === event,
  );
}

function isAscending(numbers: readonly number[], { strictly }: { strictly: boolean }): boolean {
  return numbers.every((n, index) => {
    const before = numbers[index - 1] ?? Number.NEGATIVE_INFINITY;
    return strictly ? before < n : before <= n;
  });
}

describe('processes that contend for the reconcile lease and are killed', () => {
  const KILLS = 8;
  let reports: readonly WorkerReport[];

  beforeAll(async () => {
    reports = await createContest('contest.db', { workers: 3, kills: KILLS }).runWithKills();
  });

  it('have writes of an old holder refused once a new holder has written', () => {
    const wrote = filterEvents(reports, 'wrote').sort((a, b) => a.revision - b.revision);
    expect(wrote.length).toBeGreaterThan(KILLS);
    // In the order of durability, each write increments the counter of the one before.
    expect(
      isAscending(
        wrote.map(({ count }) => count),
        { strictly: true },
      ),
    ).toBe(true);
    expect(
      isAscending(
        wrote.map(({ token }) => token),
        { strictly: false },
      ),
    ).toBe(true);
  });

  it('never hold the lease at the same time', () => {
    const acquired = filterEvents(reports, 'acquired').sort((a, b) => a.token - b.token);
    expect(
      isAscending(
        acquired.map(({ token }) => token),
        { strictly: true },
      ),
    ).toBe(true);
    expect(acquired.length).toBeGreaterThan(KILLS / 2);
    const released = new Set(filterEvents(reports, 'releasing').map(({ token }) => token));
    const endOf = new Map<number, number>();
    for (const { token, expiresAt } of [...acquired, ...filterEvents(reports, 'renewed')]) {
      endOf.set(token, Math.max(endOf.get(token) ?? 0, expiresAt));
    }
    for (const { token, expiresAt } of acquired.filter(({ token }) => !released.has(token - 1))) {
      const givenAt = expiresAt - LEASE_MS;
      expect(givenAt).toBeGreaterThanOrEqual(endOf.get(token - 1) ?? 0);
    }
  });

  it('lose no acknowledged write and apply none twice', () =>
    onStore('contest.db', async (store) => {
      const wrote = filterEvents(reports, 'wrote');
      const count = Number((await store.pools.get('counter'))?.value.pool);
      // Nothing else writes to collections, so the store's revision equals the number of writes.
      expect(count).toBe(await store.revision());
      expect(count).toBeGreaterThanOrEqual(Math.max(...wrote.map((write) => write.count)));
      // A killed process has at most one write that it did not report.
      expect(count - wrote.length).toBeLessThanOrEqual(KILLS);

      const entries = await store.journal.read({ limit: 1e6 });
      const kept = new Map(entries.map(({ sequence, numbers }) => [sequence, numbers]));
      for (const { sequence, token, count: noted } of filterEvents(reports, 'noted')) {
        expect(kept.get(sequence)).toEqual({ token, count: noted });
      }
    }));
});

describe('a process that was paused until its lease expired', () => {
  it('has its writes refused', async () => {
    const contest = createContest('paused.db', { workers: 2, kills: 0 });
    const { sleeper, reports } = await contest.runWithPausedHolder();
    const refused = filterEvents(reports, 'refused').find(({ token }) => token === sleeper);
    expect(refused?.code).toBe('LEASE_LOST');
  });
});

describe('a process that is killed', () => {
  it('loses no acknowledged write, in five runs', async () => {
    const path = join(folder, 'kept.db');
    const kept: { readonly key: string; readonly sequence: number }[] = [];
    for (let run = 1; run <= 5; run += 1) {
      const enough = 3 + Math.floor(Math.random() * 20);
      const worker = new WorkerProcess(['append', path, `run${run}`], (_said, by) => {
        if (by.reports.length === enough) by.kill();
      });
      await worker.ended;
      kept.push(...filterEvents(worker.reports, 'kept'));
    }
    await onStore('kept.db', async (store) => {
      const keys = new Set((await store.pools.list()).map(({ key }) => key));
      const entries = await store.journal.read({ limit: 1e6 });
      const messages = new Map(entries.map(({ sequence, message }) => [sequence, message]));
      expect(kept.length).toBeGreaterThanOrEqual(15);
      expect(kept.filter(({ key }) => !keys.has(key))).toEqual([]);
      expect(kept.filter(({ key, sequence }) => messages.get(sequence) !== key)).toEqual([]);
    });
  });
});
