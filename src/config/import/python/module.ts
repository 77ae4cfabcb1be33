// SPDX-License-Identifier: Apache-2.0
// A Python settings module, as far as it consists of assignments: what each name holds after the module was
// loaded. `try` blocks are followed, since that is where such modules ask the environment; other blocks and
// statements are reported as not evaluated.

import type { Environment, Position } from '../result.ts';
import type { ScalarValue } from '../source/tree.ts';
import type { TextProblem } from '../source/yaml-tree.ts';
import { type Evaluated, evaluate, isSign } from './expression.ts';
import { type LogicalLine, readLines, type Token } from './tokens.ts';

export interface Setting {
  readonly name: string;
  readonly at: Position;
  /** Absent when the expression is not one that can be read without running Python. */
  readonly value?: ScalarValue;
  /** The variable that was asked for it, set or not. */
  readonly variable?: string;
}

export interface PythonModule {
  readonly settings: ReadonlyMap<string, Setting>;
  /** Statements that may change something and were not evaluated. */
  readonly skipped: readonly Position[];
}

export type PythonResult =
  | { readonly ok: true; readonly module: PythonModule }
  | { readonly ok: false; readonly problem: TextProblem };

export function readPython(text: string, environment: Environment): PythonResult {
  const read = readLines(text);
  if (!read.ok) return read;
  return { ok: true, module: new Runner(environment).run(read.lines) };
}

interface Block {
  readonly header: LogicalLine;
  readonly body: readonly LogicalLine[];
}

/** Blocks that belong to the statement before them: to a `try`, or to something that was skipped as a whole. */
const FOLLOWERS: readonly string[] = ['except', 'else', 'elif', 'finally'];

type Outcome = 'fine' | 'raised';

class Runner {
  readonly #environment: Environment;
  readonly #settings = new Map<string, Setting>();
  readonly #variables = new Map<string, string>();
  readonly #skipped: Position[] = [];

  constructor(environment: Environment) {
    this.#environment = environment;
  }

  run(lines: readonly LogicalLine[]): PythonModule {
    // A variable that is missing here stops the module there only if it is missing there, too.
    const blocks = toBlocks(lines);
    for (const [at, block] of blocks.entries()) this.#one(block, takeFollowers(blocks, at + 1));
    return { settings: this.#settings, skipped: this.#skipped };
  }

  #block(lines: readonly LogicalLine[]): Outcome {
    const blocks = toBlocks(lines);
    for (const [at, block] of blocks.entries()) {
      const outcome = this.#one(block, takeFollowers(blocks, at + 1));
      if (outcome === 'raised') return outcome;
    }
    return 'fine';
  }

  #one(block: Block, followers: readonly Block[]): Outcome {
    const word = block.header.tokens[0].text;
    if (word === 'try') return this.#try(block, followers);
    return FOLLOWERS.includes(word) ? 'fine' : this.#statement(block);
  }

  #try(block: Block, followers: readonly Block[]): Outcome {
    const named = (word: string) => followers.find((one) => one.header.tokens[0].text === word);
    const handler = named('except');
    this.#remember(bodyOf(block));
    let outcome = this.#block(bodyOf(block));
    if (outcome === 'fine') outcome = this.#optional(named('else'));
    else if (handler !== undefined) outcome = this.#block(bodyOf(handler));
    return this.#optional(named('finally')) === 'raised' ? 'raised' : outcome;
  }

  /** Which variables a `try` asks for: also those it does not come to, since one before is missing. */
  #remember(lines: readonly LogicalLine[]): void {
    for (const { tokens } of lines) {
      const equals = assignmentAt(tokens);
      if (equals < 0) continue;
      const evaluated = evaluate(tokens.slice(equals + 1), this.#environment);
      if (evaluated.kind === 'unknown' || evaluated.variable === undefined) continue;
      this.#variables.set(tokens[0].text, evaluated.variable);
    }
  }

  #optional(block: Block | undefined): Outcome {
    return block === undefined ? 'fine' : this.#block(bodyOf(block));
  }

  #statement(block: Block): Outcome {
    const [first, second] = block.header.tokens;
    if (block.body.length > 0) return this.#skip(first);
    if (isHarmless(block.header)) return 'fine';
    const equals = assignmentAt(block.header.tokens);
    if (first.kind !== 'name' || second === undefined || equals < 0) return this.#skip(first);
    return this.#assign(first, evaluate(block.header.tokens.slice(equals + 1), this.#environment));
  }

  #skip(token: Token): Outcome {
    this.#skipped.push({ line: token.line, column: token.column });
    return 'fine';
  }

  #assign(token: Token, evaluated: Evaluated): Outcome {
    const { text: name, line, column } = token;
    const asked = evaluated.kind === 'unknown' ? undefined : evaluated.variable;
    if (asked !== undefined) this.#variables.set(name, asked);
    const variable = asked ?? this.#variables.get(name);
    this.#settings.set(name, {
      name,
      at: { line, column },
      ...(evaluated.kind === 'value' ? { value: evaluated.value } : {}),
      ...(variable === undefined ? {} : { variable }),
    });
    return evaluated.kind === 'missing' ? 'raised' : 'fine';
  }
}

function toBlocks(lines: readonly LogicalLine[]): readonly Block[] {
  const blocks: { header: LogicalLine; body: LogicalLine[] }[] = [];
  const indent = lines[0]?.indent ?? 0;
  for (const line of lines) {
    const last = blocks.at(-1);
    if (last !== undefined && line.indent > indent) last.body.push(line);
    else blocks.push({ header: line, body: [] });
  }
  return blocks;
}

/** The lines of a block, or what stands behind the colon of its header: `try: a = 1`. */
function bodyOf(block: Block): readonly LogicalLine[] {
  if (block.body.length > 0) return block.body;
  const colon = block.header.tokens.findIndex((token) => isSign(token, ':'));
  const [first, ...rest] = colon < 0 ? [] : block.header.tokens.slice(colon + 1);
  return first === undefined ? [] : [{ indent: first.column - 1, tokens: [first, ...rest] }];
}

function takeFollowers(blocks: readonly Block[], from: number): readonly Block[] {
  const rest = blocks.slice(from);
  const end = rest.findIndex((block) => !FOLLOWERS.includes(block.header.tokens[0].text));
  return end < 0 ? rest : rest.slice(0, end);
}

function isHarmless(line: LogicalLine): boolean {
  const [first, ...rest] = line.tokens;
  if (first.kind === 'string' && rest.length === 0) return true;
  return first.kind === 'name' && ['import', 'from', 'pass'].includes(first.text);
}

/** Where the `=` of `name = …` or `name: type = …` stands; nowhere in any other statement. */
function assignmentAt(tokens: readonly Token[]): number {
  if (isSign(tokens[1], '=')) return hasMoreTargets(tokens) ? -1 : 1;
  if (!isSign(tokens[1], ':')) return -1;
  return tokens.findIndex((token) => isSign(token, '='));
}

// `a = b = 1`; an `=` inside brackets is a named argument.
function hasMoreTargets(tokens: readonly Token[]): boolean {
  return isSign(tokens[3], '=');
}
