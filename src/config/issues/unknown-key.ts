// SPDX-License-Identifier: Apache-2.0
// A key that is not in the schema: a typing mistake, a key of another system, or a secret. Each case gets
// its own hint.
import type { ConfigPath } from '../config-path.ts';
import { findReplacementKey } from '../schema/replaced-keys.ts';
import { describeForms, findKeys } from '../schema/tree.ts';
import { isSecretKey } from '../secrets/detect-secret.ts';
import { closestMatch } from '../values/closest-match.ts';
import { errorAtKey, type Finding } from './finding.ts';

const MAX_KEYS_LISTED = 14;

export function unknownKeyError(parent: ConfigPath, key: string): Finding {
  const path = [...parent, key];
  const valid = findKeys(parent);
  if (isSecretKey(key)) {
    const sourceKeys = valid.filter((name) =>
      /^(secret|password|passphrase|privateKey)(File|Env|Ref)$/.test(name),
    );
    if (sourceKeys.length > 0) {
      return errorAtKey(
        path,
        `do not write secrets into the file; use ${joinWithOr(sourceKeys)}`,
        sourceKeys[0],
      );
    }
  }
  if (valid.includes(key)) {
    const forms = describeForms(parent);
    const expected = forms === undefined ? '' : `; expected ${forms}`;
    return errorAtKey(path, `cannot be combined with the other keys here${expected}`);
  }
  const closest = closestMatch(key, valid);
  if (closest !== undefined) {
    return errorAtKey(path, `unknown key; did you mean '${closest}'?`, closest);
  }
  const replacement = findReplacementKey(key);
  if (replacement !== undefined) {
    return errorAtKey(
      path,
      `unknown key; the equivalent key is '${replacement}'. 'pvescaler config import' converts whole files`,
      replacement,
    );
  }
  return errorAtKey(path, `unknown key${listValidKeys(valid)}`);
}

function listValidKeys(valid: readonly string[]): string {
  if (valid.length === 0) return '; no keys are allowed here';
  const shown = valid.slice(0, MAX_KEYS_LISTED).join(', ');
  return `; allowed keys are ${shown}${valid.length > MAX_KEYS_LISTED ? ', …' : ''}`;
}

function joinWithOr(words: readonly string[]): string {
  return words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`;
}
