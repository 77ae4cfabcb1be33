// SPDX-License-Identifier: Apache-2.0
import type { CollectionName } from '../ports/record-validators.ts';
import type { ReadOptions, Store, StoreChanges } from '../ports/store.ts';
import type { StoreObserver } from '../ports/store-write.ts';
import type { DatabaseConnection, Statement } from './database-connection.ts';
import { REMOVALS_KEPT } from './schema.ts';
import { SqliteCollection } from './sqlite-collection.ts';
import { SqliteJournal } from './sqlite-journal.ts';
import { SqliteLeases } from './sqlite-leases.ts';
import { databaseCorrupt } from './store-errors.ts';

/** The Store over one connection. The constructor prepares every statement, so a missing table fails there. */
export class SqliteStore implements Store {
  readonly intents: SqliteCollection<'intents'>;
  readonly machines: SqliteCollection<'machines'>;
  readonly addresses: SqliteCollection<'addresses'>;
  readonly drains: SqliteCollection<'drains'>;
  readonly pools: SqliteCollection<'pools'>;
  readonly leases: SqliteLeases;
  readonly journal: SqliteJournal;

  readonly #connection: DatabaseConnection;
  readonly #onWrite: StoreObserver;
  readonly #installation: Statement;
  readonly #setId: Statement;
  readonly #removals: Statement;

  constructor(connection: DatabaseConnection, onWrite: StoreObserver) {
    this.#connection = connection;
    this.#onWrite = onWrite;
    this.leases = new SqliteLeases(connection, onWrite);
    this.journal = new SqliteJournal(connection, onWrite);
    this.intents = this.#collection('intents');
    this.machines = this.#collection('machines');
    this.addresses = this.#collection('addresses');
    this.drains = this.#collection('drains');
    this.pools = this.#collection('pools');
    this.#installation = connection.prepare('SELECT revision, id FROM installation');
    this.#setId = connection.prepare('UPDATE installation SET id = ?');
    this.#removals = connection.prepare(
      'SELECT collection, key FROM removals WHERE revision > ? ORDER BY revision',
    );
  }

  revision(options: ReadOptions = {}): Promise<number> {
    return this.#connection.read(options.signal, () => this.#readInstallation().revision);
  }

  changes(since: number | undefined, options: ReadOptions = {}): Promise<StoreChanges | undefined> {
    return this.#connection.readSnapshot(options.signal, () => {
      const { revision } = this.#readInstallation();
      if (since !== undefined && since < revision - REMOVALS_KEPT) return undefined;
      const after = since ?? 0;
      return {
        revision,
        intents: this.intents.since(after),
        machines: this.machines.since(after),
        addresses: this.addresses.since(after),
        drains: this.drains.since(after),
        pools: this.pools.since(after),
        removed: since === undefined ? [] : this.#removedSince(since),
      };
    });
  }

  async installationId(candidate: string): Promise<string> {
    const known = await this.#connection.read(undefined, () => this.#readInstallation().id);
    if (known !== undefined) return known;
    const { id, isNew } = await this.#connection.write(undefined, () => {
      const stored = this.#readInstallation().id;
      if (stored !== undefined) return { id: stored, isNew: false };
      this.#setId.run(candidate);
      return { id: candidate, isNew: true };
    });
    if (isNew) this.#onWrite({ target: 'installation', action: 'create', key: id });
    return id;
  }

  close(): Promise<void> {
    return this.#connection.close();
  }

  #readInstallation(): { readonly revision: number; readonly id: string | undefined } {
    const row = this.#installation.first();
    if (typeof row?.['revision'] !== 'number') {
      throw databaseCorrupt(this.#connection.path, 'table installation has no row');
    }
    const { revision, id } = row;
    return { revision, id: typeof id === 'string' ? id : undefined };
  }

  #removedSince(since: number): StoreChanges['removed'] {
    return this.#removals
      .all(since)
      .map(({ collection, key }) => ({ collection: String(collection), key: String(key) }));
  }

  #collection<N extends CollectionName>(table: N): SqliteCollection<N> {
    return new SqliteCollection(this.#connection, {
      table,
      assertHeld: (fence) => this.leases.assertHeld(fence),
      onWrite: this.#onWrite,
    });
  }
}
