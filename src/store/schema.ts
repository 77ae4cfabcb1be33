// SPDX-License-Identifier: Apache-2.0
/** "PVES": identifies pvescaler databases, also for file(1). */
export const APPLICATION_ID = 0x50_56_45_53;

/** How many revisions back removals are stored; a reader that is further behind reads everything. */
export const REMOVALS_KEPT = 20_000;

/** Of the first version. */
const RECORD_TABLES = ['intents', 'machines', 'addresses', 'drains', 'pools'];

function recordTable(name: string): string {
  return `CREATE TABLE ${name} (
    key TEXT NOT NULL PRIMARY KEY,
    revision INTEGER NOT NULL,
    value TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;`;
}

/**
 * Migration n (counted from 1) leads from schema n-1 to schema n. A released migration is never changed.
 *
 * AUTOINCREMENT prevents SQLite from reusing the sequence number of a pruned entry. Times are REAL, because a Clock may
 * return fractions, which a strict INTEGER column refuses.
 */
export const MIGRATIONS: readonly string[] = [
  `${RECORD_TABLES.map(recordTable).join('\n')}
  CREATE TABLE leases (
    name TEXT NOT NULL PRIMARY KEY,
    holder TEXT NOT NULL,
    token INTEGER NOT NULL,
    expires_at REAL NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE journal (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT,
    at REAL NOT NULL,
    pool TEXT,
    machine TEXT,
    node TEXT,
    value TEXT NOT NULL
  ) STRICT;
  CREATE INDEX journal_by_time ON journal (at);
  CREATE INDEX journal_by_pool ON journal (pool, sequence) WHERE pool IS NOT NULL;
  CREATE INDEX journal_by_machine ON journal (machine, sequence) WHERE machine IS NOT NULL;
  CREATE INDEX journal_by_node ON journal (node, sequence) WHERE node IS NOT NULL;
  CREATE TABLE installation (
    one INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
    revision INTEGER NOT NULL,
    id TEXT
  ) STRICT;
  INSERT INTO installation (one, revision) VALUES (1, 0);`,
  // Recent removals, so that other processes can follow changes instead of reading everything again.
  `${RECORD_TABLES.map((name) => `CREATE INDEX ${name}_by_revision ON ${name} (revision);`).join(
    '\n',
  )}
  CREATE TABLE removals (
    revision INTEGER NOT NULL PRIMARY KEY,
    collection TEXT NOT NULL,
    key TEXT NOT NULL
  ) STRICT;`,
  // The Kubernetes cluster that the records belong to, also when the database is restored from a backup.
  'ALTER TABLE installation ADD COLUMN cluster_uid TEXT;',
  // The end of the last driver, so that time without a driver counts towards no timeout.
  'ALTER TABLE leases ADD COLUMN released_at REAL;',
  // The record of a machine has its addresses, also of one that is over and whose VM was left alone. The record of such a
  // machine was removed before its address was; `configured` keeps its VM from being deleted as an orphan.
  `UPDATE machines SET value = json_set(value, '$.isVmLeft', json('true'))
  WHERE value ->> '$.phase' IN ('gone', 'failed') AND EXISTS (
    SELECT 1 FROM addresses AS held
    WHERE held.value ->> '$.machine' = machines.key
      AND held.value ->> '$.vmId' = machines.value ->> '$.placement.vmId'
      AND held.value ->> '$.releasedAt' IS NULL
  );
  INSERT INTO machines (key, revision, value)
  SELECT held.value ->> '$.machine', (SELECT revision FROM installation), json_object(
    'id', held.value ->> '$.machine',
    'pool', held.value ->> '$.pool',
    'phase', 'gone',
    'phaseSince', held.value ->> '$.leasedAt',
    'requestedAt', held.value ->> '$.leasedAt',
    'size', json_object('cpu', 0, 'memoryBytes', 0, 'diskBytes', 0),
    'placement', json_object(
      'region', held.value ->> '$.region',
      'host', '',
      'vmId', held.value ->> '$.vmId',
      'name', 'vm-' || (held.value ->> '$.vmId'),
      'diskStorage', '',
      'addresses', json_group_array(held.value ->> '$.address')
    ),
    'configured', json('true'),
    'attempts', 0,
    'isVmLeft', json('true')
  )
  FROM addresses AS held
  WHERE held.value ->> '$.releasedAt' IS NULL AND held.value ->> '$.vmId' IS NOT NULL
    AND held.value ->> '$.machine' NOT IN (SELECT key FROM machines)
  GROUP BY held.value ->> '$.machine';
  DROP TABLE addresses;`,
];
