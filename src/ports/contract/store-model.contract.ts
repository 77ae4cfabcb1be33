// SPDX-License-Identifier: Apache-2.0
// Property test: random sequences of calls on the store must give the same results as on a simple model, in which values
// are single letters, versions are counters and time is a number.
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Lease } from '../../model/lease.ts';
import type { PoolState } from '../../model/pool.ts';
import { PvescalerError } from '../errors.ts';
import { aJournalEntry, aPoolState } from '../fakes/sample-records.ts';
import { VirtualClock } from '../fakes/virtual-clock.ts';
import type { Store, Versioned } from '../store.ts';
import type { OpenStore } from './store-fixture.contract.ts';

/** `pick` selects a result of an earlier call, possibly stale; `fence` selects a lease, or none. */
type Call =
  | {
      readonly call: 'create';
      readonly key: string;
      readonly letter: string;
      readonly fence: number;
    }
  | {
      readonly call: 'replace';
      readonly pick: number;
      readonly letter: string;
      readonly fence: number;
    }
  | { readonly call: 'remove'; readonly pick: number; readonly fence: number }
  | { readonly call: 'get'; readonly key: string }
  | { readonly call: 'list' | 'restart' }
  | { readonly call: 'acquire'; readonly holder: string; readonly ms: number }
  | { readonly call: 'renew'; readonly pick: number; readonly ms: number }
  | { readonly call: 'release'; readonly pick: number }
  | { readonly call: 'advance'; readonly ms: number }
  | { readonly call: 'append'; readonly letter: string; readonly at: number }
  | { readonly call: 'prune'; readonly at: number; readonly keep: number };

const key = fc.constantFrom('a', 'b', 'ü', '\u{1F600}', '\uFFFD');
const letter = fc.constantFrom('p', 'q', 'r');
const pick = fc.nat(9);
const fence = fc.oneof(fc.constant(-1), fc.nat(9));
const ms = fc.constantFrom(1, 5, 10);
const at = fc.nat(5);

const anyCall: fc.Arbitrary<Call> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ call: fc.constant('create' as const), key, letter, fence }) },
  {
    weight: 4,
    arbitrary: fc.record({ call: fc.constant('replace' as const), pick, letter, fence }),
  },
  { weight: 2, arbitrary: fc.record({ call: fc.constant('remove' as const), pick, fence }) },
  fc.record({ call: fc.constant('get' as const), key }),
  fc.record({ call: fc.constantFrom('list' as const, 'restart' as const) }),
  {
    weight: 3,
    arbitrary: fc.record({ call: fc.constant('acquire' as const), holder: letter, ms }),
  },
  fc.record({ call: fc.constant('renew' as const), pick, ms }),
  fc.record({ call: fc.constant('release' as const), pick }),
  { weight: 2, arbitrary: fc.record({ call: fc.constant('advance' as const), ms }) },
  fc.record({ call: fc.constant('append' as const), letter, at }),
  fc.record({ call: fc.constant('prune' as const), at, keep: fc.nat(3) }),
);

interface ModelRecord {
  readonly letter: string;
  readonly version: number;
}

class Model {
  readonly records = new Map<string, ModelRecord>();
  readonly entries: { readonly letter: string; readonly at: number }[] = [];
  lease: Lease | undefined;
  now = 0;
  writes = 0;

  put(name: string, letterNow: string): ModelRecord {
    this.writes += 1;
    const record = { letter: letterNow, version: this.writes };
    this.records.set(name, record);
    return record;
  }

  isHeld(lease: Lease | undefined): boolean {
    return (
      lease !== undefined && this.lease?.token === lease.token && this.now < this.lease.expiresAt
    );
  }

  /** The error code that a compare-and-set must fail with, if any. */
  expectedError(name: string, version: number): string | undefined {
    const newest = this.records.get(name);
    if (newest === undefined) return 'RECORD_NOT_FOUND';
    return newest.version === version ? undefined : 'RECORD_CHANGED';
  }

  prune(before: number, keep: number): number {
    const kept = this.entries
      .slice(keep === 0 ? this.entries.length : -keep)
      .filter((entry) => entry.at >= before);
    return this.entries.splice(0, this.entries.length, ...kept).length - kept.length;
  }
}

interface Seen {
  readonly real: Versioned<PoolState>;
  readonly version: number;
}

/** Runs calls on a store and on the model, and compares each result. */
class ModelComparison {
  readonly #model = new Model();
  #seen: readonly Seen[] = [];
  readonly #leases: Lease[] = [];
  readonly #clock: VirtualClock;
  readonly #reopen: () => Promise<Store>;
  #store: Store;

  constructor(clock: VirtualClock, store: Store, reopen: () => Promise<Store>) {
    this.#clock = clock;
    this.#store = store;
    this.#reopen = reopen;
    this.#model.now = clock.now();
  }

  async run(call: Call): Promise<void> {
    const [writes, revision] = [this.#model.writes, await this.#store.revision()];
    await this.#runCall(call);
    // Revisions of different processes cannot be compared.
    if (call.call === 'restart') return;
    const hasChanged = (await this.#store.revision()) !== revision;
    expect(hasChanged).toBe(this.#model.writes !== writes);
  }

  async finish(): Promise<void> {
    await this.#runCall({ call: 'list' });
    expect(await this.#store.leases.read('l')).toEqual(this.#model.lease);
    const entries = (await this.#store.journal.read()).map((entry) => ({
      letter: entry.message,
      at: entry.at,
    }));
    expect(entries).toEqual(this.#model.entries);
    await this.#store.close();
  }

  // oxlint-disable-next-line complexity -- one line per kind of call
  async #runCall(call: Call): Promise<void> {
    switch (call.call) {
      case 'create':
        await this.#create(call);
        break;
      case 'replace':
        await this.#replace(call);
        break;
      case 'remove':
        await this.#remove(call);
        break;
      case 'get':
        await this.#get(call.key);
        break;
      case 'list':
        await this.#list();
        break;
      case 'restart':
        await this.#restart();
        break;
      case 'acquire':
        await this.#acquire(call.holder, call.ms);
        break;
      case 'renew':
        await this.#renew(call.pick, call.ms);
        break;
      case 'release':
        await this.#release(call.pick);
        break;
      case 'advance':
        this.#model.now += call.ms;
        await this.#clock.advance(call.ms);
        break;
      case 'append':
        await this.#append(call.letter, call.at);
        break;
      case 'prune':
        await this.#prune(call.at, call.keep);
        break;
    }
  }

  async #create(call: Extract<Call, { call: 'create' }>): Promise<void> {
    const lease = this.#pickLease(call.fence);
    const outcome = await outcomeOf(
      this.#store.pools.create(
        call.key,
        aPoolState({ pool: call.letter }),
        lease && { fence: lease },
      ),
    );
    const expected =
      this.#expectedFenceError(lease) ??
      (this.#model.records.has(call.key) ? 'RECORD_EXISTS' : undefined);
    if (expected !== undefined) return expect(outcome).toEqual({ code: expected });
    this.#remember(outcome, call.key, call.letter);
  }

  async #replace(call: Extract<Call, { call: 'replace' }>): Promise<void> {
    const seen = this.#pickSeen(call.pick);
    if (seen === undefined) return;
    const lease = this.#pickLease(call.fence);
    const outcome = await outcomeOf(
      this.#store.pools.replace(
        seen.real,
        aPoolState({ pool: call.letter }),
        lease && { fence: lease },
      ),
    );
    const expected =
      this.#expectedFenceError(lease) ?? this.#model.expectedError(seen.real.key, seen.version);
    if (expected !== undefined) return expect(outcome).toEqual({ code: expected });
    this.#remember(outcome, seen.real.key, call.letter);
  }

  async #remove(call: Extract<Call, { call: 'remove' }>): Promise<void> {
    const seen = this.#pickSeen(call.pick);
    if (seen === undefined) return;
    const lease = this.#pickLease(call.fence);
    const outcome = await outcomeOf(this.#store.pools.remove(seen.real, lease && { fence: lease }));
    const expected =
      this.#expectedFenceError(lease) ?? this.#model.expectedError(seen.real.key, seen.version);
    if (expected !== undefined) return expect(outcome).toEqual({ code: expected });
    expect(outcome).toEqual({ value: undefined });
    this.#model.records.delete(seen.real.key);
    this.#model.writes += 1;
  }

  async #get(name: string): Promise<void> {
    const got = await this.#store.pools.get(name);
    expect(got?.value.pool).toBe(this.#model.records.get(name)?.letter);
  }

  async #list(): Promise<void> {
    const listed = (await this.#store.pools.list()).map((one) => [one.key, one.value.pool]);
    const expected = [...this.#model.records].map(([name, record]) => [name, record.letter]);
    expect(listed).toEqual(expected.sort(([a = ''], [b = '']) => (a < b ? -1 : 1)));
  }

  async #restart(): Promise<void> {
    await this.#store.close();
    this.#store = await this.#reopen();
    // Only the process that read a record can use its revision.
    this.#seen = await Promise.all(this.#seen.map((seen) => this.#readAgain(seen)));
  }

  /** A record that was stale before stays so. */
  async #readAgain({ real, version }: Seen): Promise<Seen> {
    const isNewest = this.#model.records.get(real.key)?.version === version;
    const read = isNewest ? await this.#store.pools.get(real.key) : undefined;
    return { real: read ?? { ...real, revision: -1 }, version };
  }

  async #acquire(holder: string, durationMs: number): Promise<void> {
    const outcome = await outcomeOf(this.#store.leases.acquire({ name: 'l', holder, durationMs }));
    const last = this.#model.lease;
    if (last !== undefined && last.holder !== holder && this.#model.now < last.expiresAt) {
      return expect(outcome).toEqual({ code: 'LEASE_HELD' });
    }
    const lease = {
      name: 'l',
      holder,
      token: (last?.token ?? 0) + 1,
      expiresAt: this.#model.now + durationMs,
    };
    expect(outcome).toEqual({ value: lease });
    this.#model.lease = lease;
    this.#leases.push(lease);
  }

  async #renew(index: number, durationMs: number): Promise<void> {
    const lease = this.#pickLease(index);
    if (lease === undefined) return;
    const outcome = await outcomeOf(this.#store.leases.renew(lease, durationMs));
    if (!this.#model.isHeld(lease)) return expect(outcome).toEqual({ code: 'LEASE_LOST' });
    const renewed = { ...lease, expiresAt: this.#model.now + durationMs };
    expect(outcome).toEqual({ value: renewed });
    this.#model.lease = renewed;
  }

  async #release(index: number): Promise<void> {
    const lease = this.#pickLease(index);
    if (lease === undefined) return;
    await this.#store.leases.release(lease);
    const { lease: held } = this.#model;
    if (held?.token !== lease.token || held.expiresAt === 0) return;
    const releasedAt = Math.min(this.#clock.now(), held.expiresAt);
    this.#model.lease = { ...lease, expiresAt: 0, releasedAt };
  }

  async #append(message: string, when: number): Promise<void> {
    await this.#store.journal.append(aJournalEntry({ message, at: when }));
    this.#model.entries.push({ letter: message, at: when });
  }

  async #prune(before: number, keep: number): Promise<void> {
    const gone = await this.#store.journal.prune({ beforeMs: before, keep });
    expect(gone).toBe(this.#model.prune(before, keep));
  }

  #remember(outcome: Outcome<Versioned<PoolState>>, name: string, letterNow: string): void {
    if (!('value' in outcome)) return expect.unreachable(`unexpected error: ${outcome.code}`);
    expect(outcome.value).toMatchObject({ key: name, value: { pool: letterNow } });
    const { version } = this.#model.put(name, letterNow);
    this.#seen = [...this.#seen, { real: outcome.value, version }];
  }

  #expectedFenceError(lease: Lease | undefined): 'LEASE_LOST' | undefined {
    return lease === undefined || this.#model.isHeld(lease) ? undefined : 'LEASE_LOST';
  }

  /** Counts from the newest, so that current records are picked often. */
  #pickSeen(index: number): Seen | undefined {
    return this.#seen.at(-1 - index);
  }

  #pickLease(index: number): Lease | undefined {
    return index < 0 ? undefined : this.#leases.at(-1 - index);
  }
}

type Outcome<T> = { readonly value: T } | { readonly code: string };

async function outcomeOf<T>(promise: Promise<T>): Promise<Outcome<T>> {
  try {
    return { value: await promise };
  } catch (error) {
    if (error instanceof PvescalerError) return { code: error.code };
    throw error;
  }
}

export function storeAgreesWithModel(open: OpenStore): void {
  describe('any sequence of calls', () => {
    it('gives the same results as the model', async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(anyCall, { maxLength: 60 }), async (calls) => {
          const clock = new VirtualClock();
          const { store, reopen, cleanup } = await open(clock);
          try {
            const comparison = new ModelComparison(clock, store, reopen);
            for (const call of calls) await comparison.run(call);
            await comparison.finish();
          } finally {
            await cleanup();
          }
        }),
        { numRuns: 60 },
      );
    });
  });
}
