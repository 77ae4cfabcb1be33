// SPDX-License-Identifier: Apache-2.0
// The file never contains a secret. It refers to a file, an environment variable or a key of a Kubernetes
// Secret. Every secret uses the same three key names after a prefix: `secretFile`, `secretEnv`,
// `secretRef`; `passwordFile`, `passwordEnv`, `passwordRef`.
import * as z from 'zod';
import { parseDnsSubdomain } from '../../model/names.ts';
import { key } from './key.ts';
import { textLeaf } from './leaf.ts';
import { checkPattern, filePath, namespace } from './name-leaves.ts';

function variableName() {
  return textLeaf(
    { type: 'variable name', json: { type: 'string', pattern: '^[A-Za-z_][A-Za-z0-9_]*$' } },
    (value) =>
      checkPattern(
        value,
        /^[A-Za-z_][A-Za-z0-9_]{0,63}$/,
        'must be the name of an environment variable',
      ),
  );
}

export function secretRef(defaultKey: string) {
  return z
    .strictObject({
      name: key(
        textLeaf(
          { type: 'Secret name', json: { type: 'string', minLength: 1 }, quotes: true },
          parseDnsSubdomain,
        ),
        'Name of the Kubernetes Secret.',
      ),
      namespace: key(namespace().optional(), 'Namespace of the Secret.', {
        defaultText: '`cluster.namespace`',
      }),
      key: key(
        textLeaf({ type: 'Secret key', json: { type: 'string', minLength: 1 } }, (value) =>
          checkPattern(value, /^[A-Za-z0-9._-]{1,253}$/, 'must be a key of a Kubernetes Secret'),
        ).prefault(defaultKey),
        'Key in the Secret.',
      ),
    })
    .meta({
      'x-type': 'Secret reference',
      'x-note': `the default key is \`${defaultKey}\``,
    });
}

/** The three keys that refer to a secret. Exactly one of them must be set, which ../checks verifies. */
export function secretSourceKeys(what: string, defaultKey: string) {
  return {
    file: key(
      filePath().optional(),
      `File that contains ${what}; one trailing line break is removed.`,
    ),
    env: key(variableName().optional(), `Environment variable that contains ${what}.`),
    ref: key(secretRef(defaultKey).optional(), `Kubernetes Secret that contains ${what}.`),
  };
}
