// SPDX-License-Identifier: Apache-2.0
// Reads one word of shell text: quotes, escapes, variables and substitutions, without expanding anything.
import { ShellSyntaxError, type Word, type WordPart } from './syntax.ts';

const WORD_END = new Set([' ', '\t', '\n', ';', '&', '|', '<', '>', '(', ')']);
const NAME = /^[A-Za-z_][A-Za-z0-9_]*/;
const SPECIAL_PARAMETERS = '@*#?$!0123456789';
const OPERATOR = /^(:[-=+?]|[-=+]|%%|%|##|#)/;

export class WordReader {
  readonly #text: string;
  at: number;
  readonly #parts: WordPart[] = [];
  #pending = '';
  #pendingQuoted = false;

  constructor(text: string, at: number) {
    this.#text = text;
    this.at = at;
  }

  /** Up to the first character that ends a word outside of quotes. */
  read(): Word {
    while (this.at < this.#text.length && !WORD_END.has(this.#text[this.at] ?? '')) this.#one();
    this.#flush();
    return this.#parts;
  }

  /** As between double quotes, up to the end: here-documents and the operand of `${x:-…}`. */
  static quoted(text: string): Word {
    const reader = new WordReader(text, 0);
    while (reader.at < text.length) reader.#oneInDoubleQuotes();
    reader.#flush();
    return reader.#parts;
  }

  #one(): void {
    const char = this.#text[this.at] ?? '';
    if (char === "'") return this.#singleQuotes();
    if (char === '"') return this.#doubleQuotes();
    if (char === '\\') return this.#escape();
    if (char === '$' || char === '`') return this.#expansion(false);
    this.#add(char, false);
    this.at += 1;
  }

  #escape(): void {
    const next = this.#text[this.at + 1];
    // A backslash before a line's end joins the lines.
    if (next !== '\n') this.#add(next ?? '\\', true);
    this.at += 2;
  }

  #singleQuotes(): void {
    const end = this.#text.indexOf("'", this.at + 1);
    if (end < 0) throw new ShellSyntaxError('unterminated single quote');
    this.#add(this.#text.slice(this.at + 1, end), true);
    this.at = end + 1;
  }

  #doubleQuotes(): void {
    this.at += 1;
    this.#add('', true);
    while (this.#text[this.at] !== '"') {
      if (this.at >= this.#text.length) throw new ShellSyntaxError('unterminated double quote');
      this.#oneInDoubleQuotes();
    }
    this.at += 1;
  }

  #oneInDoubleQuotes(): void {
    const char = this.#text[this.at] ?? '';
    const next = this.#text[this.at + 1] ?? '';
    if (char === '$' || char === '`') return this.#expansion(true);
    if (char === '\\' && '$`"\\\n'.includes(next) && next !== '') {
      if (next !== '\n') this.#add(next, true);
      this.at += 2;
      return;
    }
    this.#add(char, true);
    this.at += 1;
  }

  #expansion(quoted: boolean): void {
    if (this.#text[this.at] === '`') return this.#backticks(quoted);
    const rest = this.#text.slice(this.at + 1);
    if (rest.startsWith('((')) return this.#arithmetic();
    if (rest.startsWith('(')) return this.#substitution(quoted);
    if (rest.startsWith('{')) return this.#braces(quoted);
    const name =
      NAME.exec(rest)?.[0] ?? (SPECIAL_PARAMETERS.includes(rest[0] ?? ' ') ? rest[0] : '');
    if (name === undefined || name === '') {
      this.#add('$', quoted);
      this.at += 1;
      return;
    }
    this.#push({ kind: 'variable', name, quoted });
    this.at += 1 + name.length;
  }

  #backticks(quoted: boolean): void {
    const end = this.#text.indexOf('`', this.at + 1);
    if (end < 0) throw new ShellSyntaxError('unterminated backtick');
    this.#push({ kind: 'command', script: this.#text.slice(this.at + 1, end), quoted });
    this.at = end + 1;
  }

  #arithmetic(): void {
    const end = closing(this.#text, this.at + 1, '()');
    this.#push({ kind: 'arithmetic', expression: this.#text.slice(this.at + 3, end - 1) });
    this.at = end + 1;
  }

  #substitution(quoted: boolean): void {
    const end = closing(this.#text, this.at + 1, '()');
    this.#push({ kind: 'command', script: this.#text.slice(this.at + 2, end), quoted });
    this.at = end + 1;
  }

  #braces(quoted: boolean): void {
    const end = closing(this.#text, this.at + 1, '{}');
    const inner = this.#text.slice(this.at + 2, end);
    this.at = end + 1;
    this.#push(parameter(inner, quoted));
  }

  #add(text: string, quoted: boolean): void {
    if (quoted !== this.#pendingQuoted) this.#flush();
    this.#pendingQuoted = quoted;
    this.#pending += text;
    // An empty pair of quotes is a word, if an empty one.
    if (quoted && text === '') this.#parts.push({ kind: 'text', text: '', quoted: true });
  }

  #push(part: WordPart): void {
    this.#flush();
    this.#parts.push(part);
  }

  #flush(): void {
    if (this.#pending === '') return;
    this.#parts.push({ kind: 'text', text: this.#pending, quoted: this.#pendingQuoted });
    this.#pending = '';
  }
}

function parameter(inner: string, quoted: boolean): WordPart {
  if (inner.startsWith('#') && inner.length > 1) {
    return { kind: 'variable', name: inner.slice(1), quoted, operator: 'length' };
  }
  const name = NAME.exec(inner)?.[0] ?? inner.slice(0, 1);
  const rest = inner.slice(name.length);
  if (rest === '') return { kind: 'variable', name, quoted };
  const operator = OPERATOR.exec(rest)?.[0];
  if (operator === undefined) throw new ShellSyntaxError(`bad substitution: \${${inner}}`);
  const operand = unquotedOperand(rest.slice(operator.length));
  return { kind: 'variable', name, quoted, operator, operand };
}

function unquotedOperand(text: string): Word {
  const quotes = /^(["'])(.*)\1$/s.exec(text);
  if (quotes?.[1] === "'") return [{ kind: 'text', text: quotes[2] ?? '', quoted: true }];
  return WordReader.quoted(quotes?.[2] ?? text);
}

/** The index of the bracket that closes the one at `open`, past quotes and nested pairs. */
function closing(text: string, open: number, pair: '()' | '{}'): number {
  let depth = 0;
  for (let at = open; at < text.length; at += 1) {
    const char = text[at];
    if (char === '\\') at += 1;
    else if (char === "'" || char === '"') at = endOfQuote(text, at);
    else if (char === pair[0]) depth += 1;
    else if (char === pair[1]) depth -= 1;
    if (depth === 0) return at;
  }
  throw new ShellSyntaxError(`missing ${pair[1]}`);
}

function endOfQuote(text: string, open: number): number {
  const quote = text[open];
  for (let at = open + 1; at < text.length; at += 1) {
    if (text[at] === '\\' && quote === '"') at += 1;
    else if (text[at] === quote) return at;
  }
  throw new ShellSyntaxError('unterminated quote in a substitution');
}
