// SPDX-License-Identifier: Apache-2.0
// Combinators that validate stored values. A validator never changes a value, so fields that this version does not know
// survive a read and write.
import { type MachineId, parseMachineId } from '../model/machine.ts';

/** Returns the first problem with its path, or undefined. `of` exists only for the type. */
export type Validator<T> = ((value: unknown, at: string) => string | undefined) & {
  readonly of?: T;
};

interface OptionalValidator<T> {
  readonly optional: Validator<T>;
}

/**
 * A validator for every field of the type, optional ones included: a field added to the model without one does not
 * compile.
 */
type Fields<T> = {
  readonly [K in keyof T]-?: object extends Pick<T, K>
    ? OptionalValidator<Exclude<T[K], undefined>>
    : Validator<T[K]>;
};

export const string: Validator<string> = (value, at) =>
  typeof value === 'string' ? undefined : `${at} is not a string`;

/** Refuses NaN and infinity, which JSON would store as null. */
export const number: Validator<number> = (value, at) =>
  Number.isFinite(value) ? undefined : `${at} is not a number`;

export const integer: Validator<number> = (value, at) =>
  Number.isSafeInteger(value) ? undefined : `${at} is not an integer`;

export const boolean: Validator<boolean> = (value, at) =>
  typeof value === 'boolean' ? undefined : `${at} is not a boolean`;

export const stringOrNumber: Validator<string | number> = (value, at) =>
  typeof value === 'string' ? undefined : number(value, at);

export const machineId: Validator<MachineId> = (value, at) => {
  const parsed = typeof value === 'string' ? parseMachineId(value) : undefined;
  return parsed?.ok === true && parsed.value === value ? undefined : `${at} is not a machine id`;
};

/** One of the keys of a table that lists all values of the type. */
export function oneOf<T extends string>(table: Readonly<Record<T, unknown>>): Validator<T> {
  return (value, at) =>
    typeof value === 'string' && Object.hasOwn(table, value)
      ? undefined
      : `${at} is not one of ${Object.keys(table).join(', ')}`;
}

export function optional<T>(validator: Validator<T>): OptionalValidator<T> {
  return { optional: validator };
}

export function array<T>(item: Validator<T>): Validator<readonly T[]> {
  return (value, at) =>
    Array.isArray(value)
      ? firstProblem(value.entries(), (entry, index) => item(entry, `${at}[${index}]`))
      : `${at} is not an array`;
}

export function dictionary<T>(entry: Validator<T>): Validator<Readonly<Record<string, T>>> {
  return (value, at) =>
    isRecord(value)
      ? firstProblem(Object.entries(value), (inner, key) => entry(inner, `${at}.${key}`))
      : `${at} is not an object`;
}

export function object<T extends object>(fields: Fields<T>): Validator<T> {
  const validators = Object.entries<Validator<unknown> | OptionalValidator<unknown>>(fields);
  return (value, at) =>
    isRecord(value)
      ? firstProblem(validators, (field, key) => fieldProblem(field, value[key], `${at}.${key}`))
      : `${at} is not an object`;
}

/** A union whose members are distinguished by `kind`. */
export function unionByKind<T extends { readonly kind: string }>(
  members: {
    readonly [K in T['kind']]: Validator<Extract<T, { readonly kind: K }>>;
  },
): Validator<T> {
  const table = new Map<unknown, Validator<unknown>>(Object.entries<Validator<unknown>>(members));
  return (value, at) => {
    if (!isRecord(value)) return `${at} is not an object`;
    const member = table.get(value['kind']);
    return member === undefined
      ? `${at}.kind is not one of ${[...table.keys()].join(', ')}`
      : member(value, at);
  };
}

function fieldProblem(
  field: Validator<unknown> | OptionalValidator<unknown>,
  value: unknown,
  at: string,
): string | undefined {
  if (typeof field === 'function') return field(value, at);
  return value === undefined ? undefined : field.optional(value, at);
}

function firstProblem<K, V>(
  entries: Iterable<readonly [K, V]>,
  check: (value: V, key: K) => string | undefined,
): string | undefined {
  for (const [key, value] of entries) {
    const problem = check(value, key);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
