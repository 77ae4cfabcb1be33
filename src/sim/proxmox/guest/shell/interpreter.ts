// SPDX-License-Identifier: Apache-2.0
// Interprets a parsed script. No real program runs: commands come from a table and change the guest's state; time
// passes on the Clock. Implements control flow, variables and redirections, but no commands.

import type { CommandResult } from './command.ts';
import {
  type ExpansionContext,
  expandPattern,
  expandText,
  expandWords,
  type Scope,
} from './expand.ts';
import { OutputCollector } from './output-collector.ts';
import { parseShell } from './parser.ts';
import { applyRedirects, type Streams } from './redirects.ts';
import type { ShellHost, ShellOptions, ShellState } from './shell-host.ts';
import {
  type CaseStatement,
  type CompoundCommand,
  type IfStatement,
  type Loop,
  type ShellNode,
  ShellSyntaxError,
  type SimpleCommand,
} from './syntax.ts';
import { Unwind } from './unwind.ts';

/** A script with more steps is treated as an endless loop. */
const MAX_STEPS = 20_000;
const EXIT_TIMED_OUT = 124;
/** Exported, so that programs know their parent process. The space prevents a clash with real names. */
export const PROCESS_ID = ' processId';

export class Interpreter implements ShellState {
  readonly scope: Scope;
  functions = new Map<string, ShellNode>();
  exported: Set<string>;
  errexit = false;
  pipefail = false;
  exitTrap: string | undefined;
  readonly locals: Map<string, string | undefined>[] = [];
  readonly #host: ShellHost;
  /** Streams of the last `exec` without a command. */
  #execStreams: Streams | undefined;

  constructor(host: ShellHost, options: ShellOptions) {
    const { variables = new Map<string, string>(), args = [], name = 'sh' } = options;
    this.#host = host;
    this.scope = { variables: new Map(variables), args, name, status: 0 };
    this.exported = new Set(variables.keys());
  }

  /** Creates a subshell: it inherits the state, and its changes do not affect the parent. */
  #fork(): Interpreter {
    const child = new Interpreter(this.#host, this.scope);
    child.errexit = this.errexit;
    child.pipefail = this.pipefail;
    child.exported = new Set(this.exported);
    child.functions = new Map(this.functions);
    return child;
  }

  /** Runs a whole script with its exit trap. Errors in the script become exit codes. */
  static async run(
    host: ShellHost,
    text: string,
    options: ShellOptions,
  ): Promise<Required<CommandResult>> {
    const collector = new OutputCollector(options.stdin, options.budget);
    const shell = new Interpreter(host, options);
    const { code } = await shell.runToEnd(text, collector.streams);
    if (shell.exitTrap !== undefined) await shell.runToEnd(shell.exitTrap, collector.streams);
    return collector.result(code);
  }

  async evaluate(text: string, streams: Streams): Promise<number> {
    return this.#runNode(parseShell(text), streams);
  }

  /** Runs to the end or to `exit`. Errors in the script become exit codes. */
  async runToEnd(text: string, streams: Streams): Promise<{ code: number; exited: boolean }> {
    try {
      return { code: await this.evaluate(text, streams), exited: false };
    } catch (error) {
      if (error instanceof Unwind) return { code: error.code, exited: error.kind === 'exit' };
      if (!(error instanceof ShellSyntaxError)) throw error;
      streams.err(`${this.scope.name}: syntax error: ${error.message}\n`);
      return { code: 2, exited: false };
    }
  }

  async #runNode(node: ShellNode, streams: Streams): Promise<number> {
    streams.budget.steps += 1;
    if (streams.budget.steps > MAX_STEPS) {
      streams.err('the script exceeded the step limit\n');
      throw new Unwind('exit', EXIT_TIMED_OUT);
    }
    this.scope.status = await this.#dispatch(node, streams);
    return this.scope.status;
  }

  async #dispatch(node: ShellNode, streams: Streams): Promise<number> {
    switch (node.kind) {
      case 'simple':
        return this.#exitOnError(await this.#runSimple(node, streams), streams);
      case 'pipeline':
        return node.negated
          ? Number((await this.#runPipeline(node.commands, { ...streams, guarded: true })) === 0)
          : this.#exitOnError(await this.#runPipeline(node.commands, streams), streams);
      case 'compound':
        return this.#runCompound(node, streams);
      case 'function':
        this.functions.set(node.name, node.body);
        return 0;
      case 'chain':
        return this.#runChain(node, streams);
      case 'background':
        return this.#startBackground(node.node, streams);
      case 'list':
        return this.#runList(node.items, streams);
    }
  }

  async #startBackground(node: ShellNode, streams: Streams): Promise<number> {
    if (this.#host.startBackground === undefined) return this.#runNode(node, streams);
    const child = this.#fork();
    const processId = this.#host.startBackground((id) => {
      child.scope.variables.set(PROCESS_ID, String(id));
      child.exported.add(PROCESS_ID);
      return child.#runNode(node, streams).catch((error: unknown) => {
        if (error instanceof Unwind) return error.code;
        throw error;
      });
    });
    this.scope.variables.set('!', String(processId));
    return 0;
  }

  /** `exec > file` redirects all commands after it, also in the enclosing lists. */
  async #runList(items: readonly ShellNode[], streams: Streams): Promise<number> {
    let code = 0;
    let current = streams;
    for (const item of items) {
      const before = this.#execStreams;
      code = await this.#runNode(item, current);
      const { stdin, out, err } = this.#execStreams ?? current;
      if (this.#execStreams !== before) current = { ...current, stdin, out, err };
    }
    return code;
  }

  /** `set -e`: a failure ends the script unless the command is a condition. */
  #exitOnError(code: number, streams: Streams): number {
    if (code !== 0 && this.errexit && streams.guarded !== true) throw new Unwind('exit', code);
    return code;
  }

  async #runChain(node: Extract<ShellNode, { kind: 'chain' }>, streams: Streams): Promise<number> {
    const last = node.rest.length;
    const guarded = { ...streams, guarded: true };
    let code = await this.#runNode(node.first, guarded);
    for (const [index, { operator, node: next }] of node.rest.entries()) {
      if ((operator === '&&') !== (code === 0)) continue;
      code = await this.#runNode(next, index + 1 === last ? streams : guarded);
    }
    return code;
  }

  async #runPipeline(commands: readonly ShellNode[], streams: Streams): Promise<number> {
    let stdin = streams.stdin;
    let worst = 0;
    for (const [index, command] of commands.entries()) {
      const isLast = index + 1 === commands.length;
      const pipe = new OutputCollector();
      const out = isLast ? streams.out : pipe.streams.out;
      const code = await this.#runSubshell(command, { ...streams, stdin, out, guarded: true });
      if (code !== 0) worst = code;
      if (isLast) return this.pipefail ? worst : code;
      stdin = { text: pipe.out };
    }
    return 0;
  }

  async #runSubshell(node: ShellNode, streams: Streams): Promise<number> {
    const child = this.#fork();
    try {
      return await child.#runNode(node, streams);
    } catch (error) {
      if (error instanceof Unwind) return error.code;
      throw error;
    }
  }

  async #runSimple(node: SimpleCommand, outer: Streams): Promise<number> {
    const context = this.#expansionContext(outer);
    const argv = await expandWords(context, node.words);
    const assigned = new Map<string, string>();
    for (const { name, value } of node.assignments)
      assigned.set(name, await expandText(context, value));
    const streams = await applyRedirects({
      redirects: node.redirects,
      streams: outer,
      context,
      files: this.#host.files,
    });
    if (streams === undefined) return 1;
    if (argv.length === 1 && argv[0] === 'exec') this.#execStreams = streams;
    if (argv.length > 0) return this.#runCommand(argv, streams, assigned);
    for (const [name, value] of assigned) this.scope.variables.set(name, value);
    return node.assignments.length > 0 && hasSubstitution(node) ? this.scope.status : 0;
  }

  async #runCommand(
    argv: readonly string[],
    streams: Streams,
    assigned: ReadonlyMap<string, string>,
  ): Promise<number> {
    const [name = '', ...args] = argv;
    const body = this.functions.get(name);
    if (body !== undefined) return this.#callFunction(body, args, streams);
    const builtin = this.#host.builtin(this, argv, streams);
    if (builtin !== undefined) return builtin;
    return this.#host.execute(argv, streams, new Map([...this.environment(), ...assigned]));
  }

  environment(): Map<string, string> {
    return new Map([...this.scope.variables].filter(([name]) => this.exported.has(name)));
  }

  async #callFunction(body: ShellNode, args: readonly string[], streams: Streams): Promise<number> {
    const outer = this.scope.args;
    this.scope.args = args;
    this.locals.push(new Map());
    try {
      return await this.#runNode(body, streams);
    } catch (error) {
      if (error instanceof Unwind && error.kind === 'return') return error.code;
      throw error;
    } finally {
      this.scope.args = outer;
      for (const [name, value] of this.locals.pop() ?? []) this.#restoreVariable(name, value);
    }
  }

  #restoreVariable(name: string, value: string | undefined): void {
    if (value === undefined) this.scope.variables.delete(name);
    else this.scope.variables.set(name, value);
  }

  async #runCompound(node: CompoundCommand, outer: Streams): Promise<number> {
    const context = this.#expansionContext(outer);
    const streams = await applyRedirects({
      redirects: node.redirects,
      streams: outer,
      context,
      files: this.#host.files,
    });
    if (streams === undefined) return 1;
    const { body } = node;
    switch (body.kind) {
      case 'if':
        return this.#runIf(body, streams);
      case 'case':
        return this.#runCase(body, streams);
      case 'group':
        return body.subshell
          ? this.#exitOnError(await this.#runSubshell(body.body, streams), streams)
          : this.#runNode(body.body, streams);
      case 'for':
      case 'while':
      case 'until':
        return this.#runLoop(body, streams);
    }
  }

  async #runIf(node: IfStatement, streams: Streams): Promise<number> {
    for (const branch of node.branches) {
      const code = await this.#runNode(branch.test, { ...streams, guarded: true });
      if (code === 0) return this.#runNode(branch.body, streams);
    }
    return node.otherwise === undefined ? 0 : this.#runNode(node.otherwise, streams);
  }

  async #runCase(node: CaseStatement, streams: Streams): Promise<number> {
    const context = this.#expansionContext(streams);
    const subject = await expandText(context, node.subject);
    for (const clause of node.clauses) {
      for (const pattern of clause.patterns) {
        if ((await expandPattern(context, pattern)).test(subject))
          return this.#runNode(clause.body, streams);
      }
    }
    return 0;
  }

  async #runLoop(node: Loop, streams: Streams): Promise<number> {
    let code = 0;
    for await (const _ of this.#iterate(node, streams)) {
      try {
        code = await this.#runNode(node.body, streams);
      } catch (error) {
        if (!(error instanceof Unwind) || (error.kind !== 'break' && error.kind !== 'continue'))
          throw error;
        code = 0;
        if (error.kind === 'break') break;
      }
    }
    return code;
  }

  async *#iterate(node: Loop, streams: Streams): AsyncGenerator<void> {
    if (node.kind === 'for') {
      for (const value of await expandWords(this.#expansionContext(streams), node.words)) {
        this.scope.variables.set(node.variable, value);
        yield;
      }
      return;
    }
    const continuesOnSuccess = node.kind === 'while';
    while (
      ((await this.#runNode(node.test, { ...streams, guarded: true })) === 0) ===
      continuesOnSuccess
    )
      yield;
  }

  #expansionContext(streams: Streams): ExpansionContext {
    return {
      scope: this.scope,
      paths: () => this.#host.files.paths(),
      substitute: async (script) => {
        const collector = new OutputCollector();
        const { out } = collector.streams;
        this.scope.status = await this.#runSubshell(parseShell(script), { ...streams, out });
        return collector.out;
      },
    };
  }
}

function hasSubstitution(node: SimpleCommand): boolean {
  return node.assignments.some(({ value }) => value.some((part) => part.kind === 'command'));
}
