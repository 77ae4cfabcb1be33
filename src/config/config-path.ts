// SPDX-License-Identifier: Apache-2.0
// The path of a value in the config, such as `pools[0].network.ip`: an array in code, text in messages.

import { canShowKey } from './secrets/detect-secret.ts';

export type ConfigPath = readonly (string | number)[];

/** `pools[0].labels["app/tier"]`: keys with special characters are quoted, keys that may be a token are hidden. */
export function formatConfigPath(path: ConfigPath): string {
  return path
    .map((step, index) => {
      if (typeof step === 'number') return `[${step}]`;
      if (!canShowKey(step)) return '[…]';
      if (!/^[A-Za-z0-9_-]+$/.test(step)) return `[${JSON.stringify(step)}]`;
      return index === 0 ? step : `.${step}`;
    })
    .join('');
}

/** Key for use in a Map. No step contains a NUL character. */
export function configPathKey(path: ConfigPath): string {
  return path.map((step) => (typeof step === 'number' ? `#${step}` : step)).join('\0');
}

/** Whether the path is the prefix itself or lies below it. */
export function pathStartsWith(path: ConfigPath, prefix: ConfigPath): boolean {
  return prefix.every((step, index) => path[index] === step);
}

export function valueAt(tree: unknown, path: ConfigPath): unknown {
  let value = tree;
  for (const step of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, step))
      return undefined;
    value = Reflect.get(value, step);
  }
  return value;
}

/** A YAML mapping; not a list. */
export function isMapping(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
