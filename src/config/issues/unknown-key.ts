// SPDX-License-Identifier: Apache-2.0
// A key that is not in the schema: a typing mistake, a key of another system, or a secret that somebody wrote
// down. Each gets the advice that helps.
import type { ConfigPath } from '../config-path.ts';
import { homeOf } from '../schema/replaced-keys.ts';
import { formsAt, keysAt } from '../schema/tree.ts';
import { isSecretKey } from '../secrets/looks-secret.ts';
import { nearest } from '../values/nearest.ts';
import { type Finding, wrongKey } from './finding.ts';

const MOST_KEYS_LISTED = 14;

export function unknownKey(parent: ConfigPath, key: string): Finding {
  const path = [...parent, key];
  const valid = keysAt(parent);
  if (isSecretKey(key)) {
    const ways = valid.filter((way) =>
      /^(secret|password|passphrase|privateKey)(File|Env|Ref)$/.test(way),
    );
    if (ways.length > 0) {
      return wrongKey(path, `a secret does not belong in the file; use ${listed(ways)}`, ways[0]);
    }
  }
  if (valid.includes(key)) {
    const forms = formsAt(parent);
    const expected = forms === undefined ? '' : `; expected ${forms}`;
    return wrongKey(path, `cannot stand beside the other keys here${expected}`);
  }
  const meant = nearest(key, valid);
  if (meant !== undefined) {
    return wrongKey(path, `unknown key; did you mean '${meant}'?`, meant);
  }
  const home = homeOf(key);
  if (home !== undefined) {
    return wrongKey(
      path,
      `unknown key; it is '${home}' here, and 'pvescaler config import' converts whole files`,
      home,
    );
  }
  return wrongKey(path, `unknown key${validKeys(valid)}`);
}

function validKeys(valid: readonly string[]): string {
  if (valid.length === 0) return '; there are no keys here';
  const shown = valid.slice(0, MOST_KEYS_LISTED).join(', ');
  return `; keys here are ${shown}${valid.length > MOST_KEYS_LISTED ? ', …' : ''}`;
}

function listed(words: readonly string[]): string {
  return words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`;
}
