// SPDX-License-Identifier: Apache-2.0
// A secret has exactly one source.
import type { ConfigPath } from '../config-path.ts';
import { errorAt, errorAtKey, type Finding } from '../issues/finding.ts';

/** `holder` has the keys `<prefix>File`, `<prefix>Env` and `<prefix>Ref`. */
export function checkSecretSource(
  path: ConfigPath,
  holder: Readonly<Record<string, unknown>>,
  rule: { readonly prefix: string; readonly isNeeded: boolean },
): readonly Finding[] {
  const { prefix, isNeeded } = rule;
  const keys = ['File', 'Env', 'Ref'].map((way) => `${prefix}${way}`);
  const given = keys.filter((key) => holder[key] !== undefined);
  const [first = '', ...more] = given;
  if (given.length === 0 && isNeeded) {
    return [errorAt(path, `needs a secret; set one of ${keys.join(', ')}`)];
  }
  return more.map((key) =>
    errorAtKey([...path, key], `cannot be combined with ${first}; keep only one of them`),
  );
}
