// SPDX-License-Identifier: Apache-2.0
// Walks a parsed script. Nothing real is executed: commands are looked up in a table and change the guest's
// state; time passes on the Clock. Owns control flow, variables and redirections, knows no command by name.
import { Collector } from './collector.ts';
import type { Outcome } from './command.ts';
import {
  type ExpansionContext,
  expandPattern,
  expandText,
  expandWords,
  type Scope,
} from './expand.ts';
import type { ShellHost, ShellOptions, ShellState } from './host.ts';
import { parseShell } from './parser.ts';
import { applyRedirects, type Streams } from './redirects.ts';
import {
  type Cases,
  type Compound,
  type Loop,
  type Node,
  ShellSyntaxError,
  type Simple,
} from './syntax.ts';
import { Unwind } from './unwind.ts';

/** A script that takes more steps than this is taken for one that never ends. */
const MAX_STEPS = 20_000;
const ENDLESS = 124;

export class Interpreter implements ShellState {
  readonly scope: Scope;
  functions = new Map<string, Node>();
  exported: Set<string>;
  errexit = false;
  pipefail = false;
  exitTrap: string | undefined;
  readonly locals: Map<string, string | undefined>[] = [];
  readonly #host: ShellHost;

  constructor(host: ShellHost, options: ShellOptions) {
    const { variables = new Map<string, string>(), args = [], name = 'sh' } = options;
    this.#host = host;
    this.scope = { variables: new Map(variables), args, name, status: 0 };
    this.exported = new Set(variables.keys());
  }

  /** A child that sees everything of its parent and gives nothing back. */
  #fork(): Interpreter {
    const child = new Interpreter(this.#host, this.scope);
    child.errexit = this.errexit;
    child.pipefail = this.pipefail;
    child.exported = new Set(this.exported);
    child.functions = new Map(this.functions);
    return child;
  }

  /** Runs a whole script and never throws for what the script does wrong. */
  static async run(
    host: ShellHost,
    text: string,
    options: ShellOptions,
  ): Promise<Required<Outcome>> {
    const collector = new Collector(options.stdin, options.budget);
    const shell = new Interpreter(host, options);
    const { code } = await shell.top(text, collector.streams);
    if (shell.exitTrap !== undefined) await shell.top(shell.exitTrap, collector.streams);
    return collector.outcome(code);
  }

  async evaluate(text: string, streams: Streams): Promise<number> {
    return this.#run(parseShell(text), streams);
  }

  /** Runs to the end, or to the script's own `exit`; never throws for what the script does wrong. */
  async top(text: string, streams: Streams): Promise<{ code: number; exited: boolean }> {
    try {
      return { code: await this.evaluate(text, streams), exited: false };
    } catch (error) {
      if (error instanceof Unwind) return { code: error.code, exited: error.kind === 'exit' };
      if (!(error instanceof ShellSyntaxError)) throw error;
      streams.err(`${this.scope.name}: syntax error: ${error.message}\n`);
      return { code: 2, exited: false };
    }
  }

  async #run(node: Node, streams: Streams): Promise<number> {
    streams.budget.steps += 1;
    if (streams.budget.steps > MAX_STEPS) {
      streams.err('the script does not end\n');
      throw new Unwind('exit', ENDLESS);
    }
    this.scope.status = await this.#dispatch(node, streams);
    return this.scope.status;
  }

  async #dispatch(node: Node, streams: Streams): Promise<number> {
    switch (node.kind) {
      case 'simple':
        return this.#checked(await this.#simple(node, streams), streams);
      case 'pipeline':
        return node.negated
          ? Number((await this.#pipeline(node.commands, { ...streams, guarded: true })) === 0)
          : this.#checked(await this.#pipeline(node.commands, streams), streams);
      case 'compound':
        return this.#compound(node, streams);
      case 'function':
        this.functions.set(node.name, node.body);
        return 0;
      case 'chain':
        return this.#chain(node, streams);
      default: {
        let code = 0;
        for (const item of node.items) code = await this.#run(item, streams);
        return code;
      }
    }
  }

  /** `set -e`: a failure ends the script unless it is somebody's condition. */
  #checked(code: number, streams: Streams): number {
    if (code !== 0 && this.errexit && streams.guarded !== true) throw new Unwind('exit', code);
    return code;
  }

  async #chain(node: Extract<Node, { kind: 'chain' }>, streams: Streams): Promise<number> {
    const last = node.rest.length;
    const guarded = { ...streams, guarded: true };
    let code = await this.#run(node.first, guarded);
    for (const [index, { operator, node: next }] of node.rest.entries()) {
      if ((operator === '&&') !== (code === 0)) continue;
      code = await this.#run(next, index + 1 === last ? streams : guarded);
    }
    return code;
  }

  async #pipeline(commands: readonly Node[], streams: Streams): Promise<number> {
    let stdin = streams.stdin;
    let worst = 0;
    for (const [index, command] of commands.entries()) {
      const isLast = index + 1 === commands.length;
      const pipe = new Collector();
      const out = isLast ? streams.out : pipe.streams.out;
      const code = await this.#subshell(command, { ...streams, stdin, out, guarded: true });
      if (code !== 0) worst = code;
      if (isLast) return this.pipefail ? worst : code;
      stdin = { text: pipe.out };
    }
    return 0;
  }

  async #subshell(node: Node, streams: Streams): Promise<number> {
    const child = this.#fork();
    try {
      return await child.#run(node, streams);
    } catch (error) {
      if (error instanceof Unwind) return error.code;
      throw error;
    }
  }

  async #simple(node: Simple, outer: Streams): Promise<number> {
    const context = this.#expansion(outer);
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
    if (argv.length > 0) return this.#call(argv, streams, assigned);
    for (const [name, value] of assigned) this.scope.variables.set(name, value);
    return node.assignments.length > 0 && hasSubstitution(node) ? this.scope.status : 0;
  }

  async #call(
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

  async #callFunction(body: Node, args: readonly string[], streams: Streams): Promise<number> {
    const outer = this.scope.args;
    this.scope.args = args;
    this.locals.push(new Map());
    try {
      return await this.#run(body, streams);
    } catch (error) {
      if (error instanceof Unwind && error.kind === 'return') return error.code;
      throw error;
    } finally {
      this.scope.args = outer;
      for (const [name, value] of this.locals.pop() ?? []) this.#restore(name, value);
    }
  }

  #restore(name: string, value: string | undefined): void {
    if (value === undefined) this.scope.variables.delete(name);
    else this.scope.variables.set(name, value);
  }

  async #compound(node: Compound, outer: Streams): Promise<number> {
    const context = this.#expansion(outer);
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
        for (const branch of body.branches) {
          const isTrue = (await this.#run(branch.test, { ...streams, guarded: true })) === 0;
          if (isTrue) return this.#run(branch.body, streams);
        }
        return body.otherwise === undefined ? 0 : this.#run(body.otherwise, streams);
      case 'case':
        return this.#case(body, streams);
      case 'group':
        return body.subshell
          ? this.#checked(await this.#subshell(body.body, streams), streams)
          : this.#run(body.body, streams);
      default:
        return this.#loop(body, streams);
    }
  }

  async #case(node: Cases, streams: Streams): Promise<number> {
    const context = this.#expansion(streams);
    const subject = await expandText(context, node.subject);
    for (const clause of node.clauses) {
      for (const pattern of clause.patterns) {
        if ((await expandPattern(context, pattern)).test(subject))
          return this.#run(clause.body, streams);
      }
    }
    return 0;
  }

  async #loop(node: Loop, streams: Streams): Promise<number> {
    let code = 0;
    for await (const _ of this.#turns(node, streams)) {
      try {
        code = await this.#run(node.body, streams);
      } catch (error) {
        if (!(error instanceof Unwind) || (error.kind !== 'break' && error.kind !== 'continue'))
          throw error;
        code = 0;
        if (error.kind === 'break') break;
      }
    }
    return code;
  }

  async *#turns(node: Loop, streams: Streams): AsyncGenerator<void> {
    if (node.kind === 'for') {
      for (const value of await expandWords(this.#expansion(streams), node.words)) {
        this.scope.variables.set(node.variable, value);
        yield;
      }
      return;
    }
    const goesOn = node.kind === 'while';
    while (((await this.#run(node.test, { ...streams, guarded: true })) === 0) === goesOn) yield;
  }

  #expansion(streams: Streams): ExpansionContext {
    return {
      scope: this.scope,
      paths: () => this.#host.files.paths(),
      substitute: async (script) => {
        const collector = new Collector();
        const { out } = collector.streams;
        this.scope.status = await this.#subshell(parseShell(script), { ...streams, out });
        return collector.out;
      },
    };
  }
}

function hasSubstitution(node: Simple): boolean {
  return node.assignments.some(({ value }) => value.some((part) => part.kind === 'command'));
}
