// SPDX-License-Identifier: Apache-2.0
// Encodes records as JSON and decodes them. The text also separates the caller's object from the stored one: changing
// the object afterwards does not change the record.
import { accepted, type Parsed, refused } from '../model/parsed.ts';
import { Bug } from './errors.ts';
import type { Validator } from './validator.ts';

/** Throws a Bug for a value that its own type forbids, because it could not be decoded again. */
export function encodeRecord<T>(validate: Validator<T>, value: T, description: string): string {
  const problem = validate(value, 'value');
  if (problem !== undefined) {
    throw new Bug('BUG', `${description} cannot be stored: ${problem}`);
  }
  return JSON.stringify(value);
}

/** Returns a deeply frozen value, so that an attempt to change it fails immediately. */
export function decodeRecord<T>(validate: Validator<T>, json: string): Parsed<T> {
  let value: unknown;
  try {
    value = deepFreeze(JSON.parse(json));
  } catch {
    return refused('is not JSON');
  }
  return isValid(validate, value) ? accepted(value) : refused(validate(value, 'value') ?? '');
}

/** Much faster than a JSON reviver, which runs for every number too. */
function deepFreeze(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  for (const inner of Object.values(value)) deepFreeze(inner);
  return Object.freeze(value);
}

function isValid<T>(validate: Validator<T>, value: unknown): value is T {
  return validate(value, 'value') === undefined;
}

/** Refuses lone surrogates, because UTF-8 would map two such keys to one, and empty keys. */
export function assertKey(key: string): void {
  if (key === '' || !key.isWellFormed() || key.includes('\0')) {
    throw new Bug('BUG', `${JSON.stringify(key)} is not a valid record key`);
  }
}
