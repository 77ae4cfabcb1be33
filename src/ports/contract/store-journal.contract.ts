// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import type { JournalEntry } from '../../model/journal-entry.ts';
import { aJournalEntry } from '../fakes/sample-records.ts';
import type { Store } from '../store.ts';
import { aborted, type OpenStore, rejectionCode, withStore } from './store-fixture.contract.ts';

async function appendAll(
  store: Store,
  entries: readonly Partial<JournalEntry>[],
): Promise<readonly number[]> {
  const sequences: number[] = [];
  for (const entry of entries) {
    sequences.push((await store.journal.append(aJournalEntry(entry))).sequence);
  }
  return sequences;
}

function messages(records: readonly JournalEntry[]): readonly string[] {
  return records.map(({ message }) => message);
}

export function journalContract(open: OpenStore): void {
  describe('journal', () => {
    it(
      'keeps every field',
      withStore(open, async ({ store }) => {
        const entry = aJournalEntry({
          kind: 'refused',
          subject: { pool: 'p', machine: 'm', node: 'n', host: 'h', region: 'r' },
          numbers: { free: 1.5, host: 'pve-1' },
        });
        const appended = await store.journal.append(entry);
        expect(appended).toEqual({ ...entry, sequence: appended.sequence });
        expect(await store.journal.read()).toEqual([appended]);
      }),
    );

    it.each([
      [Number.POSITIVE_INFINITY, 3],
      [1.5, 1],
      [0, 0],
      [-1, 0],
      [Number.NaN, 0],
    ])('accepts %s as a read limit and as a number to keep', async (count, kept) => {
      await withStore(open, async ({ store, clock }) => {
        await appendAll(store, [{ message: 'a' }, { message: 'b' }, { message: 'c' }]);
        expect(await store.journal.read({ limit: count })).toHaveLength(kept);
        await store.journal.prune({ beforeMs: clock.now() + 1_000_000, keep: count });
      })();
    });

    it(
      'numbers entries in ascending order across processes and reads the oldest first',
      withStore(open, async ({ store, reopen }) => {
        const other = await reopen();
        const [a = 0] = await appendAll(store, [{ message: 'a' }]);
        const [b = 0] = await appendAll(other, [{ message: 'b' }]);
        const [c = 0] = await appendAll(store, [{ message: 'c' }]);
        expect(0 < a && a < b && b < c).toBe(true);
        expect(messages(await other.journal.read())).toEqual(['a', 'b', 'c']);
        await other.close();
      }),
    );

    it(
      'appends an equal entry as a second one',
      withStore(open, async ({ store }) => {
        const [a, b] = await appendAll(store, [{}, {}]);
        expect(a).not.toBe(b);
        expect(await store.journal.read()).toHaveLength(2);
      }),
    );

    it(
      'reads entries after a sequence number',
      withStore(open, async ({ store }) => {
        const [, second = -1] = await appendAll(store, [
          { message: 'a' },
          { message: 'b' },
          { message: 'c' },
        ]);
        expect(messages(await store.journal.read({ after: second }))).toEqual(['c']);
        expect(await store.journal.read({ after: 0 })).toHaveLength(3);
        expect(await store.journal.read({ after: second + 1_000 })).toEqual([]);
      }),
    );

    it(
      'filters by pool, machine and node, alone and combined',
      withStore(open, async ({ store }) => {
        await appendAll(store, [
          { message: 'a', subject: { pool: 'p', machine: 'm' } },
          { message: 'b', subject: { pool: 'p', node: 'n' } },
          { message: 'c', subject: { pool: 'q', machine: 'm', node: 'n' } },
          { message: 'd', subject: { host: 'p' } },
        ]);
        expect(messages(await store.journal.read({ pool: 'p' }))).toEqual(['a', 'b']);
        expect(messages(await store.journal.read({ machine: 'm' }))).toEqual(['a', 'c']);
        expect(messages(await store.journal.read({ node: 'n' }))).toEqual(['b', 'c']);
        expect(messages(await store.journal.read({ machine: 'm', node: 'n' }))).toEqual(['c']);
        expect(messages(await store.journal.read({ pool: 'p', machine: 'm', node: 'n' }))).toEqual(
          [],
        );
      }),
    );

    it(
      'returns the newest entries up to the limit',
      withStore(open, async ({ store }) => {
        await appendAll(
          store,
          ['a', 'b', 'c', 'd'].map((message) => ({
            message,
            subject: { pool: message === 'd' ? 'q' : 'p' },
          })),
        );
        expect(messages(await store.journal.read({ limit: 2 }))).toEqual(['c', 'd']);
        expect(messages(await store.journal.read({ limit: 2, pool: 'p' }))).toEqual(['b', 'c']);
        expect(await store.journal.read({ limit: 0 })).toEqual([]);
      }),
    );

    it(
      'returns 1000 entries by default',
      withStore(open, async ({ store }) => {
        await appendAll(
          store,
          Array.from({ length: 1_003 }, (_, index) => ({ message: `${index}` })),
        );
        const read = messages(await store.journal.read());
        expect([read.length, read.at(0), read.at(-1)]).toEqual([1_000, '3', '1002']);
      }),
    );

    it(
      'prunes by age and by number, and returns the number pruned',
      withStore(open, async ({ store }) => {
        await appendAll(
          store,
          [10, 50, 20, 30, 40].map((at) => ({ at, message: `${at}` })),
        );
        expect(await store.journal.prune({ beforeMs: 20, keep: 100 })).toBe(1);
        expect(messages(await store.journal.read())).toEqual(['50', '20', '30', '40']);
        expect(await store.journal.prune({ beforeMs: 25, keep: 3 })).toBe(2);
        expect(messages(await store.journal.read())).toEqual(['30', '40']);
        expect(await store.journal.prune({ beforeMs: 0, keep: 2 })).toBe(0);
        expect(await store.journal.prune({ beforeMs: 0, keep: 0 })).toBe(2);
        expect(await store.journal.read()).toEqual([]);
      }),
    );

    it(
      'never reuses a sequence number, even after pruning everything and a restart',
      withStore(open, async ({ store, reopen }) => {
        const used = await appendAll(store, [{}, {}, {}]);
        await store.journal.prune({ beforeMs: Number.MAX_SAFE_INTEGER, keep: 0 });
        await store.close();
        const next = await reopen();
        const [fresh = 0] = await appendAll(next, [{}]);
        expect(fresh).toBeGreaterThan(Math.max(...used));
        await next.close();
      }),
    );

    it(
      'refuses an invalid entry',
      withStore(open, async ({ store }) => {
        expect(
          await rejectionCode(
            store.journal.append(aJournalEntry({ at: Number.POSITIVE_INFINITY })),
          ),
        ).toBe('BUG');
        expect(await store.journal.read()).toEqual([]);
      }),
    );

    it(
      'returns frozen entries',
      withStore(open, async ({ store }) => {
        const appended = await store.journal.append(aJournalEntry());
        expect(() => Object.assign(appended.subject, { pool: 'x' })).toThrow(TypeError);
        expect(() => Object.assign(appended, { at: 0 })).toThrow(TypeError);
      }),
    );

    it(
      'rejects a read with CANCELLED after an abort',
      withStore(open, async ({ store }) => {
        expect(await rejectionCode(store.journal.read({ signal: aborted() }))).toBe('CANCELLED');
      }),
    );
  });
}
