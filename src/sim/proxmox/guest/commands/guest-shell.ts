// SPDX-License-Identifier: Apache-2.0
// Connects the shell to a guest: program lookup, command durations, and errors for unknown programs.
import { GUEST_COMMAND_DURATIONS_MS } from '../durations.ts';
import { BUILTINS } from '../shell/builtins.ts';
import type { Command, CommandResult, CommandRunner, RunOptions } from '../shell/command.ts';
import { Interpreter } from '../shell/interpreter.ts';
import { OutputCollector } from '../shell/output-collector.ts';
import type { Stdin, Streams } from '../shell/redirects.ts';
import type { ShellHost } from '../shell/shell-host.ts';
import { absolutePath, baseName } from '../system/files.ts';
import type { GuestSystem } from '../system/system.ts';
import { COMMANDS, REQUIRED_PACKAGES } from './command-table.ts';

const SEARCH_PATH = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin'];
const NOT_FOUND = 127;
const NOT_EXECUTABLE = 126;
/** The first line of a script for an interpreter other than a shell. */
const NON_SHELL_SHEBANG = /^#!\s*(?!\S*\/(?:env\s+)?(?:ba|da)?sh\b)(.+)/;
/** Stops programs and scripts that start themselves recursively. */
const MAX_NESTING = 40;

/** The nesting depth of this shell, and the step budget it shares with the outer shells. */
interface Nesting {
  readonly depth: number;
  readonly budget: Streams['budget'] | undefined;
}

type FoundProgram =
  | { readonly kind: 'command'; readonly command: Command; readonly name: string }
  | { readonly kind: 'script'; readonly path: string; readonly text: string }
  | { readonly kind: 'missing'; readonly code: number; readonly message: string };

export class GuestShell implements CommandRunner {
  readonly #system: GuestSystem;
  readonly #host: ShellHost;
  readonly #nesting: Nesting;

  constructor(system: GuestSystem, nesting: Nesting = { depth: 0, budget: undefined }) {
    this.#system = system;
    this.#nesting = nesting;
    const builtinHost = {
      hasProgram: (name: string) => this.hasProgram(name),
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
        return Promise.resolve().then(() => builtin({ shell, args, streams, host: builtinHost }));
      },
    };
  }

  /** Runs several scripts in one shell, so that variables and the working directory persist. */
  openSession(): ShellSession {
    return new ShellSession(new Interpreter(this.#host, { variables: this.#variables({}) }));
  }

  async runScript(text: string, options: RunOptions = {}): Promise<Required<CommandResult>> {
    const interpreter = NON_SHELL_SHEBANG.exec(text)?.[1];
    if (interpreter !== undefined) {
      this.#system.recordError(
        `a script for ${interpreter} was not run: only shell scripts are simulated`,
      );
      return { code: NOT_EXECUTABLE, out: '', err: `${interpreter}: not simulated\n` };
    }
    const strict = /^#!.*\s-[a-z]*e/.test(text) ? 'set -e\n' : '';
    return Interpreter.run(this.#host, strict + text, {
      ...options,
      budget: this.#nesting.budget,
      variables: this.#variables(options),
    });
  }

  async runProgram(
    argv: readonly string[],
    options: RunOptions = {},
  ): Promise<Required<CommandResult>> {
    const collector = new OutputCollector(options.stdin, this.#nesting.budget);
    const code = await this.#execute(argv, {
      streams: collector.streams,
      variables: this.#variables(options),
    });
    return collector.result(code);
  }

  hasProgram(name: string): boolean {
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
    if (found.kind === 'missing') return this.#reportMissing(found, run.streams);
    if (this.#nesting.depth > MAX_NESTING) return NOT_EXECUTABLE;
    const result = await this.#runFound(found, { ...run, args });
    if (result.out) run.streams.out(result.out);
    if (result.err) run.streams.err(result.err);
    return result.code;
  }

  async #runFound(
    found: Exclude<FoundProgram, { kind: 'missing' }>,
    run: {
      readonly args: readonly string[];
      readonly streams: Streams;
      readonly variables: ReadonlyMap<string, string>;
    },
  ): Promise<CommandResult> {
    const { args, streams, variables } = run;
    const inner = new GuestShell(this.#system, {
      depth: this.#nesting.depth + 1,
      budget: streams.budget,
    });
    if (found.kind === 'script')
      return inner.runScript(found.text, { args, variables, stdin: streams.stdin });
    await this.#system.sleepSimulated(commandDurationMs(found.name, args));
    const directory = variables.get('PWD') ?? '/';
    let consumed: string | undefined;
    return found.command({
      name: found.name,
      args,
      input: streams.stdin,
      get stdin() {
        consumed ??= consumeInput(streams.stdin);
        return consumed;
      },
      variables,
      system: this.#system,
      runner: inner,
      path: (relative) =>
        absolutePath(relative.startsWith('/') ? relative : `${directory}/${relative}`),
    });
  }

  #reportMissing(missing: Extract<FoundProgram, { kind: 'missing' }>, streams: Streams): number {
    this.#system.recordError(missing.message);
    streams.err(`${missing.message}\n`);
    return missing.code;
  }

  #find(name: string): FoundProgram {
    if (name.includes('/')) return this.#findFile(name) ?? this.#findSystemProgram(name);
    for (const directory of SEARCH_PATH) {
      const path = `${directory}/${name}`;
      if (this.#system.files.isExecutable(path))
        return this.#findFile(path) ?? programNotFound(name);
    }
    return this.#findInstalled(name) ?? programNotFound(name);
  }

  #findFile(path: string): FoundProgram | undefined {
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

  #findSystemProgram(path: string): FoundProgram {
    const name = baseName(path);
    const isSystem = SEARCH_PATH.some((directory) => path === `${directory}/${name}`);
    return (isSystem ? this.#findInstalled(name) : undefined) ?? programNotFound(path);
  }

  /** Finds programs that every image contains, and those of installed packages. */
  #findInstalled(name: string): FoundProgram | undefined {
    const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
    if (command === undefined) return undefined;
    const packages = REQUIRED_PACKAGES[name];
    const isInstalled = packages?.some((each) => this.#system.packages.has(each)) ?? true;
    return isInstalled ? { kind: 'command', command, name } : undefined;
  }
}

class ShellSession {
  readonly #shell: Interpreter;
  #hasExited = false;

  constructor(shell: Interpreter) {
    this.#shell = shell;
  }

  /** One of the scripts ran `exit`. */
  get hasExited(): boolean {
    return this.#hasExited;
  }

  async run(text: string): Promise<Required<CommandResult>> {
    const collector = new OutputCollector();
    const { code, exited } = await this.#shell.runToEnd(text, collector.streams);
    this.#hasExited ||= exited;
    return collector.result(code);
  }
}

function consumeInput(stdin: Stdin): string {
  const { text } = stdin;
  stdin.text = '';
  return text;
}

function programNotFound(name: string): FoundProgram {
  return { kind: 'missing', code: NOT_FOUND, message: `sh: ${name}: not found` };
}

function commandDurationMs(name: string, args: readonly string[]): number {
  const verb = args.find((arg) => !arg.startsWith('-')) ?? '';
  const table = GUEST_COMMAND_DURATIONS_MS;
  return table[`${name} ${verb}`] ?? table[name] ?? table['other'] ?? 0;
}
