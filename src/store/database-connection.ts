// SPDX-License-Identifier: Apache-2.0
import { statSync } from 'node:fs';
import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite';
import { Backoff } from '../ports/backoff.ts';
import type { Clock } from '../ports/clock.ts';
import { StoreUnusable } from '../ports/errors.ts';
import { InFlightCalls, throwIfAborted } from '../ports/in-flight-calls.ts';
import type { Random } from '../ports/random.ts';
import { databaseMoved, isBusy, schemaNewer, translateSqliteError } from './store-errors.ts';

export type Row = Readonly<Record<string, unknown>>;

/** A prepared statement; the caller checks the column types of the rows. */
export class Statement {
  readonly #statement: StatementSync;

  constructor(statement: StatementSync) {
    this.#statement = statement;
  }

  first(...values: SQLInputValue[]): Row | undefined {
    return this.#statement.get(...values);
  }

  all(...values: SQLInputValue[]): readonly Row[] {
    return this.#statement.all(...values);
  }

  /** Returns the number of changed rows. */
  run(...values: SQLInputValue[]): number {
    return Number(this.#statement.run(...values).changes);
  }
}

/**
 * SQLite works synchronously, so a loop that awaits only the store would starve timers and sockets. After this much work
 * the connection yields to the event loop.
 */
const MAX_WORK_BEFORE_YIELD_MS = 20;

/**
 * An open database with the expected schema. Work functions are synchronous, so that no other code of this process runs
 * between two statements of a transaction.
 */
export class DatabaseConnection {
  readonly #database: DatabaseSync;
  readonly #retry: BusyRetryOptions;
  readonly #schema: number;
  readonly #schemaNow: Statement;
  readonly #inode: string | undefined;
  readonly #calls = new InFlightCalls();
  #workSinceYieldMs = 0;

  constructor(database: DatabaseSync, retry: BusyRetryOptions, schema: number) {
    this.#database = database;
    this.#retry = retry;
    this.#schema = schema;
    this.#schemaNow = this.prepare('PRAGMA user_version');
    this.#inode = inode(retry.path);
  }

  get path(): string {
    return this.#retry.path;
  }

  now(): number {
    return this.#retry.clock.now();
  }

  prepare(sql: string): Statement {
    return new Statement(this.#database.prepare(sql));
  }

  /** For work of one statement, which SQLite runs on a consistent snapshot. */
  read<T>(signal: AbortSignal | undefined, work: () => T): Promise<T> {
    return this.#attempt(signal, () => {
      this.#assertSchema();
      return work();
    });
  }

  /** For work of several statements that must see the same snapshot. */
  readSnapshot<T>(signal: AbortSignal | undefined, work: () => T): Promise<T> {
    return this.#attempt(signal, () =>
      inTransaction(
        this.#database,
        () => {
          this.#assertSchema();
          return work();
        },
        'BEGIN DEFERRED',
      ),
    );
  }

  /**
   * One transaction, which holds the write lock from its first statement: what the work reads, including the lease, stays
   * valid until its writes are durable. An error rolls everything back. The work may run more than once.
   */
  write<T>(signal: AbortSignal | undefined, work: () => T): Promise<T> {
    return this.#attempt(signal, () =>
      inTransaction(this.#database, () => {
        this.#assertInPlace();
        this.#assertSchema();
        return work();
      }),
    );
  }

  close(): Promise<void> {
    return this.#calls.close(() => this.#database.close());
  }

  #attempt<T>(signal: AbortSignal | undefined, work: () => T): Promise<T> {
    return this.#calls.run(signal, async () => {
      if (this.#workSinceYieldMs >= MAX_WORK_BEFORE_YIELD_MS) await this.#yield(signal);
      return retryWhileBusy(this.#retry, signal, () => this.#measure(work));
    });
  }

  #yield(signal: AbortSignal | undefined): Promise<void> {
    this.#workSinceYieldMs = 0;
    return this.#retry.clock.sleep(1, { signal });
  }

  #measure<T>(work: () => T): T {
    const { clock } = this.#retry;
    const startedAt = clock.monotonic();
    try {
      return work();
    } finally {
      this.#workSinceYieldMs += clock.monotonic() - startedAt;
    }
  }

  /**
   * Writes to a database file that was moved while open would be lost, and another process could hold the same lease in
   * the new file.
   */
  #assertInPlace(): void {
    const now = inode(this.path);
    if (now === undefined || now !== this.#inode) throw databaseMoved(this.path);
  }

  /** A newer version may migrate the file while it is open here; the old schema must not be written after that. */
  #assertSchema(): void {
    const schema = this.#schemaNow.first()?.['user_version'];
    if (schema !== this.#schema) throw schemaNewer(this.path, Number(schema), this.#schema);
  }
}

export function inTransaction<T>(
  database: DatabaseSync,
  work: () => T,
  begin: 'BEGIN IMMEDIATE' | 'BEGIN DEFERRED' = 'BEGIN IMMEDIATE',
): T {
  database.exec(begin);
  try {
    const result = work();
    database.exec('COMMIT');
    return result;
  } catch (error) {
    // After some errors, a full disk for example, SQLite has already rolled back.
    if (database.isTransaction) database.exec('ROLLBACK');
    throw error;
  }
}

/** Undefined if the file cannot be read: then it is no longer in place. */
function inode(path: string): string | undefined {
  try {
    const { dev, ino } = statSync(path, { bigint: true });
    return `${dev}:${ino}`;
  } catch {
    return undefined;
  }
}

const BACKOFF = { firstMs: 5, maxMs: 200 } as const;

export interface BusyRetryOptions {
  readonly path: string;
  readonly clock: Clock;
  readonly random: Pick<Random, 'fraction'>;
  /** How long another process may hold the lock before a call rejects with STORE_BUSY. */
  readonly busyTimeoutMs: number;
}

/**
 * Repeats an attempt while another process holds the lock. SQLite's own wait blocks the whole process, so it lasts only
 * a few milliseconds; the rest of the wait happens here without blocking.
 */
export async function retryWhileBusy<T>(
  { path, clock, random, busyTimeoutMs }: BusyRetryOptions,
  signal: AbortSignal | undefined,
  attempt: () => T,
): Promise<T> {
  const deadline = clock.monotonic() + busyTimeoutMs;
  const backoff = new Backoff({ clock, random, ...BACKOFF });
  for (;;) {
    throwIfAborted(signal);
    try {
      return attempt();
    } catch (error) {
      if (!isBusy(error)) throw translateSqliteError(error, path);
      if (clock.monotonic() >= deadline) {
        const message = `another process has held the database ${path} for ${busyTimeoutMs} ms`;
        throw new StoreUnusable('STORE_BUSY', message, { cause: error, facts: { path } });
      }
    }
    await backoff.sleep(signal);
  }
}
