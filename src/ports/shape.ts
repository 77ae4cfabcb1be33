// SPDX-License-Identifier: Apache-2.0
// Words to describe what a stored value must look like. A shape only checks; it never changes a value, so a
// field that this version does not know survives being read and written back.
import { type MachineId, parseMachineId } from '../model/machine-id.ts';

/** Says what is wrong with a value, naming the place, or nothing. `of` exists for the type alone. */
export type Shape<T> = ((value: unknown, at: string) => string | undefined) & { readonly of?: T };

interface OptionalShape<T> {
  readonly optional: Shape<T>;
}

/**
 * Every field of the type, also the optional ones, must be described: a field added to the model without a
 * description here does not compile.
 */
type Fields<T> = {
  readonly [K in keyof T]-?: object extends Pick<T, K>
    ? OptionalShape<Exclude<T[K], undefined>>
    : Shape<T[K]>;
};

export const text: Shape<string> = (value, at) =>
  typeof value === 'string' ? undefined : `${at} is not a text`;

/** JSON has no NaN and no infinity: they would come back as null. */
export const finite: Shape<number> = (value, at) =>
  Number.isFinite(value) ? undefined : `${at} is not a number`;

export const whole: Shape<number> = (value, at) =>
  Number.isSafeInteger(value) ? undefined : `${at} is not a whole number`;

export const truth: Shape<boolean> = (value, at) =>
  typeof value === 'boolean' ? undefined : `${at} is neither true nor false`;

export const textOrNumber: Shape<string | number> = (value, at) =>
  typeof value === 'string' ? undefined : finite(value, at);

export const machineId: Shape<MachineId> = (value, at) => {
  const parsed = typeof value === 'string' ? parseMachineId(value) : undefined;
  return parsed?.ok === true && parsed.value === value ? undefined : `${at} is not a machine id`;
};

/** One word out of a table that has all of them as keys. */
export function word<T extends string>(table: Readonly<Record<T, unknown>>): Shape<T> {
  return (value, at) =>
    typeof value === 'string' && Object.hasOwn(table, value)
      ? undefined
      : `${at} is none of ${Object.keys(table).join(', ')}`;
}

export function optional<T>(shape: Shape<T>): OptionalShape<T> {
  return { optional: shape };
}

export function list<T>(item: Shape<T>): Shape<readonly T[]> {
  return (value, at) =>
    Array.isArray(value)
      ? firstProblem(value.entries(), (entry, index) => item(entry, `${at}[${index}]`))
      : `${at} is not a list`;
}

export function dictionary<T>(entry: Shape<T>): Shape<Readonly<Record<string, T>>> {
  return (value, at) =>
    isRecord(value)
      ? firstProblem(Object.entries(value), (inner, key) => entry(inner, `${at}.${key}`))
      : `${at} is not an object`;
}

export function object<T extends object>(fields: Fields<T>): Shape<T> {
  const described = Object.entries<Shape<unknown> | OptionalShape<unknown>>(fields);
  return (value, at) =>
    isRecord(value)
      ? firstProblem(described, (field, key) => fieldProblem(field, value[key], `${at}.${key}`))
      : `${at} is not an object`;
}

/** A union whose members are told apart by the word in `kind`. */
export function byKind<T extends { readonly kind: string }>(
  members: {
    readonly [K in T['kind']]: Shape<Extract<T, { readonly kind: K }>>;
  },
): Shape<T> {
  const table = new Map<unknown, Shape<unknown>>(Object.entries<Shape<unknown>>(members));
  return (value, at) => {
    if (!isRecord(value)) return `${at} is not an object`;
    const member = table.get(value['kind']);
    return member === undefined
      ? `${at}.kind is none of ${[...table.keys()].join(', ')}`
      : member(value, at);
  };
}

function fieldProblem(
  field: Shape<unknown> | OptionalShape<unknown>,
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
