// SPDX-License-Identifier: Apache-2.0
// Joins the shell to a guest: where programs are found, how long they take, what happens to unknown ones.
import { GUEST_COMMAND_DURATIONS } from '../boot-durations.ts';
import { BUILTINS } from '../shell/builtins.ts';
import { Collector } from '../shell/collector.ts';
import type { Command, Outcome, Runner, RunOptions } from '../shell/command.ts';
import type { ShellHost } from '../shell/host.ts';
import { Interpreter } from '../shell/interpreter.ts';
import type { Stdin, Streams } from '../shell/redirects.ts';
import { absolute, baseName } from '../system/files.ts';
import type { GuestSystem } from '../system/system.ts';
import { COMMANDS, INSTALLED_WITH } from './table.ts';

const SEARCH_PATH = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin'];
const NOT_FOUND = 127;
const NOT_EXECUTABLE = 126;
/** The first line of a script for anything but a shell. */
const FOREIGN = /^#!\s*(?!\S*\/(?:env\s+)?(?:ba|da)?sh\b)(.+)/;
/** A program that starts itself, or a script that starts itself, ends here. */
const MAX_NESTING = 40;

/** How deep this shell is inside others, and what they share. */
interface Nest {
  readonly depth: number;
  readonly budget: Streams['budget'] | undefined;
}

type Found =
  | { readonly kind: 'command'; readonly command: Command; readonly name: string }
  | { readonly kind: 'script'; readonly path: string; readonly text: string }
  | { readonly kind: 'missing'; readonly code: number; readonly message: string };

export class GuestShell implements Runner {
  readonly #system: GuestSystem;
  readonly #host: ShellHost;
  readonly #nest: Nest;

  constructor(system: GuestSystem, nest: Nest = { depth: 0, budget: undefined }) {
    this.#system = system;
    this.#nest = nest;
    const lookup = {
      finds: (name: string) => this.finds(name),
      read: (path: string) => system.files.read(path),
      isDirectory: (path: string) => system.files.isDirectory(path),
      execute: (
        argv: readonly string[],
        streams: Streams,
        variables: ReadonlyMap<string, string>,
      ) => this.#execute(argv, { streams, variables }),
    };
    this.#host = {
      files: system.files,
      execute: (argv, streams, variables) => this.#execute(argv, { streams, variables }),
      builtin: (shell, [name = '', ...args], streams) => {
        if (name === 'command' && !/^-[vV]/.test(args[0] ?? '')) return undefined;
        const builtin = Object.hasOwn(BUILTINS, name) ? BUILTINS[name] : undefined;
        if (builtin === undefined) return undefined;
        return Promise.resolve().then(() => builtin({ shell, args, streams, host: lookup }));
      },
    };
  }

  /** Several texts in one shell, one after the other: what one sets, the next one sees. */
  session(): ShellSession {
    return new ShellSession(new Interpreter(this.#host, { variables: this.#variables({}) }));
  }

  async script(text: string, options: RunOptions = {}): Promise<Required<Outcome>> {
    const foreign = FOREIGN.exec(text)?.[1];
    if (foreign !== undefined) {
      this.#system.fail(`a script for ${foreign} was not run`);
      return { code: NOT_EXECUTABLE, out: '', err: `${foreign}: not modelled\n` };
    }
    const strict = /^#!.*\s-[a-z]*e/.test(text) ? 'set -e\n' : '';
    return Interpreter.run(this.#host, strict + text, {
      ...options,
      budget: this.#nest.budget,
      variables: this.#variables(options),
    });
  }

  async program(argv: readonly string[], options: RunOptions = {}): Promise<Required<Outcome>> {
    const collector = new Collector(options.stdin, this.#nest.budget);
    const code = await this.#execute(argv, {
      streams: collector.streams,
      variables: this.#variables(options),
    });
    return collector.outcome(code);
  }

  finds(name: string): boolean {
    return this.#find(name).kind !== 'missing';
  }

  #variables(options: RunOptions): ReadonlyMap<string, string> {
    return new Map([
      ['PATH', SEARCH_PATH.join(':')],
      ['HOME', '/root'],
      ['PWD', '/'],
      ...(options.variables ?? []),
    ]);
  }

  async #execute(
    argv: readonly string[],
    run: { readonly streams: Streams; readonly variables: ReadonlyMap<string, string> },
  ): Promise<number> {
    const [name = '', ...args] = argv;
    const found = this.#find(name);
    if (found.kind === 'missing') return this.#report(found, run.streams);
    if (this.#nest.depth > MAX_NESTING) return NOT_EXECUTABLE;
    const outcome = await this.#run(found, { ...run, args });
    if (outcome.out) run.streams.out(outcome.out);
    if (outcome.err) run.streams.err(outcome.err);
    return outcome.code;
  }

  async #run(
    found: Exclude<Found, { kind: 'missing' }>,
    run: {
      readonly args: readonly string[];
      readonly streams: Streams;
      readonly variables: ReadonlyMap<string, string>;
    },
  ): Promise<Outcome> {
    const { args, streams, variables } = run;
    const inner = new GuestShell(this.#system, {
      depth: this.#nest.depth + 1,
      budget: streams.budget,
    });
    if (found.kind === 'script')
      return inner.script(found.text, { args, variables, stdin: streams.stdin });
    await this.#system.pass(durationOf(found.name, args));
    const directory = variables.get('PWD') ?? '/';
    let taken: string | undefined;
    return found.command({
      name: found.name,
      args,
      input: streams.stdin,
      get stdin() {
        taken ??= takeAll(streams.stdin);
        return taken;
      },
      variables,
      system: this.#system,
      runner: inner,
      path: (relative) =>
        absolute(relative.startsWith('/') ? relative : `${directory}/${relative}`),
    });
  }

  #report(missing: Extract<Found, { kind: 'missing' }>, streams: Streams): number {
    this.#system.fail(missing.message);
    streams.err(`${missing.message}\n`);
    return missing.code;
  }

  #find(name: string): Found {
    if (name.includes('/')) return this.#findFile(name) ?? this.#findSystemProgram(name);
    for (const directory of SEARCH_PATH) {
      const path = `${directory}/${name}`;
      if (this.#system.files.isExecutable(path)) return this.#findFile(path) ?? notFound(name);
    }
    return this.#findInstalled(name) ?? notFound(name);
  }

  #findFile(path: string): Found | undefined {
    const text = this.#system.files.read(path);
    if (text === undefined) return undefined;
    if (!this.#system.files.isExecutable(path)) {
      return { kind: 'missing', code: NOT_EXECUTABLE, message: `sh: ${path}: Permission denied` };
    }
    const name = baseName(path);
    const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
    if (command === undefined || text.startsWith('#!')) return { kind: 'script', path, text };
    return { kind: 'command', command, name };
  }

  #findSystemProgram(path: string): Found {
    const name = baseName(path);
    const isSystem = SEARCH_PATH.some((directory) => path === `${directory}/${name}`);
    return (isSystem ? this.#findInstalled(name) : undefined) ?? notFound(path);
  }

  /** Programs that every image has, and those of an installed package. */
  #findInstalled(name: string): Found | undefined {
    const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
    if (command === undefined) return undefined;
    const packages = INSTALLED_WITH[name];
    const isThere = packages?.some((each) => this.#system.packages.has(each)) ?? true;
    return isThere ? { kind: 'command', command, name } : undefined;
  }
}

class ShellSession {
  readonly #shell: Interpreter;
  #ended = false;

  constructor(shell: Interpreter) {
    this.#shell = shell;
  }

  /** One of the texts said `exit`. */
  get ended(): boolean {
    return this.#ended;
  }

  async run(text: string): Promise<Required<Outcome>> {
    const collector = new Collector();
    const { code, exited } = await this.#shell.top(text, collector.streams);
    this.#ended ||= exited;
    return collector.outcome(code);
  }
}

function takeAll(stdin: Stdin): string {
  const { text } = stdin;
  stdin.text = '';
  return text;
}

function notFound(name: string): Found {
  return { kind: 'missing', code: NOT_FOUND, message: `sh: ${name}: not found` };
}

function durationOf(name: string, args: readonly string[]): number {
  const verb = args.find((arg) => !arg.startsWith('-')) ?? '';
  const table = GUEST_COMMAND_DURATIONS;
  return table[`${name} ${verb}`] ?? table[name] ?? table['other'] ?? 0;
}
