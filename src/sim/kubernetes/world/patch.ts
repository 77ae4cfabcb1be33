// SPDX-License-Identifier: Apache-2.0
import { ApiError } from './api-error.ts';
import { isObject, type Json, type JsonObject, textIn } from './objects.ts';

/** RFC 7386. */
export function mergePatch(target: Json | undefined, patch: Json): Json {
  if (!isObject(patch)) return patch;
  const merged = new Map(Object.entries(isObject(target) ? target : {}));
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) merged.delete(key);
    else if (value !== undefined) merged.set(key, mergePatch(merged.get(key), value));
  }
  return Object.fromEntries(merged);
}

interface Operation {
  readonly op: string;
  readonly path: string;
  readonly value?: Json;
}

/** RFC 6902, without move and copy. */
export function jsonPatch(target: Json, operations: readonly Json[]): Json {
  let result = target;
  for (const one of operations) {
    if (!isObject(one)) throw invalid('an operation is not an object');
    const operation: Operation = {
      op: textIn(one, 'op'),
      path: textIn(one, 'path'),
      value: one['value'] ?? null,
    };
    result = operate(result, pointer(operation.path), operation);
  }
  return result;
}

function pointer(path: string): readonly string[] {
  const [, ...steps] = path.split('/');
  return steps.map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'));
}

function operate(target: Json, [step, ...rest]: readonly string[], operation: Operation): Json {
  if (step === undefined) throw invalid('the path is empty');
  if (Array.isArray(target)) return inArray(target, [step, ...rest], operation);
  if (!isObject(target)) throw invalid(`nothing at ${operation.path}`);
  if (rest.length > 0) {
    return { ...target, [step]: operate(target[step] ?? null, rest, operation) };
  }
  return inObject(target, step, operation);
}

function inObject(
  target: JsonObject,
  key: string,
  { op, value = null, path }: Operation,
): JsonObject {
  switch (op) {
    case 'add':
      return { ...target, [key]: value };
    case 'test':
      if (JSON.stringify(target[key] ?? null) === JSON.stringify(value)) return target;
      throw invalid(`testing path ${path} failed`);
    case 'replace':
    case 'remove': {
      if (target[key] === undefined) throw invalid(`nothing at ${path}`);
      const { [key]: _old, ...others } = target;
      return op === 'remove' ? others : { ...others, [key]: value };
    }
    default:
      throw invalid(`unknown operation ${op}`);
  }
}

function inArray(target: readonly Json[], steps: readonly string[], operation: Operation): Json {
  const [step = '', ...rest] = steps;
  const index = step === '-' ? target.length : Number(step);
  const item = target[index];
  if (rest.length > 0) {
    return target.with(index, operate(item ?? null, rest, operation));
  }
  const { op, value = null, path } = operation;
  if (op === 'add') return target.toSpliced(index, 0, value);
  if (item === undefined) throw invalid(`nothing at ${path}`);
  if (op === 'remove') return target.toSpliced(index, 1);
  const { item: changed = null } = inObject({ item }, 'item', operation);
  return target.with(index, changed);
}

function invalid(why: string): ApiError {
  return new ApiError(422, 'Invalid', `the server rejected our request due to an error: ${why}`);
}
