// SPDX-License-Identifier: Apache-2.0
import { statSync } from 'node:fs';
import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite';
import { StoreGate } from '../ports/store-gate.ts';
import { type BusyRetry, whileBusy } from './busy-retry.ts';
import { movedAway, schemaNewer } from './store-errors.ts';

export type Row = Readonly<Record<string, unknown>>;

/** One prepared statement; rows come back as plain records whose columns the caller checks. */
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

  /** How many rows were changed. */
  run(...values: SQLInputValue[]): number {
    return Number(this.#statement.run(...values).changes);
  }
}

/**
 * SQLite works inside the call, so a loop that only awaits the store would never let a timer or a socket of
 * this process have its turn. After this much work it gets one.
 */
const WORK_PER_TURN_MS = 20;

/**
 * An open database of the schema we know. Work handed in is synchronous, so that nothing else of this process
 * can come between two statements of one transaction.
 */
export class Connection {
  readonly #database: DatabaseSync;
  readonly #retry: BusyRetry;
  readonly #schema: number;
  readonly #schemaNow: Statement;
  readonly #inode: string | undefined;
  readonly #gate = new StoreGate();
  #workedMs = 0;

  constructor(database: DatabaseSync, retry: BusyRetry, schema: number) {
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

  /** Work of one statement: SQLite gives each a consistent view. */
  read<T>(signal: AbortSignal | undefined, work: () => T): Promise<T> {
    return this.#attempt(signal, () => {
      this.#assertSchema();
      return work();
    });
  }

  /** Work of several statements that all see the same instant. */
  readTogether<T>(signal: AbortSignal | undefined, work: () => T): Promise<T> {
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
   * One transaction, which holds the write lock from its first statement on: what the work reads, the lease
   * and the clock included, stays true until its writes are durable. An error undoes all of it. Work may run
   * more than once.
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
    return this.#gate.close(() => this.#database.close());
  }

  #attempt<T>(signal: AbortSignal | undefined, work: () => T): Promise<T> {
    return this.#gate.enter(signal, async () => {
      if (this.#workedMs >= WORK_PER_TURN_MS) await this.#letOthersRun(signal);
      return whileBusy(this.#retry, signal, () => this.#timed(work));
    });
  }

  #letOthersRun(signal: AbortSignal | undefined): Promise<void> {
    this.#workedMs = 0;
    return this.#retry.clock.sleep(1, { signal });
  }

  #timed<T>(work: () => T): T {
    const { clock } = this.#retry;
    const since = clock.monotonic();
    try {
      return work();
    } finally {
      this.#workedMs += clock.monotonic() - since;
    }
  }

  /**
   * A database that was moved aside under a running process still takes its writes, and loses them; and a
   * second process would hold a lease on the new file while this one holds its own on the old.
   */
  #assertInPlace(): void {
    const now = inode(this.path);
    if (now === undefined || now !== this.#inode) throw movedAway(this.path);
  }

  /** A newer version may migrate the file while we have it open; we must not write the old way after that. */
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
    // After some failures (a full disk, a broken one) SQLite has rolled back by itself.
    if (database.isTransaction) database.exec('ROLLBACK');
    throw error;
  }
}

/** Undefined when it cannot be looked at, for whatever reason: then it is not where it was. */
function inode(path: string): string | undefined {
  try {
    const { dev, ino } = statSync(path, { bigint: true });
    return `${dev}:${ino}`;
  } catch {
    return undefined;
  }
}
