// SPDX-License-Identifier: Apache-2.0
// Values as YAML that PyYAML reads back as the same values. It speaks YAML 1.1: `yes`, `0644`, `1:30` and `=`
// are no texts to it, DEL and C1 characters end the reading, and U+2028 is a line break. So a text stands
// plain only when nobody could take it for anything else, as a block only when every character is harmless,
// and in double quotes with escapes otherwise.
import { Document, Scalar, visit } from 'yaml';

const PLAIN = /^[A-Za-z/][A-Za-z0-9_./-]*$/;
/** Words that a reader of YAML 1.1 takes for something else; the last one is a number to some. */
const RESERVED = /^(y|n|yes|no|on|off|true|false|null|e\d+)$/i;
/** Printable, several lines, and neither indented nor empty where a reader would have to guess. */
const BLOCK = /^[^\s][^\n]*\n(?:[^\n]*\n)*(?:[^\n]*[^\s])?$/;
const HARMLESS = /^[\n\x20-\x7e\u00a1-\u1fff\u2030-\u2fff\u3001-\ud7ff]*$/;
/** What no reader may see as it is; only ever inside double quotes. */
const ESCAPED = /[\u007f-\u00a0\u2000-\u202f\ufeff\ufffe\uffff]/g;

export function yamlText(value: unknown): string {
  // Written as 1.2, where `<<` may be quoted; the styles are ours, so the reader's dialect does not matter.
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

/** Whether a text survives the way through YAML and UTF-8 at all. */
export function isWellFormed(text: string): boolean {
  return text.isWellFormed();
}
