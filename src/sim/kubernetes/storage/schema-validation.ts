// SPDX-License-Identifier: Apache-2.0
// Validation of custom objects by their schema, with the texts of a real API server. Of the rules in
// `x-kubernetes-validations` only `self == oldSelf` is evaluated.
import type { StatusCause } from './api-error.ts';
import { isEqualJson, isObject, type Json, type JsonObject, numberField } from './objects.ts';
import { partOf, type StructuralSchema } from './structural-schema.ts';

export type FieldProblem = StatusCause & { readonly field: string };

/** A value, its place and, on updates, its former value. */
interface Place {
  readonly value: Json;
  readonly old?: Json | undefined;
  /** `spec.items[0]`; empty for the whole object. */
  readonly field: string;
  /** The name that messages use, which begins at the validated part. */
  readonly name: string;
  /** A value that did not change may stay invalid. */
  readonly isOldAccepted: boolean;
}

/** With one of these the server does not evaluate rules. */
const BLOCKING_REASONS = new Set([
  'FieldValueRequired',
  'FieldValueTypeInvalid',
  'FieldValueNotSupported',
  'FieldValueTooLong',
  'FieldValueTooMany',
]);
const UNCHECKED_RULES: FieldProblem = {
  reason: 'FieldValueInvalid',
  message:
    'Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation',
  field: '<nil>',
};
const DATE_TIME =
  /^\d{4}-\d{2}-\d{2}[Tt]([01]\d|2[0-3]):[0-5]\d:([0-5]\d|60)(\.\d+)?([Zz]|[+-]\d{2}:\d{2})$/;

export interface ValidatedPart {
  readonly value: Json;
  /** Absent for a new object. */
  readonly old?: Json | undefined;
  /** The part of the object: `status`, or empty for all of it. */
  readonly field: string;
  /** The schema of the whole object has rules, known or not. */
  readonly hasRules: boolean;
}

export function validateBySchema(
  schema: StructuralSchema,
  { value, old, field, hasRules }: ValidatedPart,
): readonly FieldProblem[] {
  const place = { value, field, name: '' };
  const isNew = old === undefined;
  let problems = [...findProblems(schema, { ...place, isOldAccepted: false })];
  if (problems.length > 0 && !isNew) {
    problems = [...findProblems(schema, { ...place, old, isOldAccepted: true })];
  }
  if (!problems.some(({ reason }) => BLOCKING_REASONS.has(reason))) {
    return isNew ? problems : [...problems, ...findChanged(schema, { value, old, field })];
  }
  return hasRules ? [...problems, UNCHECKED_RULES] : problems;
}

function* findProblems(schema: StructuralSchema, place: Place): Iterable<FieldProblem> {
  const { value, old } = place;
  if (place.isOldAccepted && old !== undefined && isEqualJson(value, old)) return;
  if (value === null && schema.isNullable) return;
  if (!hasType(schema, value)) {
    const found = typeOf(value);
    yield invalid(place, `"${found}"`, `must be of type ${schema.types.join(',')}: "${found}"`);
  }
  yield* checkEnum(schema, place);
  if (typeof value === 'string') yield* checkText(schema, place, value);
  if (typeof value === 'number') yield* checkNumber(schema, place, value);
  if (Array.isArray(value)) yield* checkItems(schema, place, value);
  if (isObject(value)) yield* checkFields(schema, place, value);
}

function hasType({ types }: StructuralSchema, value: Json): boolean {
  const found = typeOf(value);
  return (
    types.length === 0 || types.includes(found) || (found === 'integer' && types[0] === 'number')
  );
}

function typeOf(value: Json): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  if (typeof value === 'number') return Number.isInteger(value) ? 'integer' : 'number';
  return typeof value;
}

function invalid({ field, name }: Place, shown: string, rule: string): FieldProblem {
  const reason = rule.startsWith('must be of type') ? 'FieldValueTypeInvalid' : 'FieldValueInvalid';
  return { reason, message: `Invalid value: ${shown}: ${name} in body ${rule}`, field };
}

function* checkEnum({ source }: StructuralSchema, { value, field }: Place): Iterable<FieldProblem> {
  const { enum: allowed } = source;
  if (!Array.isArray(allowed) || allowed.some((one: Json) => isEqualJson(one, value))) return;
  const supported = allowed.map((one: Json) => JSON.stringify(one)).join(', ');
  const message = `Unsupported value: ${JSON.stringify(value)}: supported values: ${supported}`;
  yield { reason: 'FieldValueNotSupported', message, field };
}

function* checkText(
  { source, pattern }: StructuralSchema,
  place: Place,
  text: string,
): Iterable<FieldProblem> {
  const shown = JSON.stringify(text);
  const length = Array.from(text).length;
  const max = numberField(source, 'maxLength', Number.POSITIVE_INFINITY);
  const min = numberField(source, 'minLength');
  if (length > max) {
    const message = `Too long: may not be more than ${max} bytes`;
    yield { reason: 'FieldValueTooLong', message, field: place.field };
  }
  if (length < min) yield invalid(place, shown, `should be at least ${min} chars long`);
  if (pattern?.test(text) === false) {
    yield invalid(place, shown, `should match '${pattern.source}'`);
  }
  if (source['format'] === 'date-time' && !DATE_TIME.test(text)) {
    yield invalid(place, shown, `must be of type date-time: ${shown}`);
  }
}

function* checkNumber(
  { source }: StructuralSchema,
  place: Place,
  value: number,
): Iterable<FieldProblem> {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum } = source;
  const isMinExcluded = exclusiveMinimum === true;
  const isMaxExcluded = exclusiveMaximum === true;
  const orEqual = (isExcluded: boolean) => (isExcluded ? '' : ' or equal to');
  if (typeof minimum === 'number' && (isMinExcluded ? value <= minimum : value < minimum)) {
    const rule = `should be greater than${orEqual(isMinExcluded)} ${minimum}`;
    yield invalid(place, String(value), rule);
  }
  if (typeof maximum === 'number' && (isMaxExcluded ? value >= maximum : value > maximum)) {
    yield invalid(place, String(value), `should be less than${orEqual(isMaxExcluded)} ${maximum}`);
  }
}

function* checkItems(
  { source, items }: StructuralSchema,
  place: Place,
  value: readonly Json[],
): Iterable<FieldProblem> {
  const { length } = value;
  const max = numberField(source, 'maxItems', Number.POSITIVE_INFINITY);
  const min = numberField(source, 'minItems');
  if (length > max) {
    const message = `Too many: ${length}: must have at most ${max} items`;
    yield { reason: 'FieldValueTooMany', message, field: place.field };
  }
  if (length < min) yield invalid(place, String(length), `should have at least ${min} items`);
  if (items === undefined) return;
  for (const [index, item] of value.entries()) {
    yield* findProblems(items, inside(place, `[${index}]`, item));
  }
}

function* checkFields(
  schema: StructuralSchema,
  place: Place,
  value: JsonObject,
): Iterable<FieldProblem> {
  for (const key of schema.required) {
    if (value[key] !== undefined) continue;
    const { field } = inside(place, key, null);
    yield { reason: 'FieldValueRequired', message: 'Required value', field };
  }
  const old = isObject(place.old) ? place.old : {};
  for (const [key, inner] of Object.entries(value)) {
    const part = partOf(schema, key);
    if (part === undefined || inner === undefined) continue;
    yield* findProblems(part, { ...inside(place, key, inner), old: old[key] });
  }
}

function inside({ field, name, isOldAccepted }: Place, key: string, value: Json): Place {
  const join = (path: string) => (path === '' || key.startsWith('[') ? '' : '.');
  return {
    value,
    field: `${field}${join(field)}${key}`,
    name: `${name}${join(name)}${key}`,
    isOldAccepted,
  };
}

/** Values that differ from their former value although a rule forbids it. A new value has no former one. */
function* findChanged(
  schema: StructuralSchema,
  { value, old, field }: Omit<ValidatedPart, 'hasRules'>,
): Iterable<FieldProblem> {
  if (old === undefined || isEqualJson(value, old)) return;
  for (const text of schema.immutable) {
    // The server shows no objects and lists.
    const shown = typeof value === 'object' ? '' : `${JSON.stringify(value)}: `;
    const message = `Invalid value: ${shown}${text}`;
    yield { reason: 'FieldValueInvalid', message, field: field || '<nil>' };
  }
  if (!isObject(value) || !isObject(old)) return;
  for (const [key, inner] of Object.entries(value)) {
    const part = partOf(schema, key);
    if (part === undefined || inner === undefined) continue;
    const path = [field, key].filter(Boolean).join('.');
    yield* findChanged(part, { value: inner, old: old[key], field: path });
  }
}
