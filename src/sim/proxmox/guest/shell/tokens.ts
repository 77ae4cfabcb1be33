// SPDX-License-Identifier: Apache-2.0
// Splits shell text into words, operators and redirections; here-documents are taken in with their redirection.
import { type Redirect, ShellSyntaxError, type Token, type Word } from './syntax.ts';
import { WordReader } from './words.ts';

const OPERATORS = ['&&', '||', ';;', ';', '&', '|', '(', ')', '\n'];
const REDIRECT = /^(\d*)(<<<|<<-?|>>|>&|<&|&>>?|>\||>|<)/;

interface HereDocument {
  readonly index: number;
  readonly delimiter: string;
  readonly literal: boolean;
  readonly stripTabs: boolean;
  readonly fd: number;
}

export function tokenize(text: string): Token[] {
  return new Tokenizer(text).run();
}

class Tokenizer {
  readonly #text: string;
  readonly #tokens: Token[] = [];
  #here: HereDocument[] = [];
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  run(): Token[] {
    while (this.#at < this.#text.length) this.#next();
    this.#readHereDocuments();
    return this.#tokens;
  }

  #next(): void {
    const char = this.#text[this.#at] ?? '';
    if (char === ' ' || char === '\t' || char === '\r') {
      this.#at += 1;
    } else if (char === '\\' && this.#text[this.#at + 1] === '\n') {
      this.#at += 2;
    } else if (char === '#') {
      this.#skipComment();
    } else if (!this.#redirect() && !this.#operator()) {
      this.#word();
    }
  }

  #skipComment(): void {
    const end = this.#text.indexOf('\n', this.#at);
    this.#at = end < 0 ? this.#text.length : end;
  }

  #operator(): boolean {
    const text = OPERATORS.find((operator) => this.#text.startsWith(operator, this.#at));
    if (text === undefined) return false;
    this.#at += text.length;
    this.#tokens.push({ kind: 'operator', text });
    if (text === '\n') this.#readHereDocuments();
    return true;
  }

  #word(): void {
    const word = this.#readWord();
    const [first] = word;
    const bare =
      word.length === 1 && first?.kind === 'text' && !first.quoted ? first.text : undefined;
    this.#tokens.push({ kind: 'word', word, bare });
  }

  #readWord(): Word {
    const reader = new WordReader(this.#text, this.#at);
    const word = reader.read();
    if (reader.at === this.#at) {
      throw new ShellSyntaxError(`unexpected ${JSON.stringify(this.#text[this.#at] ?? 'end')}`);
    }
    this.#at = reader.at;
    return word;
  }

  #redirect(): boolean {
    const match = REDIRECT.exec(this.#text.slice(this.#at, this.#at + 8));
    if (match === null) return false;
    const [whole, digits = '', operator = ''] = match;
    this.#at += whole.length;
    while (this.#text[this.#at] === ' ' || this.#text[this.#at] === '\t') this.#at += 1;
    const fd = digits === '' ? (operator.startsWith('<') ? 0 : 1) : Number(digits);
    if (operator === '<<' || operator === '<<-') this.#announceHereDocument(operator, fd);
    else
      this.#tokens.push({ kind: 'redirect', redirect: redirectOf(operator, fd, this.#readWord()) });
    return true;
  }

  #announceHereDocument(operator: string, fd: number): void {
    const word = this.#readWord();
    const parts = word.map((part) => (part.kind === 'text' ? part : { text: '', quoted: false }));
    this.#here.push({
      index: this.#tokens.length,
      delimiter: parts.map((part) => part.text).join(''),
      literal: parts.some((part) => part.quoted),
      stripTabs: operator === '<<-',
      fd,
    });
    this.#tokens.push({ kind: 'redirect', redirect: { fd, operator: 'here', target: [] } });
  }

  #readHereDocuments(): void {
    const waiting = this.#here;
    this.#here = [];
    for (const here of waiting) {
      const body = this.#hereBody(here);
      const target: Word = here.literal
        ? [{ kind: 'text', text: body, quoted: true }]
        : WordReader.quoted(body);
      this.#tokens[here.index] = {
        kind: 'redirect',
        redirect: { fd: here.fd, operator: 'here', target },
      };
    }
  }

  #hereBody(here: HereDocument): string {
    let body = '';
    while (this.#at < this.#text.length) {
      const newline = this.#text.indexOf('\n', this.#at);
      const end = newline < 0 ? this.#text.length : newline;
      const raw = this.#text.slice(this.#at, end);
      const line = here.stripTabs ? raw.replace(/^\t+/, '') : raw;
      this.#at = Math.min(end + 1, this.#text.length);
      if (line === here.delimiter) return body;
      body += `${line}\n`;
    }
    throw new ShellSyntaxError(`here-document without its end ${here.delimiter}`);
  }
}

function redirectOf(operator: string, fd: number, target: Word): Redirect {
  if (operator === '<<<') {
    return {
      fd,
      operator: 'here',
      target: [...target, { kind: 'text', text: '\n', quoted: true }],
    };
  }
  if (operator === '>|') return { fd, operator: '>', target };
  if (operator === '&>' || operator === '&>>') return { fd, operator: '&>', target };
  if (operator === '>&' || operator === '<&') return { fd, operator: '>&', target };
  return { fd, operator: operator === '>>' ? '>>' : operator === '<' ? '<' : '>', target };
}
