// SPDX-License-Identifier: Apache-2.0
// Where a value of the effective config came from.

export type ValueOrigin =
  | { readonly kind: 'flag'; readonly detail: string }
  | { readonly kind: 'environment'; readonly detail: string }
  /** `detail` is `path:line:col`. */
  | { readonly kind: 'file'; readonly detail: string }
  | { readonly kind: 'default'; readonly detail: '' };

export const DEFAULT_ORIGIN: ValueOrigin = { kind: 'default', detail: '' };

/** The `file` of a problem with an overridden value. */
export function formatOriginFile(origin: ValueOrigin): string {
  return `${origin.kind}:${origin.detail}`;
}

export function describeOrigin(origin: ValueOrigin): string {
  switch (origin.kind) {
    case 'flag':
      return `flag ${origin.detail}`;
    case 'environment':
      return `env ${origin.detail}`;
    case 'file':
      return origin.detail;
    case 'default':
      return 'default';
  }
}
