// SPDX-License-Identifier: Apache-2.0
// A secret is named in exactly one way.
import type { ConfigPath } from '../config-path.ts';
import { errorAt, errorAtKey, type Finding, warningAt } from '../issues/finding.ts';

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
    return [errorAt(path, `names no secret; give one of ${keys.join(', ')}`)];
  }
  const ref = `${prefix}Ref`;
  return [
    ...more.map((key) =>
      errorAtKey([...path, key], `cannot stand beside ${first}; keep one of them`),
    ),
    ...(given.includes(ref)
      ? [
          unsupportedSecretRef(
            [...path, ref],
            `mount it into the pod and name the file by ${prefix}File`,
          ),
        ]
      : []),
  ];
}

/** Understood, so that what other systems' files name has its place; but the account may read no Secret. */
export function unsupportedSecretRef(path: ConfigPath, instead: string): Finding {
  return warningAt(path, `cannot be used in this release, which reads no Secret; ${instead}`);
}
