// SPDX-License-Identifier: Apache-2.0
// Several real processes on one database, some of which are killed in the middle of whatever they do.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Store } from '../../../src/ports/store.ts';
import { openSqliteStore } from '../../../src/store/index.ts';
import { systemClock, systemRandom } from '../../../src/system/index.ts';
import { Arena } from './arena.ts';
import { LEASE_MS, type Said, type SaidEvent } from './said.ts';
import { WorkerProcess } from './worker-process.ts';

let folder: string;
const arenas: Arena[] = [];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'pvescaler-processes-'));
});

afterAll(async () => {
  for (const arena of arenas) arena.killAll();
  await rm(folder, { recursive: true, force: true });
});

function anArena(
  name: string,
  rules: { readonly fighters: number; readonly kills: number },
): Arena {
  const arena = new Arena(join(folder, name), rules);
  arenas.push(arena);
  return arena;
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

function only<E extends SaidEvent>(all: readonly Said[], event: E) {
  return all.filter((said): said is Said & { readonly event: E } => said.event === event);
}

function isAscending(numbers: readonly number[], { strictly }: { strictly: boolean }): boolean {
  return numbers.every((n, index) => {
    const before = numbers[index - 1] ?? Number.NEGATIVE_INFINITY;
    return strictly ? before < n : before <= n;
  });
}

describe('processes that fight for the reconcile lease and are killed', () => {
  const KILLS = 8;
  let fought: readonly Said[];

  beforeAll(async () => {
    fought = await anArena('fight.db', { fighters: 3, kills: KILLS }).fight();
  });

  it('let no write of an old holder through once a new one has written', () => {
    const wrote = only(fought, 'wrote').sort((a, b) => a.revision - b.revision);
    expect(wrote.length).toBeGreaterThan(KILLS);
    // In the order in which the writes became durable: each counted on from the one before it.
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

  it('are never two at a time: each token begins after the one before it ended', () => {
    const acquired = only(fought, 'acquired').sort((a, b) => a.token - b.token);
    expect(
      isAscending(
        acquired.map(({ token }) => token),
        { strictly: true },
      ),
    ).toBe(true);
    expect(acquired.length).toBeGreaterThan(KILLS / 2);
    const released = new Set(only(fought, 'releasing').map(({ token }) => token));
    const endOf = new Map<number, number>();
    for (const { token, expiresAt } of [...acquired, ...only(fought, 'renewed')]) {
      endOf.set(token, Math.max(endOf.get(token) ?? 0, expiresAt));
    }
    for (const { token, expiresAt } of acquired.filter(({ token }) => !released.has(token - 1))) {
      const givenAt = expiresAt - LEASE_MS;
      expect(givenAt).toBeGreaterThanOrEqual(endOf.get(token - 1) ?? 0);
    }
  });

  it('lose no write that was acknowledged, and count none twice', () =>
    onStore('fight.db', async (store) => {
      const wrote = only(fought, 'wrote');
      const count = Number((await store.pools.get('counter'))?.value.pool);
      // Nothing else is written to collections, so the store's own number of writes is the truth.
      expect(count).toBe(await store.revision());
      expect(count).toBeGreaterThanOrEqual(Math.max(...wrote.map((write) => write.count)));
      // A process dies at most once, between a write and the word about it.
      expect(count - wrote.length).toBeLessThanOrEqual(KILLS);

      const entries = await store.journal.read({ limit: 1e6 });
      const kept = new Map(entries.map(({ sequence, numbers }) => [sequence, numbers]));
      for (const { sequence, token, count: noted } of only(fought, 'noted')) {
        expect(kept.get(sequence)).toEqual({ token, count: noted });
      }
    }));
});

describe('a process that slept through the end of its lease', () => {
  it('finds its writes refused', async () => {
    const arena = anArena('sleep.db', { fighters: 2, kills: 0 });
    const { sleeper, fought } = await arena.oversleep();
    const refused = only(fought, 'refused').find(({ token }) => token === sleeper);
    expect(refused?.code).toBe('LEASE_LOST');
  });
});

describe('a process that is killed', () => {
  it('has lost nothing that it was told was written, five times over', async () => {
    const path = join(folder, 'kept.db');
    const kept: { readonly key: string; readonly sequence: number }[] = [];
    for (let round = 1; round <= 5; round += 1) {
      const enough = 3 + Math.floor(Math.random() * 20);
      const worker = new WorkerProcess(['append', path, `round${round}`], (_said, by) => {
        if (by.said.length === enough) by.kill();
      });
      await worker.ended;
      kept.push(...only(worker.said, 'kept'));
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
