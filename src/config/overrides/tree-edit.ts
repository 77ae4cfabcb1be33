// SPDX-License-Identifier: Apache-2.0
// Edits a private copy of the config tree.
import { type ConfigPath, isMapping, valueAt } from '../config-path.ts';

type Container = Record<string, unknown> | unknown[];

/** Returns false when a parent has another type; the schema then reports it. */
export function setAt(tree: Record<string, unknown>, path: ConfigPath, value: unknown): boolean {
  let container: Container = tree;
  for (const [index, step] of path.slice(0, -1).entries()) {
    const next: unknown =
      valueAt(container, [step]) ?? (typeof path[index + 1] === 'number' ? [] : {});
    if (!isMapping(next) && !Array.isArray(next)) return false;
    if (!defineEntry(container, step, next)) return false;
    container = next;
  }
  const last = path.at(-1);
  return last !== undefined && defineEntry(container, last, value);
}

function defineEntry(container: Container, step: string | number, value: unknown): boolean {
  if (Array.isArray(container) !== (typeof step === 'number')) return false;
  // Not by assignment: a key may be named `__proto__`.
  return Reflect.defineProperty(container, step, {
    value,
    writable: true,
    enumerable: true,
    configurable: true,
  });
}

export function removeAt(tree: Record<string, unknown>, path: ConfigPath): void {
  const parent = valueAt(tree, path.slice(0, -1));
  const last = path.at(-1);
  if (isMapping(parent) && typeof last === 'string') Reflect.deleteProperty(parent, last);
  if (Array.isArray(parent) && typeof last === 'number') parent.splice(last, 1);
}
