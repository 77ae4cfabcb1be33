// SPDX-License-Identifier: Apache-2.0
// Splits Python source into logical lines of tokens. Supports the part of the language that a settings
// module uses. Runs nothing.

import type { SourceProblem } from '../source/yaml-tree.ts';

export interface Token {
  readonly kind: 'name' | 'number' | 'string' | 'operator';
  /** A string's content without quotes and escapes; otherwise the text itself. */
  readonly text: string;
  /** A string whose content is computed or bytes: f'…', b'…'. */
  readonly computed?: boolean;
  readonly line: number;
  readonly column: number;
}

export interface LogicalLine {
  readonly indent: number;
  readonly tokens: readonly [Token, ...Token[]];
}

export type TokenizeResult =
  | { readonly ok: true; readonly lines: readonly LogicalLine[] }
  | { readonly ok: false; readonly problem: SourceProblem };

const PATTERNS = {
  space: /[ \t\f]+/y,
  comment: /#[^\n]*/y,
  continuation: /\\\r?\n/y,
  newline: /\r?\n|\r/y,
  string: /([A-Za-z]{0,2})("""|'''|"|')/y,
  number:
    /(?:0[xX][\da-fA-F_]+|0[oO][0-7_]+|0[bB][01_]+|\d[\d_]*(?:\.[\d_]*)?(?:[eE][+-]?\d+)?|\.\d[\d_]*)/y,
  name: /[\p{L}_][\p{L}\p{N}_]*/uy,
  operator: /->|:=|\*\*|\/\/|[=!<>+\-*/%&|^]=|[-+*/%@&|^~<>()[\]{},:.;=!]/y,
} as const;

const ESCAPES: Readonly<Record<string, string>> = {
  n: '\n',
  t: '\t',
  r: '\r',
  '\\': '\\',
  "'": "'",
  '"': '"',
  '\n': '',
};

class PythonSyntaxError extends Error {
  readonly offset: number;
  constructor(offset: number, message: string) {
    super(message);
    this.offset = offset;
  }
}

export function tokenizePython(text: string): TokenizeResult {
  const scanner = new PythonScanner(text);
  try {
    return { ok: true, lines: scanner.scanLines() };
  } catch (error) {
    if (!(error instanceof PythonSyntaxError)) throw error;
    return { ok: false, problem: { ...scanner.positionAt(error.offset), message: error.message } };
  }
}

class PythonScanner {
  readonly #text: string;
  readonly #lineStarts: readonly number[];
  readonly #lines: LogicalLine[] = [];
  #tokens: Token[] = [];
  /** Indentation of the first statement of the line. */
  #indent: number | undefined;
  #depth = 0;
  #offset = 0;

  constructor(text: string) {
    this.#text = text;
    this.#lineStarts = [
      0,
      ...[...text.matchAll(/\r?\n|\r/g)].map((end) => end.index + end[0].length),
    ];
  }

  scanLines(): readonly LogicalLine[] {
    while (this.#offset < this.#text.length) this.#scanToken();
    if (this.#depth > 0) throw new PythonSyntaxError(this.#text.length, 'missing closing bracket');
    this.#endLine();
    return this.#lines;
  }

  positionAt(offset: number): { readonly line: number; readonly column: number } {
    let low = 0;
    let high = this.#lineStarts.length - 1;
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if ((this.#lineStarts[middle] ?? 0) <= offset) low = middle;
      else high = middle - 1;
    }
    return { line: low + 1, column: offset - (this.#lineStarts[low] ?? 0) + 1 };
  }

  #scanToken(): void {
    if (
      this.#match(PATTERNS.space) ??
      this.#match(PATTERNS.comment) ??
      this.#match(PATTERNS.continuation)
    )
      return;
    if (this.#match(PATTERNS.newline)) {
      if (this.#depth === 0) this.#endLine();
      return;
    }
    const start = this.#offset;
    const quote = this.#match(PATTERNS.string);
    if (quote) this.#scanString(start, quote);
    else this.#scanPlainToken(start);
  }

  #scanPlainToken(start: number): void {
    for (const kind of ['number', 'name', 'operator'] as const) {
      const match = this.#match(PATTERNS[kind]);
      if (match === undefined) continue;
      if (kind === 'operator') this.#trackBracket(match[0], start);
      this.#addToken({ kind, text: match[0], ...this.positionAt(start) });
      return;
    }
    throw new PythonSyntaxError(start, 'unexpected character');
  }

  #trackBracket(operator: string, start: number): void {
    if ('([{'.includes(operator)) this.#depth += 1;
    if (')]}'.includes(operator)) this.#depth -= 1;
    if (this.#depth < 0)
      throw new PythonSyntaxError(start, 'closing bracket without an opening bracket');
    // `;` ends a statement like a line break.
    if (operator === ';' && this.#depth === 0) this.#endStatement();
  }

  #scanString(start: number, match: RegExpExecArray): void {
    const prefix = (match[1] ?? '').toLowerCase();
    const quote = match[2] ?? '';
    const body = this.#scanStringBody(start, quote);
    const text = prefix.includes('r') ? body : unescape(body);
    const computed = prefix.includes('f') || prefix.includes('b');
    this.#addToken({
      kind: 'string',
      text,
      ...this.positionAt(start),
      ...(computed ? { computed } : {}),
    });
  }

  #scanStringBody(start: number, quote: string): string {
    const from = this.#offset;
    while (this.#offset < this.#text.length) {
      if (this.#text.startsWith(quote, this.#offset)) {
        const body = this.#text.slice(from, this.#offset);
        this.#offset += quote.length;
        return body;
      }
      if (quote.length === 1 && '\r\n'.includes(this.#text.charAt(this.#offset))) break;
      this.#offset += this.#text.charAt(this.#offset) === '\\' ? 2 : 1;
    }
    throw new PythonSyntaxError(start, 'missing closing quote of a string');
  }

  #match(pattern: RegExp): RegExpExecArray | undefined {
    pattern.lastIndex = this.#offset;
    const match = pattern.exec(this.#text);
    if (match === null) return undefined;
    this.#offset += match[0].length;
    return match;
  }

  #addToken(token: Token): void {
    if (token.text !== ';' || token.kind === 'string') this.#tokens.push(token);
  }

  #endLine(): void {
    this.#endStatement();
    this.#indent = undefined;
  }

  #endStatement(): void {
    const [first, ...rest] = this.#tokens;
    if (first === undefined) return;
    this.#indent ??= first.column - 1;
    this.#lines.push({ indent: this.#indent, tokens: [first, ...rest] });
    this.#tokens = [];
  }
}

function unescape(body: string): string {
  return body.replaceAll(/\\(\r\n|[\s\S])/g, (whole, after: string) =>
    after === '\r\n' ? '' : (ESCAPES[after] ?? whole),
  );
}
