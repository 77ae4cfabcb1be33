// SPDX-License-Identifier: Apache-2.0
// Recursive descent over the tokens: the part of the POSIX grammar that scripts of a first boot are written in.
import {
  type Branches,
  type Cases,
  type Compound,
  type Group,
  type Loop,
  type Node,
  type Redirect,
  ShellSyntaxError,
  type Token,
  type Word,
} from './syntax.ts';
import { tokenize } from './tokens.ts';

const SEPARATORS = new Set([';', '&', '\n']);
const NOTHING: Node = { kind: 'list', items: [] };
const ASSIGNMENT = /^([A-Za-z_][A-Za-z0-9_]*)=/;
const MAX_DEPTH = 100;

/** Throws ShellSyntaxError, and nothing else. */
export function parseShell(text: string): Node {
  const parser = new Parser(tokenize(text));
  return parser.script();
}

class Parser {
  readonly #tokens: readonly Token[];
  #at = 0;
  #depth = 0;

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens;
  }

  script(): Node {
    const node = this.#list([]);
    if (this.#at < this.#tokens.length) throw this.#unexpected();
    return node;
  }

  /** Commands up to one of the reserved words or operators in `ends`, which is left in place. */
  #list(ends: readonly string[]): Node {
    this.#depth += 1;
    if (this.#depth > MAX_DEPTH) throw new ShellSyntaxError('nested too deeply');
    const items: Node[] = [];
    this.#skipSeparators();
    while (this.#at < this.#tokens.length && !ends.includes(this.#peek() ?? '')) {
      items.push(this.#chain());
      if (!this.#skipSeparators() && !ends.includes(this.#peek() ?? '')) break;
    }
    this.#depth -= 1;
    const [only] = items;
    return items.length === 1 && only !== undefined ? only : { kind: 'list', items };
  }

  #chain(): Node {
    const first = this.#pipeline();
    const rest: { operator: '&&' | '||'; node: Node }[] = [];
    for (let operator = this.#operator(); isJoin(operator); operator = this.#operator()) {
      this.#at += 1;
      this.#skipNewlines();
      rest.push({ operator, node: this.#pipeline() });
    }
    return rest.length === 0 ? first : { kind: 'chain', first, rest };
  }

  #pipeline(): Node {
    const negated = this.#takeWord('!');
    const commands = [this.#command()];
    while (this.#operator() === '|') {
      this.#at += 1;
      this.#skipNewlines();
      commands.push(this.#command());
    }
    const [only] = commands;
    if (!negated && commands.length === 1 && only !== undefined) return only;
    return { kind: 'pipeline', negated, commands };
  }

  #command(): Node {
    switch (this.#peek()) {
      case 'if':
        return this.#compound(this.#if());
      case 'for':
        return this.#compound(this.#for());
      case 'while':
      case 'until':
        return this.#compound(this.#while());
      case 'case':
        return this.#compound(this.#case());
      case '{':
        return this.#compound(this.#group('}'));
      case '(':
        return this.#compound(this.#group(')'));
      default:
        return this.#isFunction() ? this.#function() : this.#simple();
    }
  }

  #compound(body: Compound['body']): Node {
    return { kind: 'compound', body, redirects: this.#redirects() };
  }

  #if(): Branches {
    const branches: { test: Node; body: Node }[] = [];
    do {
      this.#at += 1;
      const test = this.#list(['then']);
      this.#expect('then');
      branches.push({ test, body: this.#list(['elif', 'else', 'fi']) });
    } while (this.#peek() === 'elif');
    const otherwise = this.#takeWord('else') ? this.#list(['fi']) : undefined;
    this.#expect('fi');
    return { kind: 'if', branches, otherwise };
  }

  #for(): Loop {
    this.#at += 1;
    const variable = this.#bareWord();
    const words: Word[] = [];
    this.#skipNewlines();
    if (this.#takeWord('in')) {
      for (let word = this.#word(); word !== undefined; word = this.#word()) words.push(word);
    } else {
      words.push([{ kind: 'variable', name: '@', quoted: true }]);
    }
    this.#skipSeparators();
    return { kind: 'for', variable, words, test: NOTHING, body: this.#doBlock() };
  }

  #while(): Loop {
    const kind = this.#bareWord() === 'until' ? 'until' : 'while';
    const test = this.#list(['do']);
    return { kind, variable: '', words: [], test, body: this.#doBlock() };
  }

  #doBlock(): Node {
    this.#expect('do');
    const body = this.#list(['done']);
    this.#expect('done');
    return body;
  }

  #case(): Cases {
    this.#at += 1;
    const subject = this.#word() ?? [];
    this.#skipNewlines();
    this.#expect('in');
    const clauses: { patterns: Word[]; body: Node }[] = [];
    this.#skipSeparators();
    while (this.#peek() !== 'esac') {
      clauses.push({ patterns: this.#patterns(), body: this.#list([';;', 'esac']) });
      if (this.#operator() === ';;') this.#at += 1;
      this.#skipSeparators();
    }
    this.#expect('esac');
    return { kind: 'case', subject, clauses };
  }

  #patterns(): Word[] {
    if (this.#operator() === '(') this.#at += 1;
    const patterns: Word[] = [];
    do {
      if (this.#operator() === '|') this.#at += 1;
      const word = this.#word();
      if (word === undefined) throw this.#unexpected();
      patterns.push(word);
    } while (this.#operator() === '|');
    this.#expect(')');
    return patterns;
  }

  #group(end: '}' | ')'): Group {
    this.#at += 1;
    const body = this.#list([end]);
    this.#expect(end);
    return { kind: 'group', subshell: end === ')', body };
  }

  #isFunction(): boolean {
    const [name, open, close] = this.#tokens.slice(this.#at, this.#at + 3);
    if (name?.kind !== 'word' || open?.kind !== 'operator' || close?.kind !== 'operator')
      return false;
    return name.bare !== undefined && open.text === '(' && close.text === ')';
  }

  #function(): Node {
    const name = this.#bareWord();
    this.#at += 2;
    this.#skipNewlines();
    return { kind: 'function', name, body: this.#command() };
  }

  #simple(): Node {
    const assignments: { name: string; value: Word }[] = [];
    const words: Word[] = [];
    const redirects: Redirect[] = [];
    for (let token = this.#tokens[this.#at]; token !== undefined; token = this.#tokens[this.#at]) {
      if (token.kind === 'operator') break;
      this.#at += 1;
      if (token.kind === 'redirect') redirects.push(token.redirect);
      else {
        const assignment = words.length === 0 ? assignmentOf(token.word) : undefined;
        if (assignment === undefined) words.push(token.word);
        else assignments.push(assignment);
      }
    }
    if (assignments.length + words.length + redirects.length === 0) throw this.#unexpected();
    return { kind: 'simple', assignments, words, redirects };
  }

  #redirects(): Redirect[] {
    const redirects: Redirect[] = [];
    for (
      let token = this.#tokens[this.#at];
      token?.kind === 'redirect';
      token = this.#tokens[this.#at]
    ) {
      redirects.push(token.redirect);
      this.#at += 1;
    }
    return redirects;
  }

  #word(): Word | undefined {
    const token = this.#tokens[this.#at];
    if (token?.kind !== 'word') return undefined;
    this.#at += 1;
    return token.word;
  }

  #bareWord(): string {
    const token = this.#tokens[this.#at];
    if (token?.kind !== 'word' || token.bare === undefined) throw this.#unexpected();
    this.#at += 1;
    return token.bare;
  }

  /** The text of the next token, as far as it can be an operator or a reserved word. */
  #peek(): string | undefined {
    const token = this.#tokens[this.#at];
    if (token?.kind === 'word') return token.bare;
    return token?.kind === 'operator' ? token.text : undefined;
  }

  #operator(): string | undefined {
    const token = this.#tokens[this.#at];
    return token?.kind === 'operator' ? token.text : undefined;
  }

  #takeWord(text: string): boolean {
    if (this.#peek() !== text) return false;
    this.#at += 1;
    return true;
  }

  #expect(text: string): void {
    if (!this.#takeWord(text)) throw this.#unexpected(text);
  }

  #skipNewlines(): void {
    while (this.#operator() === '\n') this.#at += 1;
  }

  #skipSeparators(): boolean {
    const start = this.#at;
    while (SEPARATORS.has(this.#operator() ?? '')) this.#at += 1;
    return this.#at > start;
  }

  #unexpected(wanted?: string): ShellSyntaxError {
    const found =
      this.#at < this.#tokens.length ? JSON.stringify(this.#peek() ?? 'a word') : 'end of text';
    return new ShellSyntaxError(
      wanted === undefined ? `unexpected ${found}` : `expected ${wanted}, found ${found}`,
    );
  }
}

function isJoin(operator: string | undefined): operator is '&&' | '||' {
  return operator === '&&' || operator === '||';
}

function assignmentOf(word: Word): { name: string; value: Word } | undefined {
  const [first, ...rest] = word;
  if (first?.kind !== 'text' || first.quoted) return undefined;
  const match = ASSIGNMENT.exec(first.text);
  if (match === null) return undefined;
  const [prefix, name = ''] = match;
  return { name, value: [{ ...first, text: first.text.slice(prefix.length) }, ...rest] };
}
