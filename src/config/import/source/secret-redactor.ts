// SPDX-License-Identifier: Apache-2.0
// Collects secrets of the source file and removes them from every output. The mapping functions print no
// secrets; this class protects against secrets at unexpected places, for example in the line above because
// of a missing colon.

import type { SourceTree } from './tree.ts';

const SECRET_KEY = /secret|token|passw/i;
const NOT_SECRET_KEY = /token_?id$/i;
/** The end of a key that names a secret, and its value. Bounded repetition, because the text may be long. */
const SECRET_IN_TEXT =
  /((?:secret|token|passw)[\w.-]{0,40})["']?\]?\s{0,9}[:=\s]\s{0,9}("[^"\n]{0,999}"|'[^'\n]{0,999}'|[^\s,}#]{1,999})/gi;
/** UUIDs (Proxmox tokens), bootstrap tokens, k3s tokens. */
const SECRET_FORMATS =
  /\b[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}\b|\b[a-z\d]{6}\.[a-z\d]{16}\b|\bK10[\da-f]{8,99}\S{0,999}/gi;
const MIN_SECRET_LENGTH = 6;
const HIDDEN = '(hidden)';

export class SecretRedactor {
  readonly #secrets = new Set<string>();

  constructor(text: string) {
    for (const [, key = '', value = ''] of text.matchAll(SECRET_IN_TEXT)) {
      if (!NOT_SECRET_KEY.test(key)) this.add(value.replaceAll(/^["']|["']$/g, ''));
    }
    for (const [shape] of text.matchAll(SECRET_FORMATS)) this.add(shape);
  }

  /** Ignores short secrets: redacting every `lab` in a file whose password is "lab" would reveal it. */
  add(secret: string): void {
    const trimmed = secret.trim();
    if (trimmed.length >= MIN_SECRET_LENGTH && !isReference(trimmed)) this.#secrets.add(trimmed);
  }

  /** Adds every value of the tree whose key names a secret. */
  addTree(tree: SourceTree, key = ''): void {
    if (tree.kind === 'map') for (const [name, child] of tree.entries) this.addTree(child, name);
    if (tree.kind === 'list') for (const item of tree.items) this.addTree(item, key);
    const isSecret = SECRET_KEY.test(key) && !NOT_SECRET_KEY.test(key);
    if (tree.kind === 'scalar' && isSecret) this.add(String(tree.value));
  }

  containsSecret(text: string): boolean {
    return this.redact(text) !== text;
  }

  redact(text: string): string {
    let shown = text;
    for (const secret of this.#secrets) shown = shown.replaceAll(secret, HIDDEN);
    return shown;
  }
}

// For example `pxe_password = os.environ['PXE_PASSWORD']`, and words after "token" in a comment.
function isReference(text: string): boolean {
  return /^(?:os\.|environ|getenv|[A-Z][A-Z_]+$|[a-z_]+$)/.test(text) && !/\d/.test(text);
}
