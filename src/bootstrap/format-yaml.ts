// SPDX-License-Identifier: Apache-2.0
// Formats values as YAML that PyYAML parses back to the same values. PyYAML implements YAML 1.1: it does not
// read `yes`, `0644`, `1:30` and `=` as strings, rejects DEL and C1 characters, and treats U+2028 as a line
// break. A string is therefore plain only if it is unambiguous, a block only if every character is safe, and
// otherwise double-quoted with escapes.
import { Document, Scalar, visit } from 'yaml';

const PLAIN = /^[A-Za-z/][A-Za-z0-9_./-]*$/;
/** Words that YAML 1.1 does not read as strings; some readers take `e1` and `e-1` for numbers. */
const RESERVED = /^(y|n|yes|no|on|off|true|false|null|e-?\d+)$/i;
/** Several lines, without leading or trailing white space that a block would need indicators for. */
const BLOCK = /^[^\s][^\n]*\n(?:[^\n]*\n)*(?:[^\n]*[^\s])?$/;
const HARMLESS = /^[\n\x20-\x7e\u00a1-\u1fff\u2030-\u2fff\u3001-\ud7ff]*$/;
/** Characters that must be escaped. They occur only in double-quoted strings. */
const ESCAPED = /[\u007f-\u00a0\u2000-\u202f\ufeff\ufffe\uffff]/g;

export function formatYaml(value: unknown): string {
  // Written as YAML 1.2, which allows quoting `<<`. All styles are set explicitly, so the reader's YAML version
  // does not matter.
  const document = new Document(value, { version: '1.2', aliasDuplicateObjects: false });
  visit(document, {
    Scalar(key, node) {
      if (typeof node.value === 'string') node.type = styleOf(node.value, key === 'key');
    },
  });
  const text = document.toString({ lineWidth: 0, directives: false });
  return text.replace(ESCAPED, (char) => `\\u${hex(char)}`);
}

function styleOf(text: string, isKey: boolean): Scalar.Type {
  if (PLAIN.test(text) && !RESERVED.test(text)) return Scalar.PLAIN;
  if (!isKey && BLOCK.test(text) && HARMLESS.test(text) && !/\n[ \t]+(\n|$)|[ \t]\n/.test(text)) {
    return Scalar.BLOCK_LITERAL;
  }
  return Scalar.QUOTE_DOUBLE;
}

function hex(char: string): string {
  return char.charCodeAt(0).toString(16).padStart(4, '0');
}

/** Whether the text is valid Unicode, so that YAML and UTF-8 preserve it. */
export function isWellFormed(text: string): boolean {
  return text.isWellFormed();
}
