// SPDX-License-Identifier: Apache-2.0
// A secret never stands in the file: it is named, as a file, an environment variable or a key of a
// Kubernetes Secret. The same three keys appear wherever one is needed, after a prefix: `secretFile`,
// `secretEnv`, `secretRef`; `passwordFile`, `passwordEnv`, `passwordRef`.
import * as z from 'zod';
import { dnsSubdomain } from '../../model/dns-name.ts';
import { key } from './key.ts';
import { textLeaf } from './leaf.ts';
import { checkPattern, filePath, namespace } from './name-leaves.ts';

function variableName() {
  return textLeaf(
    { type: 'variable name', json: { type: 'string', pattern: '^[A-Za-z_][A-Za-z0-9_]*$' } },
    (value) =>
      checkPattern(value, /^[A-Za-z_][A-Za-z0-9_]{0,63}$/, 'is not the name of a variable'),
  );
}

export function secretRef(defaultKey: string) {
  return z
    .strictObject({
      name: key(
        textLeaf(
          { type: 'Secret name', json: { type: 'string', minLength: 1 }, quotes: true },
          dnsSubdomain,
        ),
        'Name of the Kubernetes Secret.',
      ),
      namespace: key(namespace().optional(), 'Its namespace.', {
        defaultText: '`cluster.namespace`',
      }),
      key: key(
        textLeaf({ type: 'Secret key', json: { type: 'string', minLength: 1 } }, (value) =>
          checkPattern(value, /^[A-Za-z0-9._-]{1,253}$/, 'is not a key of a Secret'),
        ).prefault(defaultKey),
        'The key inside it.',
      ),
    })
    .meta({
      'x-type': 'Secret reference',
      'x-note': `key \`${defaultKey}\` unless it names another`,
    });
}

/** The three ways to name one secret. Exactly one of them is to be given, which ../checks sees to. */
export function secretSourceKeys(what: string, defaultKey: string) {
  return {
    file: key(
      filePath().optional(),
      `File that holds ${what}; one trailing line break is dropped.`,
    ),
    env: key(variableName().optional(), `Environment variable that holds ${what}.`),
    ref: key(secretRef(defaultKey).optional(), `Kubernetes Secret that holds ${what}.`),
  };
}
