// SPDX-License-Identifier: Apache-2.0
// Converts records to objects and back. Both directions are pure.
import type { Parsed } from '../../model/parsed.ts';
import { accepted, refused } from '../../model/parsed.ts';
import {
  type CollectionName,
  decodeRecord,
  RECORD_VALIDATORS,
} from '../../ports/record-validators.ts';
import type { Validator } from '../../ports/validator.ts';
import type { ApiObject, ObjectMeta } from '../objects.ts';
import { API_VERSION, type ObjectKind, type RecordPart, type RecordParts } from './kinds.ts';
import { KEY_ANNOTATION, objectName, recordKey } from './object-names.ts';
import { decodeValue, encodeValue, isEqualJson, isJsonRecord, type JsonRecord } from './schema.ts';

/** JSON of the status that an object has until its first status is written: a creation cannot set the subresource. */
export const INITIAL_STATUS_ANNOTATION = 'pvescaler.dev/initial-status';
const POOL_LABEL = 'pvescaler.dev/pool';
const LABEL_VALUE = /^[a-z0-9]([-a-z0-9_.]{0,61}[a-z0-9])?$/i;

export interface RecordObject extends ApiObject {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly spec?: JsonRecord;
  readonly status?: JsonRecord;
}

/** What is written of an object; its metadata only when it is created. */
export interface ObjectContent {
  readonly spec?: JsonRecord;
  readonly status?: JsonRecord;
}

/**
 * Spec and status of the records. With the spec of an existing object, fields that differ from it are in the status, where
 * they take precedence; undefined when a field of that spec would have to be removed.
 */
export function toContent(
  kind: ObjectKind,
  {
    key,
    parts,
    spec: existing,
  }: { key: string; parts: RecordParts; spec?: JsonRecord | undefined },
): ObjectContent | undefined {
  const fields = kind.parts.map((part) => fieldsOf(part, key, parts[part.collection]));
  const record: JsonRecord = Object.assign({}, ...fields);
  const { specFields } = kind;
  const isSpec = ([name]: readonly [string, unknown]) => specFields.includes(name);
  const entries = Object.entries(record);
  const own = asRecord(encodeValue(kind.spec, Object.fromEntries(entries.filter(isSpec))));
  const spec = existing ?? own;
  const isOwner = kind.parts.some((part) => !part.statusField && parts[part.collection]);
  if (isOwner && Object.keys(spec).some((name) => own[name] === undefined)) return undefined;
  const isChanged = ([name]: readonly [string, unknown]) => !isEqualJson(own[name], spec[name]);
  const status = Object.fromEntries(entries.filter((entry) => !isSpec(entry) || isChanged(entry)));
  return {
    ...(Object.keys(spec).length > 0 && { spec }),
    status: asRecord(encodeValue(kind.status, status)),
  };
}

function fieldsOf(part: RecordPart, key: string, record: unknown): JsonRecord {
  if (!isJsonRecord(record)) return {};
  const fields = Object.fromEntries(
    Object.entries(record).filter(([name, value]) => name !== part.idField || value !== key),
  );
  return part.statusField === undefined ? fields : { [part.statusField]: fields };
}

/** A new object. */
export function toObject(kind: ObjectKind, key: string, parts: RecordParts): RecordObject {
  const { spec, status = {} } = toContent(kind, { key, parts }) ?? {};
  return {
    apiVersion: API_VERSION,
    kind: kind.kind,
    metadata: newMetadata(kind, { key, parts, status }),
    ...(spec && { spec }),
    ...(!kind.hasStatusSubresource && kind.status && { status }),
  };
}

function newMetadata(
  kind: ObjectKind,
  { key, parts, status }: { key: string; parts: RecordParts; status: JsonRecord },
): ObjectMeta {
  const name = objectName(key);
  const isPostponed = kind.hasStatusSubresource && !isEqualJson(status, kind.initialStatus ?? {});
  const pool = (parts.machines ?? parts.intents)?.pool ?? '';
  return {
    name,
    ...(LABEL_VALUE.test(pool) && { labels: { [POOL_LABEL]: pool } }),
    annotations: {
      ...(name !== key && { [KEY_ANNOTATION]: key }),
      ...(isPostponed && { [INITIAL_STATUS_ANNOTATION]: JSON.stringify(status) }),
    },
  };
}

/** Refuses an object with a record that is not valid. Records that it does not have are absent. */
export function fromObject(
  kind: ObjectKind,
  { metadata, spec = {}, status }: RecordObject,
): Parsed<RecordParts> {
  const key = recordKey(metadata);
  const current = status === undefined ? initialStatus(kind, metadata) : accepted(status);
  if (!current.ok) return current;
  const fields = {
    ...asRecord(decodeValue(kind.spec, spec)),
    ...asRecord(decodeValue(kind.status, current.value)),
  };
  const parts: Partial<Record<CollectionName, unknown>> = {};
  for (const part of kind.parts) {
    const found = recordOf(kind, part, fields);
    if (found === undefined) continue;
    const value = part.idField === undefined ? found : { [part.idField]: key, ...found };
    const validator: Validator<unknown> = RECORD_VALIDATORS[part.collection];
    const record = decodeRecord(validator, JSON.stringify(value));
    if (!record.ok) return refused(`${part.collection}: ${record.problem}`);
    parts[part.collection] = record.value;
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- each part was validated as a record of its collection
  return accepted(parts as RecordParts);
}

function initialStatus(kind: ObjectKind, { annotations }: ObjectMeta): Parsed<JsonRecord> {
  const text = annotations?.[INITIAL_STATUS_ANNOTATION];
  if (text === undefined) return accepted(kind.initialStatus ?? {});
  try {
    const value: unknown = JSON.parse(text);
    return isJsonRecord(value) ? accepted(value) : refused('its initial status is not an object');
  } catch {
    return refused('its initial status is not JSON');
  }
}

/** An object of several collections may lack one of them: of a removed machine, only the drain may be left. */
function recordOf(kind: ObjectKind, part: RecordPart, fields: JsonRecord): JsonRecord | undefined {
  if (part.statusField !== undefined) {
    const inner = fields[part.statusField];
    return isJsonRecord(inner) ? inner : undefined;
  }
  const others = kind.parts.flatMap(({ statusField = [] }) => statusField);
  if (others.length > 0 && fields['phase'] === undefined) return undefined;
  return Object.fromEntries(Object.entries(fields).filter(([name]) => !others.includes(name)));
}

function asRecord(value: unknown): JsonRecord {
  return isJsonRecord(value) ? value : {};
}
