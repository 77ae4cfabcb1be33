// SPDX-License-Identifier: Apache-2.0
// Records as JSON text and back. Going through text is also what keeps a caller's object and the stored one
// apart: nothing that was read or written can be changed into the store afterwards.
import { accepted, type Parsed, refused } from '../model/parsed.ts';
import { Bug } from './errors.ts';
import type { Shape } from './shape.ts';

/** Refused as a Bug when it could not be read again: the caller built a value its type forbids. */
export function encodeRecord<T>(shape: Shape<T>, value: T, what: string): string {
  const problem = shape(value, 'value');
  if (problem !== undefined) {
    throw new Bug('BUG', `${what} cannot be stored: ${problem}`);
  }
  return JSON.stringify(value);
}

/** Frozen to the bottom, so that a caller who tries to change what it read learns so at once. */
export function decodeRecord<T>(shape: Shape<T>, json: string): Parsed<T> {
  let value: unknown;
  try {
    value = frozen(JSON.parse(json));
  } catch {
    return refused('is not JSON');
  }
  return fits(shape, value) ? accepted(value) : refused(shape(value, 'value') ?? '');
}

/** Faster by far than a reviver, which is called for every number too. */
function frozen(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  for (const inner of Object.values(value)) frozen(inner);
  return Object.freeze(value);
}

function fits<T>(shape: Shape<T>, value: unknown): value is T {
  return shape(value, 'value') === undefined;
}

/** UTF-8 has no lone surrogates: two such keys would become one. No caller has a use for empty ones. */
export function assertKey(key: string): void {
  if (key === '' || !key.isWellFormed() || key.includes('\0')) {
    throw new Bug('BUG', `${JSON.stringify(key)} cannot be the key of a record`);
  }
}
