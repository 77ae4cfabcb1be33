// SPDX-License-Identifier: Apache-2.0
// The types of simulated commands: their call, their result, and option parsing.
import type { GuestSystem } from '../system/system.ts';
import type { Stdin } from './redirects.ts';

export interface CommandResult {
  readonly code: number;
  readonly out?: string;
  readonly err?: string;
}

export interface RunOptions {
  readonly variables?: ReadonlyMap<string, string>;
  readonly args?: readonly string[];
  /** `$0`. */
  readonly name?: string;
  /** Text, or the caller's input stream. */
  readonly stdin?: string | Stdin;
}

/** Runs other commands, for sh, sudo, env, xargs and systemd units. */
export interface CommandRunner {
  runScript(text: string, options?: RunOptions): Promise<Required<CommandResult>>;
  /** Runs a program without a shell; the first argument is its name or path. */
  runProgram(argv: readonly string[], options?: RunOptions): Promise<Required<CommandResult>>;
  /** Whether `runProgram` would find it. */
  hasProgram(name: string): boolean;
}

export interface CommandCall {
  /** The program name without its directory. */
  readonly name: string;
  readonly args: readonly string[];
  /** All of the input. The first access consumes it; a command that does not read leaves it to the next command. */
  readonly stdin: string;
  /** The unread input, to pass on to another command. */
  readonly input: Stdin;
  readonly variables: ReadonlyMap<string, string>;
  readonly system: GuestSystem;
  /** Resolves a path against the working directory. */
  path(relative: string): string;
  readonly runner: CommandRunner;
}

export type Command = (call: CommandCall) => CommandResult | Promise<CommandResult>;

export type CommandTable = Readonly<Record<string, Command>>;

export const OK: CommandResult = { code: 0 };

export function failure(code: number, err: string): CommandResult {
  return { code, err: `${err}\n` };
}

export interface ParsedOptions {
  /** By name without dashes. Names in `valued` take a value: `--name=value`, `--name value`, `-n value`. */
  readonly values: ReadonlyMap<string, readonly string[]>;
  readonly operands: readonly string[];
  has(...names: readonly string[]): boolean;
  value(...names: readonly string[]): string | undefined;
  all(...names: readonly string[]): readonly string[];
}

/** Parses arguments like getopt: combined short flags, `--` ends the options. */
export function parseOptions(
  args: readonly string[],
  optionsWithValue: readonly string[] = [],
): ParsedOptions {
  const values = new Map<string, string[]>();
  const operands: string[] = [];
  const add = (name: string, value: string) =>
    values.set(name, [...(values.get(name) ?? []), value]);
  for (let index = 0; index < args.length; index += 1) {
    const arg = args[index] ?? '';
    if (arg === '--') {
      operands.push(...args.slice(index + 1));
      break;
    }
    const read = parseOption(arg, args[index + 1], optionsWithValue);
    if (read === undefined) operands.push(arg);
    else {
      for (const [name, value] of read.options) add(name, value);
      if (read.tookNext) index += 1;
    }
  }
  const all = (...names: readonly string[]) => names.flatMap((name) => values.get(name) ?? []);
  return {
    values,
    operands,
    all,
    has: (...names) => names.some((name) => values.has(name)),
    value: (...names) => all(...names).at(-1),
  };
}

interface ParsedOption {
  readonly options: readonly (readonly [string, string])[];
  readonly tookNext: boolean;
}

function parseOption(
  arg: string,
  next: string | undefined,
  optionsWithValue: readonly string[],
): ParsedOption | undefined {
  if (!arg.startsWith('-') || arg === '-') return undefined;
  const long = /^--([^=]+)(?:=(.*))?$/s.exec(arg);
  if (long !== null) {
    const [, name = '', value] = long;
    if (value !== undefined) return { options: [[name, value]], tookNext: false };
    return optionsWithValue.includes(name)
      ? { options: [[name, next ?? '']], tookNext: true }
      : { options: [[name, '']], tookNext: false };
  }
  return parseShortFlags(arg.slice(1), next, optionsWithValue);
}

function parseShortFlags(
  flags: string,
  next: string | undefined,
  optionsWithValue: readonly string[],
): ParsedOption {
  const options: [string, string][] = [];
  for (const [index, flag] of Array.from(flags).entries()) {
    if (!optionsWithValue.includes(flag)) {
      options.push([flag, '']);
      continue;
    }
    const attached = flags.slice(index + 1).replace(/^=/, '');
    options.push([flag, attached === '' ? (next ?? '') : attached]);
    return { options, tookNext: attached === '' };
  }
  return { options, tookNext: false };
}
