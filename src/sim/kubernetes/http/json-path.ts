// SPDX-License-Identifier: Apache-2.0
// The simple JSONPaths of printer columns: fields, list items, `[*]`, and filters for equality.
import { isObject, type Json, readPath } from '../storage/objects.ts';

type Step = (value: Json) => readonly (Json | undefined)[];

const STEP =
  /\.?\[\?\(\s*@\.([\w.-]+)\s*==\s*(?:"([^"]*)"|'([^']*)')\s*\)\]|\.?\[(\d+|\*)\]|\[['"]([^'"]+)['"]\]|\.((?:\\.|[^.[\\])+)/gy;

/** Undefined for a path that is not simple. */
export function parseJsonPath(path: string): ((value: Json) => readonly Json[]) | undefined {
  const steps: Step[] = [];
  const source = path.startsWith('.') || path.startsWith('[') ? path : `.${path}`;
  let end = 0;
  for (const match of source.matchAll(STEP)) {
    end = match.index + match[0].length;
    steps.push(toStep(match));
  }
  if (end < source.length) return undefined;
  return (value) =>
    steps.reduce<readonly Json[]>(
      (found, step) => found.flatMap(step).filter((one) => one !== undefined),
      [value],
    );
}

function toStep(match: RegExpExecArray): Step {
  const [, filterPath, doubleQuoted, singleQuoted, index, quotedField, field = ''] = match;
  if (filterPath !== undefined) {
    const wanted = doubleQuoted ?? singleQuoted;
    const keys = filterPath.split('.');
    return (value) =>
      itemsOf(value).filter((item) => isObject(item) && readPath(item, keys) === wanted);
  }
  if (index === '*') return itemsOf;
  if (index !== undefined) return (value) => [itemsOf(value)[Number(index)]];
  const key = quotedField ?? field.replaceAll(/\\(.)/g, '$1');
  return (value) => [isObject(value) ? value[key] : undefined];
}

function itemsOf(value: Json): readonly Json[] {
  return Array.isArray(value) ? value : [];
}
