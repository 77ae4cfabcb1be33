// SPDX-License-Identifier: Apache-2.0
// What a command sees and what it leaves. The tables of commands/ are made of these.
import type { GuestSystem } from '../system/system.ts';
import type { Stdin } from './redirects.ts';

export interface Outcome {
  readonly code: number;
  readonly out?: string;
  readonly err?: string;
}

export interface RunOptions {
  readonly variables?: ReadonlyMap<string, string>;
  readonly args?: readonly string[];
  /** `$0`. */
  readonly name?: string;
  /** A text, or the input of the caller to read on from. */
  readonly stdin?: string | Stdin;
}

/** The way for commands that run others: sh, sudo, env, xargs, systemd units. */
export interface Runner {
  script(text: string, options?: RunOptions): Promise<Required<Outcome>>;
  /** No shell: the first word is the program. */
  program(argv: readonly string[], options?: RunOptions): Promise<Required<Outcome>>;
  /** Whether `program` would find it. */
  finds(name: string): boolean;
}

export interface Call {
  /** The name it was called by, without the directory. */
  readonly name: string;
  readonly args: readonly string[];
  /** All of the input, taken when first looked at: a command that never looks leaves it to the next one. */
  readonly stdin: string;
  /** To hand the input on unread. */
  readonly input: Stdin;
  readonly variables: ReadonlyMap<string, string>;
  readonly system: GuestSystem;
  /** An absolute path, against the directory the command runs in. */
  path(relative: string): string;
  readonly runner: Runner;
}

export type Command = (call: Call) => Outcome | Promise<Outcome>;

export type CommandTable = Readonly<Record<string, Command>>;

export const OK: Outcome = { code: 0 };

export function failure(code: number, err: string): Outcome {
  return { code, err: `${err}\n` };
}

export interface Options {
  /** Without leading dashes; `--name=value`, `--name value` and `-n value` for the names in `valued`. */
  readonly values: ReadonlyMap<string, readonly string[]>;
  readonly operands: readonly string[];
  has(...names: readonly string[]): boolean;
  value(...names: readonly string[]): string | undefined;
  all(...names: readonly string[]): readonly string[];
}

/** Splits arguments the way getopt does: bundled short flags, `--` ends the options. */
export function readOptions(args: readonly string[], valued: readonly string[] = []): Options {
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
    const read = readOption(arg, args[index + 1], valued);
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

interface ReadOption {
  readonly options: readonly (readonly [string, string])[];
  readonly tookNext: boolean;
}

function readOption(
  arg: string,
  next: string | undefined,
  valued: readonly string[],
): ReadOption | undefined {
  if (!arg.startsWith('-') || arg === '-') return undefined;
  const long = /^--([^=]+)(?:=(.*))?$/s.exec(arg);
  if (long !== null) {
    const [, name = '', value] = long;
    if (value !== undefined) return { options: [[name, value]], tookNext: false };
    return valued.includes(name)
      ? { options: [[name, next ?? '']], tookNext: true }
      : { options: [[name, '']], tookNext: false };
  }
  return readBundle(arg.slice(1), next, valued);
}

function readBundle(
  flags: string,
  next: string | undefined,
  valued: readonly string[],
): ReadOption {
  const options: [string, string][] = [];
  for (const [index, flag] of Array.from(flags).entries()) {
    if (!valued.includes(flag)) {
      options.push([flag, '']);
      continue;
    }
    const attached = flags.slice(index + 1).replace(/^=/, '');
    options.push([flag, attached === '' ? (next ?? '') : attached]);
    return { options, tookNext: attached === '' };
  }
  return { options, tookNext: false };
}
