// SPDX-License-Identifier: Apache-2.0
// Where a secret is stored. The config contains only this reference; the value is read when it is needed.

export type SecretSource =
  | { readonly kind: 'file'; readonly path: string }
  | { readonly kind: 'environment'; readonly variable: string }
  | {
      readonly kind: 'kubernetes';
      readonly namespace: string;
      readonly name: string;
      readonly key: string;
    };

export function describeSecretSource(source: SecretSource): string {
  switch (source.kind) {
    case 'file':
      return `file ${source.path}`;
    case 'environment':
      return `variable ${source.variable}`;
    case 'kubernetes':
      return `key ${source.key} of Secret ${source.namespace}/${source.name}`;
  }
}
