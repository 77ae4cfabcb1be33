// SPDX-License-Identifier: Apache-2.0
// All records of a store as one JSON document, whatever the store: the format of `state export` and `state import`.
import { createHash } from 'node:crypto';
import type { JournalEntry } from '../model/journal-entry.ts';
import { InvalidRequest, UnsupportedVersion } from '../ports/errors.ts';
import {
  type CollectionName,
  JOURNAL_VALIDATOR,
  RECORD_VALIDATORS,
  type RecordKinds,
} from '../ports/record-validators.ts';
import type { StoreIdentity } from '../ports/store.ts';
import {
  array,
  dictionary,
  integer,
  object,
  oneOf,
  optional,
  string,
  type Validator,
} from '../ports/validator.ts';
import { upgradeAddresses } from './upgrade-addresses.ts';

const API_VERSION = 'pvescaler.dev/v1alpha1';
const KIND = 'StateExport';

/** By key. */
export type StateRecords = {
  readonly [K in CollectionName]: Readonly<Record<string, RecordKinds[K]>>;
};

interface StateContent {
  readonly identity: StoreIdentity;
  readonly records: StateRecords;
  readonly journal?: readonly JournalEntry[];
}

export interface StateDocument extends StateContent {
  readonly apiVersion: typeof API_VERSION;
  readonly kind: typeof KIND;
  readonly schemaVersion: number;
  /** ISO 8601. */
  readonly exportedAt: string;
  /** `sha256:` of the rest of the document, with sorted keys and without white space. */
  readonly checksum: string;
}

/**
 * Upgrade n (counted from 1) leads from schema version n to n+1. A released one is never changed. A record with a new
 * optional field needs none; one with a new mandatory or another meaning of a field does.
 */
export const UPGRADES: readonly ((document: Readonly<Record<string, unknown>>) => object)[] = [
  // The record of a machine has its addresses.
  ({ records }) => ({ records: upgradeAddresses(records) }),
];

/** As written by this version. */
export const SCHEMA_VERSION = UPGRADES.length + 1;

export function formatStateDocument(content: StateContent, now: number): string {
  const unsigned = {
    apiVersion: API_VERSION,
    kind: KIND,
    schemaVersion: SCHEMA_VERSION,
    exportedAt: new Date(now).toISOString(),
    ...content,
  };
  return `${JSON.stringify({ ...unsigned, checksum: checksumOf(unsigned) }, null, 1)}\n`;
}

/** Checks everything, each record included. `name` is that of the file. */
export function parseStateDocument(text: string, name: string): StateDocument {
  const document = readHeader(text, name);
  const { checksum, ...unsigned } = document;
  if (checksum !== checksumOf(unsigned)) {
    throw invalid(name, 'its checksum does not match: it was changed or is incomplete');
  }
  const upgraded = upgrade(document);
  if (isStateDocument(upgraded)) return upgraded;
  throw invalid(name, DOCUMENT_VALIDATOR(upgraded, 'document') ?? '');
}

interface Header {
  readonly apiVersion: string;
  readonly kind: string;
  readonly schemaVersion: number;
  readonly checksum: string;
}

const HEADER_VALIDATOR = object<Header>({
  apiVersion: oneOf({ [API_VERSION]: true }),
  kind: oneOf({ [KIND]: true }),
  schemaVersion: integer,
  checksum: string,
});

const RECORDS_VALIDATOR = object<StateRecords>({
  intents: dictionary(RECORD_VALIDATORS.intents),
  machines: dictionary(RECORD_VALIDATORS.machines),
  drains: dictionary(RECORD_VALIDATORS.drains),
  pools: dictionary(RECORD_VALIDATORS.pools),
});

const DOCUMENT_VALIDATOR: Validator<StateDocument> = object<StateDocument>({
  apiVersion: oneOf({ [API_VERSION]: true }),
  kind: oneOf({ [KIND]: true }),
  schemaVersion: integer,
  exportedAt: string,
  checksum: string,
  identity: object<StoreIdentity>({ id: optional(string), clusterUid: optional(string) }),
  records: RECORDS_VALIDATOR,
  journal: optional(array(JOURNAL_VALIDATOR)),
});

function readHeader(text: string, name: string): Readonly<Record<string, unknown>> & Header {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw invalid(name, 'it is not JSON', cause);
  }
  if (!isHeader(value)) throw invalid(name, HEADER_VALIDATOR(value, 'document') ?? '');
  const { schemaVersion } = value;
  if (schemaVersion < 1) throw invalid(name, `schema version ${schemaVersion} does not exist`);
  if (schemaVersion <= SCHEMA_VERSION) return value;
  throw new UnsupportedVersion(
    'STORE_SCHEMA_NEWER',
    `${name} has schema version ${schemaVersion}; this version of pvescaler reads versions up to ${SCHEMA_VERSION}`,
    { hint: 'Import it with the version of pvescaler that exported it, or a newer one.' },
  );
}

function upgrade(document: Readonly<Record<string, unknown>> & Header): unknown {
  const upgraded = UPGRADES.slice(document.schemaVersion - 1).reduce<
    Readonly<Record<string, unknown>>
  >((older, upgradeOne) => ({ ...older, ...upgradeOne(older) }), document);
  return { ...upgraded, schemaVersion: SCHEMA_VERSION };
}

function isHeader(value: unknown): value is Readonly<Record<string, unknown>> & Header {
  return HEADER_VALIDATOR(value, 'document') === undefined;
}

function isStateDocument(value: unknown): value is StateDocument {
  return DOCUMENT_VALIDATOR(value, 'document') === undefined;
}

function checksumOf(value: object): string {
  return `sha256:${createHash('sha256').update(canonicalJson(value)).digest('hex')}`;
}

/** The same text for equal values, also after other programs have formatted the document. */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_key, inner: unknown) =>
    typeof inner === 'object' && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  );
}

function invalid(name: string, problem: string, cause?: unknown): InvalidRequest {
  return new InvalidRequest('REQUEST_INVALID', `${name} cannot be imported: ${problem}`, {
    hint: 'Give a file that pvescaler state export wrote; nothing was changed.',
    ...(cause !== undefined && { cause }),
  });
}
