// SPDX-License-Identifier: Apache-2.0
// Splits shell text into words, operators and redirections. A here-document becomes part of its redirection.
import { type Redirect, ShellSyntaxError, type ShellToken, type Word } from './syntax.ts';
import { WordReader } from './word-reader.ts';

const OPERATORS = ['&&', '||', ';;', ';', '&', '|', '(', ')', '\n'];
const REDIRECT = /^(\d*)(<<<|<<-?|>>|>&|<&|&>>?|>\||>|<)/;

interface HereDocument {
  readonly index: number;
  readonly delimiter: string;
  readonly literal: boolean;
  readonly stripTabs: boolean;
  readonly fd: number;
}

export function tokenize(text: string): ShellToken[] {
  return new Tokenizer(text).run();
}

class Tokenizer {
  readonly #text: string;
  readonly #tokens: ShellToken[] = [];
  #pendingHereDocuments: HereDocument[] = [];
  #position = 0;

  constructor(text: string) {
    this.#text = text;
  }

  run(): ShellToken[] {
    while (this.#position < this.#text.length) this.#readNext();
    this.#readHereDocuments();
    return this.#tokens;
  }

  #readNext(): void {
    const char = this.#text[this.#position] ?? '';
    if (char === ' ' || char === '\t' || char === '\r') {
      this.#position += 1;
    } else if (char === '\\' && this.#text[this.#position + 1] === '\n') {
      this.#position += 2;
    } else if (char === '#') {
      this.#skipComment();
    } else if (!this.#readRedirect() && !this.#readOperator()) {
      this.#readWordToken();
    }
  }

  #skipComment(): void {
    const end = this.#text.indexOf('\n', this.#position);
    this.#position = end < 0 ? this.#text.length : end;
  }

  #readOperator(): boolean {
    const text = OPERATORS.find((operator) => this.#text.startsWith(operator, this.#position));
    if (text === undefined) return false;
    this.#position += text.length;
    this.#tokens.push({ kind: 'operator', text });
    if (text === '\n') this.#readHereDocuments();
    return true;
  }

  #readWordToken(): void {
    const word = this.#readWord();
    const [first] = word;
    const bare =
      word.length === 1 && first?.kind === 'text' && !first.quoted ? first.text : undefined;
    this.#tokens.push({ kind: 'word', word, bare });
  }

  #readWord(): Word {
    const reader = new WordReader(this.#text, this.#position);
    const word = reader.read();
    if (reader.position === this.#position) {
      throw new ShellSyntaxError(
        `unexpected ${JSON.stringify(this.#text[this.#position] ?? 'end')}`,
      );
    }
    this.#position = reader.position;
    return word;
  }

  #readRedirect(): boolean {
    const match = REDIRECT.exec(this.#text.slice(this.#position, this.#position + 8));
    if (match === null) return false;
    const [whole, digits = '', operator = ''] = match;
    this.#position += whole.length;
    while (this.#text[this.#position] === ' ' || this.#text[this.#position] === '\t')
      this.#position += 1;
    const fd = digits === '' ? (operator.startsWith('<') ? 0 : 1) : Number(digits);
    if (operator === '<<' || operator === '<<-') this.#addHereDocument(operator, fd);
    else
      this.#tokens.push({
        kind: 'redirect',
        redirect: parseRedirect(operator, fd, this.#readWord()),
      });
    return true;
  }

  #addHereDocument(operator: string, fd: number): void {
    const word = this.#readWord();
    const parts = word.map((part) => (part.kind === 'text' ? part : { text: '', quoted: false }));
    this.#pendingHereDocuments.push({
      index: this.#tokens.length,
      delimiter: parts.map((part) => part.text).join(''),
      literal: parts.some((part) => part.quoted),
      stripTabs: operator === '<<-',
      fd,
    });
    this.#tokens.push({ kind: 'redirect', redirect: { fd, operator: 'here', target: [] } });
  }

  #readHereDocuments(): void {
    const waiting = this.#pendingHereDocuments;
    this.#pendingHereDocuments = [];
    for (const here of waiting) {
      const body = this.#readHereBody(here);
      const target: Word = here.literal
        ? [{ kind: 'text', text: body, quoted: true }]
        : WordReader.readQuoted(body);
      this.#tokens[here.index] = {
        kind: 'redirect',
        redirect: { fd: here.fd, operator: 'here', target },
      };
    }
  }

  #readHereBody(here: HereDocument): string {
    let body = '';
    while (this.#position < this.#text.length) {
      const newline = this.#text.indexOf('\n', this.#position);
      const end = newline < 0 ? this.#text.length : newline;
      const raw = this.#text.slice(this.#position, end);
      const line = here.stripTabs ? raw.replace(/^\t+/, '') : raw;
      this.#position = Math.min(end + 1, this.#text.length);
      if (line === here.delimiter) return body;
      body += `${line}\n`;
    }
    throw new ShellSyntaxError(`here-document without its delimiter ${here.delimiter}`);
  }
}

function parseRedirect(operator: string, fd: number, target: Word): Redirect {
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
