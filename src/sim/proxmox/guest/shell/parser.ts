// SPDX-License-Identifier: Apache-2.0
// Recursive descent parser for the part of the POSIX shell grammar that first-boot scripts use.
import {
  type CaseStatement,
  type CompoundCommand,
  type Group,
  type IfStatement,
  type Loop,
  type Redirect,
  type ShellNode,
  ShellSyntaxError,
  type ShellToken,
  type Word,
} from './syntax.ts';
import { tokenize } from './tokenizer.ts';

const SEPARATORS = new Set([';', '&', '\n']);
const EMPTY_LIST: ShellNode = { kind: 'list', items: [] };
const ASSIGNMENT = /^([A-Za-z_][A-Za-z0-9_]*)=/;
const MAX_NESTING_DEPTH = 100;

/** Throws only ShellSyntaxError. */
export function parseShell(text: string): ShellNode {
  const parser = new Parser(tokenize(text));
  return parser.parseScript();
}

class Parser {
  readonly #tokens: readonly ShellToken[];
  #position = 0;
  #depth = 0;

  constructor(tokens: readonly ShellToken[]) {
    this.#tokens = tokens;
  }

  parseScript(): ShellNode {
    const node = this.#parseList([]);
    if (this.#position < this.#tokens.length) throw this.#unexpectedTokenError();
    return node;
  }

  /** Parses commands up to one of the reserved words or operators in `ends`, which is not consumed. */
  #parseList(ends: readonly string[]): ShellNode {
    this.#depth += 1;
    if (this.#depth > MAX_NESTING_DEPTH) throw new ShellSyntaxError('nested too deeply');
    const items: ShellNode[] = [];
    this.#skipSeparators();
    while (this.#position < this.#tokens.length && !ends.includes(this.#peek() ?? '')) {
      const node = this.#parseChain();
      items.push(this.#peekOperator() === '&' ? { kind: 'background', node } : node);
      if (!this.#skipSeparators() && !ends.includes(this.#peek() ?? '')) break;
    }
    this.#depth -= 1;
    const [only] = items;
    return items.length === 1 && only !== undefined ? only : { kind: 'list', items };
  }

  #parseChain(): ShellNode {
    const first = this.#parsePipeline();
    const rest: { operator: '&&' | '||'; node: ShellNode }[] = [];
    for (let operator = this.#peekOperator(); isAndOr(operator); operator = this.#peekOperator()) {
      this.#position += 1;
      this.#skipNewlines();
      rest.push({ operator, node: this.#parsePipeline() });
    }
    return rest.length === 0 ? first : { kind: 'chain', first, rest };
  }

  #parsePipeline(): ShellNode {
    const negated = this.#takeWord('!');
    const commands = [this.#parseCommand()];
    while (this.#peekOperator() === '|') {
      this.#position += 1;
      this.#skipNewlines();
      commands.push(this.#parseCommand());
    }
    const [only] = commands;
    if (!negated && commands.length === 1 && only !== undefined) return only;
    return { kind: 'pipeline', negated, commands };
  }

  #parseCommand(): ShellNode {
    switch (this.#peek()) {
      case 'if':
        return this.#parseCompound(this.#parseIf());
      case 'for':
        return this.#parseCompound(this.#parseFor());
      case 'while':
      case 'until':
        return this.#parseCompound(this.#parseWhile());
      case 'case':
        return this.#parseCompound(this.#parseCase());
      case '{':
        return this.#parseCompound(this.#parseGroup('}'));
      case '(':
        return this.#parseCompound(this.#parseGroup(')'));
      case undefined:
      default:
        return this.#isAtFunction() ? this.#parseFunction() : this.#parseSimple();
    }
  }

  #parseCompound(body: CompoundCommand['body']): ShellNode {
    return { kind: 'compound', body, redirects: this.#parseRedirects() };
  }

  #parseIf(): IfStatement {
    const branches: { test: ShellNode; body: ShellNode }[] = [];
    do {
      this.#position += 1;
      const test = this.#parseList(['then']);
      this.#expect('then');
      branches.push({ test, body: this.#parseList(['elif', 'else', 'fi']) });
    } while (this.#peek() === 'elif');
    const otherwise = this.#takeWord('else') ? this.#parseList(['fi']) : undefined;
    this.#expect('fi');
    return { kind: 'if', branches, otherwise };
  }

  #parseFor(): Loop {
    this.#position += 1;
    const variable = this.#takeBareWord();
    const words: Word[] = [];
    this.#skipNewlines();
    if (this.#takeWord('in')) {
      for (let word = this.#takeAnyWord(); word !== undefined; word = this.#takeAnyWord())
        words.push(word);
    } else {
      words.push([{ kind: 'variable', name: '@', quoted: true }]);
    }
    this.#skipSeparators();
    return { kind: 'for', variable, words, test: EMPTY_LIST, body: this.#parseDoBlock() };
  }

  #parseWhile(): Loop {
    const kind = this.#takeBareWord() === 'until' ? 'until' : 'while';
    const test = this.#parseList(['do']);
    return { kind, variable: '', words: [], test, body: this.#parseDoBlock() };
  }

  #parseDoBlock(): ShellNode {
    this.#expect('do');
    const body = this.#parseList(['done']);
    this.#expect('done');
    return body;
  }

  #parseCase(): CaseStatement {
    this.#position += 1;
    const subject = this.#takeAnyWord() ?? [];
    this.#skipNewlines();
    this.#expect('in');
    const clauses: { patterns: Word[]; body: ShellNode }[] = [];
    this.#skipSeparators();
    while (this.#peek() !== 'esac') {
      clauses.push({ patterns: this.#parsePatterns(), body: this.#parseList([';;', 'esac']) });
      if (this.#peekOperator() === ';;') this.#position += 1;
      this.#skipSeparators();
    }
    this.#expect('esac');
    return { kind: 'case', subject, clauses };
  }

  #parsePatterns(): Word[] {
    if (this.#peekOperator() === '(') this.#position += 1;
    const patterns: Word[] = [];
    do {
      if (this.#peekOperator() === '|') this.#position += 1;
      const word = this.#takeAnyWord();
      if (word === undefined) throw this.#unexpectedTokenError();
      patterns.push(word);
    } while (this.#peekOperator() === '|');
    this.#expect(')');
    return patterns;
  }

  #parseGroup(end: '}' | ')'): Group {
    this.#position += 1;
    const body = this.#parseList([end]);
    this.#expect(end);
    return { kind: 'group', subshell: end === ')', body };
  }

  #isAtFunction(): boolean {
    const [name, open, close] = this.#tokens.slice(this.#position, this.#position + 3);
    if (name?.kind !== 'word' || open?.kind !== 'operator' || close?.kind !== 'operator')
      return false;
    return name.bare !== undefined && open.text === '(' && close.text === ')';
  }

  #parseFunction(): ShellNode {
    const name = this.#takeBareWord();
    this.#position += 2;
    this.#skipNewlines();
    return { kind: 'function', name, body: this.#parseCommand() };
  }

  #parseSimple(): ShellNode {
    const assignments: { name: string; value: Word }[] = [];
    const words: Word[] = [];
    const redirects: Redirect[] = [];
    for (
      let token = this.#tokens[this.#position];
      token !== undefined;
      token = this.#tokens[this.#position]
    ) {
      if (token.kind === 'operator') break;
      this.#position += 1;
      if (token.kind === 'redirect') redirects.push(token.redirect);
      else {
        const assignment = words.length === 0 ? parseAssignment(token.word) : undefined;
        if (assignment === undefined) words.push(token.word);
        else assignments.push(assignment);
      }
    }
    if (assignments.length + words.length + redirects.length === 0)
      throw this.#unexpectedTokenError();
    return { kind: 'simple', assignments, words, redirects };
  }

  #parseRedirects(): Redirect[] {
    const redirects: Redirect[] = [];
    for (
      let token = this.#tokens[this.#position];
      token?.kind === 'redirect';
      token = this.#tokens[this.#position]
    ) {
      redirects.push(token.redirect);
      this.#position += 1;
    }
    return redirects;
  }

  #takeAnyWord(): Word | undefined {
    const token = this.#tokens[this.#position];
    if (token?.kind !== 'word') return undefined;
    this.#position += 1;
    return token.word;
  }

  #takeBareWord(): string {
    const token = this.#tokens[this.#position];
    if (token?.kind !== 'word' || token.bare === undefined) throw this.#unexpectedTokenError();
    this.#position += 1;
    return token.bare;
  }

  /** The text of the next token if it can be an operator or a reserved word. */
  #peek(): string | undefined {
    const token = this.#tokens[this.#position];
    if (token?.kind === 'word') return token.bare;
    return token?.kind === 'operator' ? token.text : undefined;
  }

  #peekOperator(): string | undefined {
    const token = this.#tokens[this.#position];
    return token?.kind === 'operator' ? token.text : undefined;
  }

  #takeWord(text: string): boolean {
    if (this.#peek() !== text) return false;
    this.#position += 1;
    return true;
  }

  #expect(text: string): void {
    if (!this.#takeWord(text)) throw this.#unexpectedTokenError(text);
  }

  #skipNewlines(): void {
    while (this.#peekOperator() === '\n') this.#position += 1;
  }

  #skipSeparators(): boolean {
    const start = this.#position;
    while (SEPARATORS.has(this.#peekOperator() ?? '')) this.#position += 1;
    return this.#position > start;
  }

  #unexpectedTokenError(expected?: string): ShellSyntaxError {
    const found =
      this.#position < this.#tokens.length
        ? JSON.stringify(this.#peek() ?? 'a word')
        : 'end of text';
    return new ShellSyntaxError(
      expected === undefined ? `unexpected ${found}` : `expected ${expected}, found ${found}`,
    );
  }
}

function isAndOr(operator: string | undefined): operator is '&&' | '||' {
  return operator === '&&' || operator === '||';
}

function parseAssignment(word: Word): { name: string; value: Word } | undefined {
  const [first, ...rest] = word;
  if (first?.kind !== 'text' || first.quoted) return undefined;
  const match = ASSIGNMENT.exec(first.text);
  if (match === null) return undefined;
  const [prefix, name = ''] = match;
  return { name, value: [{ ...first, text: first.text.slice(prefix.length) }, ...rest] };
}
