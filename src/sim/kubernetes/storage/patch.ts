// SPDX-License-Identifier: Apache-2.0
import { ApiError } from './api-error.ts';
import { isObject, type Json, type JsonObject, textField } from './objects.ts';

/** JSON merge patch, RFC 7386. */
export function applyMergePatch(target: Json | undefined, patch: Json): Json {
  if (!isObject(patch)) return patch;
  const merged = new Map(Object.entries(isObject(target) ? target : {}));
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) merged.delete(key);
    else if (value !== undefined) merged.set(key, applyMergePatch(merged.get(key), value));
  }
  return Object.fromEntries(merged);
}

interface JsonPatchOperation {
  readonly op: string;
  readonly path: string;
  readonly value?: Json;
}

/** JSON patch, RFC 6902, without `move` and `copy`. */
export function applyJsonPatch(target: Json, operations: readonly Json[]): Json {
  let result = target;
  for (const one of operations) {
    if (!isObject(one)) throw patchError('an operation is not an object');
    const operation: JsonPatchOperation = {
      op: textField(one, 'op'),
      path: textField(one, 'path'),
      value: one['value'] ?? null,
    };
    result = applyOperation(result, parsePointer(operation.path), operation);
  }
  return result;
}

function parsePointer(path: string): readonly string[] {
  const [, ...steps] = path.split('/');
  return steps.map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'));
}

function applyOperation(
  target: Json,
  [step, ...rest]: readonly string[],
  operation: JsonPatchOperation,
): Json {
  if (step === undefined) throw patchError('the path is empty');
  if (Array.isArray(target)) return applyToArray(target, [step, ...rest], operation);
  if (!isObject(target)) throw patchError(`nothing at ${operation.path}`);
  if (rest.length > 0) {
    return { ...target, [step]: applyOperation(target[step] ?? null, rest, operation) };
  }
  return applyToObject(target, step, operation);
}

function applyToObject(
  target: JsonObject,
  key: string,
  { op, value = null, path }: JsonPatchOperation,
): JsonObject {
  switch (op) {
    case 'add':
      return { ...target, [key]: value };
    case 'test':
      if (JSON.stringify(target[key] ?? null) === JSON.stringify(value)) return target;
      throw patchError(`testing path ${path} failed`);
    case 'replace':
    case 'remove': {
      if (target[key] === undefined) throw patchError(`nothing at ${path}`);
      const { [key]: _old, ...others } = target;
      return op === 'remove' ? others : { ...others, [key]: value };
    }
    default:
      throw patchError(`unknown operation ${op}`);
  }
}

function applyToArray(
  target: readonly Json[],
  steps: readonly string[],
  operation: JsonPatchOperation,
): Json {
  const [step = '', ...rest] = steps;
  const index = step === '-' ? target.length : Number(step);
  const item = target[index];
  if (rest.length > 0) {
    return target.with(index, applyOperation(item ?? null, rest, operation));
  }
  const { op, value = null, path } = operation;
  if (op === 'add') return target.toSpliced(index, 0, value);
  if (item === undefined) throw patchError(`nothing at ${path}`);
  if (op === 'remove') return target.toSpliced(index, 1);
  const { item: changed = null } = applyToObject({ item }, 'item', operation);
  return target.with(index, changed);
}

function patchError(why: string): ApiError {
  return new ApiError(422, 'Invalid', `the server rejected our request due to an error: ${why}`);
}
