// SPDX-License-Identifier: Apache-2.0
// Evaluates a Python settings module as far as it consists of assignments: the value of each name after
// loading the module. `try` blocks are followed, because such modules read the environment there; other
// blocks and statements are reported as skipped.

import type { SourceEnvironment, SourcePosition } from '../result.ts';
import type { ScalarValue } from '../source/tree.ts';
import type { SourceProblem } from '../source/yaml-tree.ts';
import { type EvaluationResult, evaluateExpression, isOperator } from './expression.ts';
import { type LogicalLine, type Token, tokenizePython } from './tokens.ts';

export interface PythonSetting {
  readonly name: string;
  readonly at: SourcePosition;
  /** Absent when the expression cannot be evaluated without running Python. */
  readonly value?: ScalarValue;
  /** The environment variable that the expression reads, whether set or not. */
  readonly variable?: string;
}

export interface PythonModule {
  readonly settings: ReadonlyMap<string, PythonSetting>;
  /** Statements that may have an effect but were not evaluated. */
  readonly skipped: readonly SourcePosition[];
}

export type PythonResult =
  | { readonly ok: true; readonly module: PythonModule }
  | { readonly ok: false; readonly problem: SourceProblem };

export function evaluatePythonModule(text: string, environment: SourceEnvironment): PythonResult {
  const reader = tokenizePython(text);
  if (!reader.ok) return reader;
  return { ok: true, module: new ModuleEvaluator(environment).run(reader.lines) };
}

interface Block {
  readonly header: LogicalLine;
  readonly body: readonly LogicalLine[];
}

/** Clauses that belong to the previous statement: a `try`, or a skipped statement. */
const FOLLOWING_CLAUSES: readonly string[] = ['except', 'else', 'elif', 'finally'];

type StatementOutcome = 'completed' | 'raised';

class ModuleEvaluator {
  readonly #environment: SourceEnvironment;
  readonly #settings = new Map<string, PythonSetting>();
  readonly #variables = new Map<string, string>();
  readonly #skipped: SourcePosition[] = [];

  constructor(environment: SourceEnvironment) {
    this.#environment = environment;
  }

  run(lines: readonly LogicalLine[]): PythonModule {
    // A missing variable does not end the evaluation: it may be set where the source system runs.
    const blocks = toBlocks(lines);
    for (const [at, block] of blocks.entries())
      this.#evaluateStatement(block, takeFollowers(blocks, at + 1));
    return { settings: this.#settings, skipped: this.#skipped };
  }

  #evaluateBlock(lines: readonly LogicalLine[]): StatementOutcome {
    const blocks = toBlocks(lines);
    for (const [at, block] of blocks.entries()) {
      const outcome = this.#evaluateStatement(block, takeFollowers(blocks, at + 1));
      if (outcome === 'raised') return outcome;
    }
    return 'completed';
  }

  #evaluateStatement(block: Block, followers: readonly Block[]): StatementOutcome {
    const keyword = block.header.tokens[0].text;
    if (keyword === 'try') return this.#evaluateTry(block, followers);
    return FOLLOWING_CLAUSES.includes(keyword) ? 'completed' : this.#evaluateAssignment(block);
  }

  #evaluateTry(block: Block, followers: readonly Block[]): StatementOutcome {
    const named = (keyword: string) =>
      followers.find((one) => one.header.tokens[0].text === keyword);
    const handler = named('except');
    this.#recordVariables(bodyOf(block));
    let outcome = this.#evaluateBlock(bodyOf(block));
    if (outcome === 'completed') outcome = this.#evaluateOptionalBlock(named('else'));
    else if (handler !== undefined) outcome = this.#evaluateBlock(bodyOf(handler));
    return this.#evaluateOptionalBlock(named('finally')) === 'raised' ? 'raised' : outcome;
  }

  /** Records the variables that a `try` block reads, including those after a missing one. */
  #recordVariables(lines: readonly LogicalLine[]): void {
    for (const { tokens } of lines) {
      const equals = findAssignment(tokens);
      if (equals < 0) continue;
      const evaluated = evaluateExpression(tokens.slice(equals + 1), this.#environment);
      if (evaluated.kind === 'unknown' || evaluated.variable === undefined) continue;
      this.#variables.set(tokens[0].text, evaluated.variable);
    }
  }

  #evaluateOptionalBlock(block: Block | undefined): StatementOutcome {
    return block === undefined ? 'completed' : this.#evaluateBlock(bodyOf(block));
  }

  #evaluateAssignment(block: Block): StatementOutcome {
    const [first, second] = block.header.tokens;
    if (block.body.length > 0) return this.#skipStatement(first);
    if (hasNoEffect(block.header)) return 'completed';
    const equals = findAssignment(block.header.tokens);
    if (first.kind !== 'name' || second === undefined || equals < 0)
      return this.#skipStatement(first);
    return this.#assignSetting(
      first,
      evaluateExpression(block.header.tokens.slice(equals + 1), this.#environment),
    );
  }

  #skipStatement(token: Token): StatementOutcome {
    this.#skipped.push({ line: token.line, column: token.column });
    return 'completed';
  }

  #assignSetting(token: Token, evaluated: EvaluationResult): StatementOutcome {
    const { text: name, line, column } = token;
    const variableName = evaluated.kind === 'unknown' ? undefined : evaluated.variable;
    if (variableName !== undefined) this.#variables.set(name, variableName);
    const variable = variableName ?? this.#variables.get(name);
    this.#settings.set(name, {
      name,
      at: { line, column },
      ...(evaluated.kind === 'value' ? { value: evaluated.value } : {}),
      ...(variable === undefined ? {} : { variable }),
    });
    return evaluated.kind === 'missing' ? 'raised' : 'completed';
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

/** The lines of a block, or the statement after the colon of its header: `try: a = 1`. */
function bodyOf(block: Block): readonly LogicalLine[] {
  if (block.body.length > 0) return block.body;
  const colon = block.header.tokens.findIndex((token) => isOperator(token, ':'));
  const [first, ...rest] = colon < 0 ? [] : block.header.tokens.slice(colon + 1);
  return first === undefined ? [] : [{ indent: first.column - 1, tokens: [first, ...rest] }];
}

function takeFollowers(blocks: readonly Block[], from: number): readonly Block[] {
  const rest = blocks.slice(from);
  const end = rest.findIndex((block) => !FOLLOWING_CLAUSES.includes(block.header.tokens[0].text));
  return end < 0 ? rest : rest.slice(0, end);
}

function hasNoEffect(line: LogicalLine): boolean {
  const [first, ...rest] = line.tokens;
  if (first.kind === 'string' && rest.length === 0) return true;
  return first.kind === 'name' && ['import', 'from', 'pass'].includes(first.text);
}

/** Index of the `=` in `name = …` or `name: type = …`; -1 for any other statement. */
function findAssignment(tokens: readonly Token[]): number {
  if (isOperator(tokens[1], '=')) return hasMoreTargets(tokens) ? -1 : 1;
  if (!isOperator(tokens[1], ':')) return -1;
  return tokens.findIndex((token) => isOperator(token, '='));
}

// `a = b = 1`; an `=` inside brackets is a named argument.
function hasMoreTargets(tokens: readonly Token[]): boolean {
  return isOperator(tokens[3], '=');
}
