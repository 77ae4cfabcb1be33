// SPDX-License-Identifier: Apache-2.0
// Reads one word of shell text with its quotes, escapes, variables and substitutions. Does not expand them.
import { ShellSyntaxError, type Word, type WordPart } from './syntax.ts';

const WORD_END = new Set([' ', '\t', '\n', ';', '&', '|', '<', '>', '(', ')']);
const NAME = /^[A-Za-z_][A-Za-z0-9_]*/;
const SPECIAL_PARAMETERS = '@*#?$!0123456789';
const PARAMETER_OPERATOR = /^(:[-=+?]|[-=+]|%%|%|##|#)/;

export class WordReader {
  readonly #text: string;
  position: number;
  readonly #parts: WordPart[] = [];
  #pending = '';
  #pendingQuoted = false;

  constructor(text: string, at: number) {
    this.#text = text;
    this.position = at;
  }

  /** Reads up to the first unquoted character that ends a word. */
  read(): Word {
    while (this.position < this.#text.length && !WORD_END.has(this.#text[this.position] ?? ''))
      this.#readOne();
    this.#flushText();
    return this.#parts;
  }

  /** Reads the whole text as if in double quotes, for here-documents and the operand of `${x:-…}`. */
  static readQuoted(text: string): Word {
    const reader = new WordReader(text, 0);
    while (reader.position < text.length) reader.#readOneInDoubleQuotes();
    reader.#flushText();
    return reader.#parts;
  }

  #readOne(): void {
    const char = this.#text[this.position] ?? '';
    if (char === "'") return this.#readSingleQuotes();
    if (char === '"') return this.#readDoubleQuotes();
    if (char === '\\') return this.#readEscape();
    if (char === '$' || char === '`') return this.#readExpansion(false);
    this.#addText(char, false);
    this.position += 1;
  }

  #readEscape(): void {
    const next = this.#text[this.position + 1];
    // A backslash at the end of a line joins the lines.
    if (next !== '\n') this.#addText(next ?? '\\', true);
    this.position += 2;
  }

  #readSingleQuotes(): void {
    const end = this.#text.indexOf("'", this.position + 1);
    if (end < 0) throw new ShellSyntaxError('unterminated single quote');
    this.#addText(this.#text.slice(this.position + 1, end), true);
    this.position = end + 1;
  }

  #readDoubleQuotes(): void {
    this.position += 1;
    this.#addText('', true);
    while (this.#text[this.position] !== '"') {
      if (this.position >= this.#text.length)
        throw new ShellSyntaxError('unterminated double quote');
      this.#readOneInDoubleQuotes();
    }
    this.position += 1;
  }

  #readOneInDoubleQuotes(): void {
    const char = this.#text[this.position] ?? '';
    const next = this.#text[this.position + 1] ?? '';
    if (char === '$' || char === '`') return this.#readExpansion(true);
    if (char === '\\' && '$`"\\\n'.includes(next) && next !== '') {
      if (next !== '\n') this.#addText(next, true);
      this.position += 2;
      return;
    }
    this.#addText(char, true);
    this.position += 1;
  }

  #readExpansion(quoted: boolean): void {
    if (this.#text[this.position] === '`') return this.#readBackticks(quoted);
    const rest = this.#text.slice(this.position + 1);
    if (rest.startsWith('((')) return this.#readArithmetic();
    if (rest.startsWith('(')) return this.#readSubstitution(quoted);
    if (rest.startsWith('{')) return this.#readBraces(quoted);
    const name =
      NAME.exec(rest)?.[0] ?? (SPECIAL_PARAMETERS.includes(rest[0] ?? ' ') ? rest[0] : '');
    if (name === undefined || name === '') {
      this.#addText('$', quoted);
      this.position += 1;
      return;
    }
    this.#addPart({ kind: 'variable', name, quoted });
    this.position += 1 + name.length;
  }

  #readBackticks(quoted: boolean): void {
    const end = this.#text.indexOf('`', this.position + 1);
    if (end < 0) throw new ShellSyntaxError('unterminated backtick');
    this.#addPart({ kind: 'command', script: this.#text.slice(this.position + 1, end), quoted });
    this.position = end + 1;
  }

  #readArithmetic(): void {
    const end = findClosing(this.#text, this.position + 1, '()');
    this.#addPart({ kind: 'arithmetic', expression: this.#text.slice(this.position + 3, end - 1) });
    this.position = end + 1;
  }

  #readSubstitution(quoted: boolean): void {
    const end = findClosing(this.#text, this.position + 1, '()');
    this.#addPart({ kind: 'command', script: this.#text.slice(this.position + 2, end), quoted });
    this.position = end + 1;
  }

  #readBraces(quoted: boolean): void {
    const end = findClosing(this.#text, this.position + 1, '{}');
    const inner = this.#text.slice(this.position + 2, end);
    this.position = end + 1;
    this.#addPart(parseParameter(inner, quoted));
  }

  #addText(text: string, quoted: boolean): void {
    if (quoted !== this.#pendingQuoted) this.#flushText();
    this.#pendingQuoted = quoted;
    this.#pending += text;
    // An empty pair of quotes is an empty word.
    if (quoted && text === '') this.#parts.push({ kind: 'text', text: '', quoted: true });
  }

  #addPart(part: WordPart): void {
    this.#flushText();
    this.#parts.push(part);
  }

  #flushText(): void {
    if (this.#pending === '') return;
    this.#parts.push({ kind: 'text', text: this.#pending, quoted: this.#pendingQuoted });
    this.#pending = '';
  }
}

function parseParameter(inner: string, quoted: boolean): WordPart {
  if (inner.startsWith('#') && inner.length > 1) {
    return { kind: 'variable', name: inner.slice(1), quoted, operator: 'length' };
  }
  const name = NAME.exec(inner)?.[0] ?? inner.slice(0, 1);
  const rest = inner.slice(name.length);
  if (rest === '') return { kind: 'variable', name, quoted };
  const operator = PARAMETER_OPERATOR.exec(rest)?.[0];
  if (operator === undefined) throw new ShellSyntaxError(`bad substitution: \${${inner}}`);
  const operand = parseOperand(rest.slice(operator.length));
  return { kind: 'variable', name, quoted, operator, operand };
}

function parseOperand(text: string): Word {
  const quotes = /^(["'])(.*)\1$/s.exec(text);
  if (quotes?.[1] === "'") return [{ kind: 'text', text: quotes[2] ?? '', quoted: true }];
  return WordReader.readQuoted(quotes?.[2] ?? text);
}

/** The index of the bracket that closes the one at `open`; skips quotes and nested pairs. */
function findClosing(text: string, open: number, pair: '()' | '{}'): number {
  let depth = 0;
  for (let at = open; at < text.length; at += 1) {
    const char = text[at];
    if (char === '\\') at += 1;
    else if (char === "'" || char === '"') at = findQuoteEnd(text, at);
    else if (char === pair[0]) depth += 1;
    else if (char === pair[1]) depth -= 1;
    if (depth === 0) return at;
  }
  throw new ShellSyntaxError(`missing ${pair[1]}`);
}

function findQuoteEnd(text: string, open: number): number {
  const quote = text[open];
  for (let at = open + 1; at < text.length; at += 1) {
    if (text[at] === '\\' && quote === '"') at += 1;
    else if (text[at] === quote) return at;
  }
  throw new ShellSyntaxError('unterminated quote in a substitution');
}
