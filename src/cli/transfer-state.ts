// SPDX-License-Identifier: Apache-2.0
// Copies all records out of a store and into one. Uses only the Store port, so that it works between any two stores.
import { formatCount } from '../model/format-text.ts';
import type { Lease } from '../model/lease.ts';
import { Bug, Conflict } from '../ports/errors.ts';
import type { CollectionName } from '../ports/record-validators.ts';
import type { Collection, Store, StoreChanges, Versioned } from '../ports/store.ts';
import { canonicalJson, type StateDocument, type StateRecords } from './state-document.ts';

/**
 * In this order: a driver that starts after an interrupted import finds the machines of an intent. A drain is about a
 * machine that is there.
 */
const COLLECTIONS = [
  'pools',
  'machines',
  'drains',
  'intents',
] as const satisfies readonly CollectionName[];

const WHOLE_JOURNAL = Number.MAX_SAFE_INTEGER;

export type RecordCounts = Readonly<Record<CollectionName, number>>;

export function countRecords(records: StateRecords): RecordCounts {
  const count = (name: CollectionName) => Object.keys(records[name]).length;
  return {
    intents: count('intents'),
    machines: count('machines'),
    drains: count('drains'),
    pools: count('pools'),
  };
}

/** From one consistent snapshot. */
export async function readRecords(store: Store): Promise<StateRecords> {
  const everything = await store.changes(undefined);
  if (everything === undefined) throw new Bug('BUG', 'the store does not return its records');
  return toRecords(everything);
}

export async function readJournal(store: Store) {
  const records = await store.journal.read({ limit: WHOLE_JOURNAL });
  return records.map(({ sequence: _sequence, ...entry }) => entry);
}

export interface ImportOutcome {
  readonly created: number;
  /** The target had them already, from an import that was interrupted. */
  readonly unchanged: number;
  readonly journalEntries: number;
}

/**
 * Writes what is missing in the target. Refuses a target with other records before it writes anything. `fence` is asked
 * before each write.
 */
export async function importState(
  store: Store,
  { identity, records, journal = [] }: StateDocument,
  fence: () => Promise<Lease>,
): Promise<ImportOutcome> {
  await requireSameIdentity(store, identity);
  const present = await readRecords(store);
  requireSameContent(present, records);
  await store.identity(identity);
  let created = 0;
  for (const name of COLLECTIONS)
    created += await createMissing(store, name, { records, present, fence });
  const journalEntries = await appendMissing(store, journal);
  await verify(store, records);
  const total = Object.values(countRecords(records)).reduce((sum, count) => sum + count, 0);
  return { created, unchanged: total - created, journalEntries };
}

function toRecords(changes: StoreChanges): StateRecords {
  const byKey = <T>(list: readonly Versioned<T>[]) =>
    Object.fromEntries(list.map(({ key, value }) => [key, value]));
  const { intents, machines, drains, pools } = changes;
  return {
    intents: byKey(intents),
    machines: byKey(machines),
    drains: byKey(drains),
    pools: byKey(pools),
  };
}

async function requireSameIdentity(
  store: Store,
  { id, clusterUid }: StateDocument['identity'],
): Promise<void> {
  const stored = await store.identity();
  const differs = (there: string | undefined, here: string | undefined) =>
    there !== undefined && here !== undefined && there !== here;
  if (!differs(stored.id, id) && !differs(stored.clusterUid, clusterUid)) return;
  throw new Conflict(
    'RECORD_EXISTS',
    `the target belongs to another installation: it has the cluster id ${stored.id}, the export has ${id}`,
    { hint: 'Import into an empty store; nothing was changed.' },
  );
}

function requireSameContent(present: StateRecords, records: StateRecords): void {
  const differing = COLLECTIONS.flatMap((name) =>
    Object.entries<unknown>(present[name])
      .filter(([key, value]) => !isEqual(value, ownValue(records[name], key)))
      .map(([key]) => `${name}/${key}`),
  );
  if (differing.length === 0) return;
  throw new Conflict(
    'RECORD_EXISTS',
    `the target is not empty: ${formatCount(differing.length, 'record')} of it, such as ${differing[0]}, are not in the export or differ from it`,
    {
      hint: 'Import into an empty store. An interrupted import can be repeated while no driver has run; nothing was changed.',
    },
  );
}

interface Missing {
  readonly records: StateRecords;
  readonly present: StateRecords;
  readonly fence: () => Promise<Lease>;
}

async function createMissing(
  store: Store,
  name: CollectionName,
  { records, present, fence }: Missing,
): Promise<number> {
  // The collection of that name has records of that kind.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- see above
  const collection = store[name] as unknown as Collection<unknown>;
  let created = 0;
  for (const [key, value] of Object.entries<unknown>(records[name])) {
    if (Object.hasOwn(present[name], key)) continue;
    await collection.create(key, value, { fence: await fence() });
    created += 1;
  }
  return created;
}

/** A journal with other entries is left as it is. */
async function appendMissing(
  store: Store,
  journal: NonNullable<StateDocument['journal']>,
): Promise<number> {
  if (journal.length === 0) return 0;
  const present = await readJournal(store);
  if (!present.every((entry, at) => isEqual(entry, journal[at]))) return 0;
  const missing = journal.slice(present.length);
  for (const entry of missing) await store.journal.append(entry);
  return missing.length;
}

async function verify(store: Store, records: StateRecords): Promise<void> {
  if (isEqual(await readRecords(store), records)) return;
  throw new Bug('BUG', 'after the import the records of the target differ from the export');
}

function ownValue(records: Readonly<Record<string, unknown>>, key: string): unknown {
  return Object.hasOwn(records, key) ? records[key] : undefined;
}

function isEqual(left: unknown, right: unknown): boolean {
  return left !== undefined && right !== undefined && canonicalJson(left) === canonicalJson(right);
}
