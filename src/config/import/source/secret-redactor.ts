// SPDX-License-Identifier: Apache-2.0
// Knows what must never be shown. The mappings do not print secrets to begin with; this is for files in which
// a secret slipped somewhere else, for instance into the line above because a colon is missing.

import type { SourceTree } from './tree.ts';

const SECRET_KEY = /secret|token|passw/i;
const NOT_SECRET_KEY = /token_?id$/i;
/** The end of a key that names a secret, and the value behind it. No unbounded repetition: texts may be long. */
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

  /** Short words are not remembered: hiding every `lab` of a file whose password is "lab" would tell it. */
  add(secret: string): void {
    const trimmed = secret.trim();
    if (trimmed.length >= MIN_SECRET_LENGTH && !isReference(trimmed)) this.#secrets.add(trimmed);
  }

  /** Remembers every value in a tree whose key says that it is a secret. */
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

// `pxe_password = os.environ['PXE_PASSWORD']`, and the words that follow "token" in a comment.
function isReference(text: string): boolean {
  return /^(?:os\.|environ|getenv|[A-Z][A-Z_]+$|[a-z_]+$)/.test(text) && !/\d/.test(text);
}
