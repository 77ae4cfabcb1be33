// SPDX-License-Identifier: Apache-2.0
// Shell builtins: commands that read or change the state of the shell itself.

import { type Streams, UMASK } from './redirects.ts';
import type { ShellState } from './shell-host.ts';
import { Unwind } from './unwind.ts';

export interface BuiltinCall {
  readonly shell: ShellState;
  readonly args: readonly string[];
  readonly streams: Streams;
  readonly host: BuiltinHost;
}

export interface BuiltinHost {
  hasProgram(name: string): boolean;
  read(path: string): string | undefined;
  isDirectory(path: string): boolean;
  execute(
    argv: readonly string[],
    streams: Streams,
    variables: ReadonlyMap<string, string>,
  ): Promise<number>;
}

type Builtin = (call: BuiltinCall) => number | Promise<number>;

export const BUILTINS: Readonly<Record<string, Builtin>> = {
  ':': () => 0,
  true: () => 0,
  false: () => 1,
  trap: ({ shell, args }) => {
    if (args.includes('EXIT') || args.includes('0'))
      shell.exitTrap = args[0] === '-' ? '' : args[0];
    return 0;
  },
  exec: runExec,
  umask: ({ shell, args }) => {
    shell.scope.variables.set(UMASK, args[0] ?? '022');
    shell.exported.add(UMASK);
    return 0;
  },
  wait: () => 0,
  ulimit: () => 0,
  exit: ({ shell, args }) => unwind('exit', args[0], shell),
  return: ({ shell, args }) => unwind('return', args[0], shell),
  break: () => unwind('break', '0'),
  continue: () => unwind('continue', '0'),
  set: setOptions,
  export: exportVariables,
  readonly: assignVariables,
  local: declareLocal,
  declare: assignVariables,
  unset: ({ shell, args }) => {
    for (const name of args) shell.scope.variables.delete(name);
    return 0;
  },
  shift: ({ shell, args }) => {
    shell.scope.args = shell.scope.args.slice(Number(args[0] ?? 1));
    return 0;
  },
  cd: changeDirectory,
  eval: ({ shell, args, streams }) => shell.evaluate(args.join(' '), streams),
  '.': sourceFile,
  source: sourceFile,
  command: printCommandNames,
  type: printCommandNames,
  read: readLine,
};

function unwind(kind: Unwind['kind'], code: string | undefined, shell?: ShellState): never {
  throw new Unwind(kind, Number(code ?? shell?.scope.status ?? 0) || 0);
}

function setOptions({ shell, args }: BuiltinCall): number {
  for (let index = 0; index < args.length; index += 1) {
    const arg = args[index] ?? '';
    const isEnabled = arg.startsWith('-');
    if (arg === '--' || !/^[-+]/.test(arg)) {
      shell.scope.args = args.slice(arg === '--' ? index + 1 : index);
      return 0;
    }
    if (arg.includes('e')) shell.errexit = isEnabled;
    if (!arg.endsWith('o')) continue;
    index += 1;
    if (args[index] === 'errexit') shell.errexit = isEnabled;
    if (args[index] === 'pipefail') shell.pipefail = isEnabled;
  }
  return 0;
}

function exportVariables(call: BuiltinCall): number {
  assignVariables(call);
  for (const arg of call.args) {
    if (!arg.startsWith('-')) call.shell.exported.add(arg.replace(/=.*/s, ''));
  }
  return 0;
}

function assignVariables({ shell, args }: BuiltinCall): number {
  for (const arg of args) {
    const split = arg.indexOf('=');
    if (split > 0) shell.scope.variables.set(arg.slice(0, split), arg.slice(split + 1));
  }
  return 0;
}

function declareLocal(call: BuiltinCall): number {
  const { shell, args } = call;
  for (const arg of args) {
    const name = arg.replace(/=.*/s, '');
    const frame = shell.locals.at(-1);
    if (frame !== undefined && !frame.has(name)) frame.set(name, shell.scope.variables.get(name));
  }
  return assignVariables(call);
}

/** Replaces the shell with a command. Without one the interpreter keeps its redirections. */
async function runExec({ shell, args, streams, host }: BuiltinCall): Promise<number> {
  if (args.length === 0) return 0;
  throw new Unwind('exit', await host.execute(args, streams, shell.environment()));
}

function changeDirectory({ shell, args, streams, host }: BuiltinCall): number {
  const target = args.find((arg) => !arg.startsWith('-')) ?? '/root';
  const current = shell.scope.variables.get('PWD') ?? '';
  const path = target.startsWith('/') ? target : `${current === '/' ? '' : current}/${target}`;
  if (!host.isDirectory(path)) {
    streams.err(`cd: can't cd to ${target}\n`);
    return 2;
  }
  shell.scope.variables.set('PWD', path);
  return 0;
}

async function sourceFile({ shell, args, streams, host }: BuiltinCall): Promise<number> {
  const text = host.read(args[0] ?? '');
  if (text !== undefined) return shell.evaluate(text, streams);
  streams.err(`.: cannot open ${args[0] ?? ''}: No such file\n`);
  return 2;
}

/** `command -v x` and `type x`. Plain `command x` is a program, see wrappers.ts. */
function printCommandNames({ shell, args, streams, host }: BuiltinCall): number {
  const names = args.filter((arg) => !arg.startsWith('-'));
  const isKnown = (name: string) =>
    name in BUILTINS || shell.functions.has(name) || host.hasProgram(name);
  for (const name of names.filter(isKnown)) streams.out(`${name}\n`);
  return names.every(isKnown) ? 0 : 127;
}

function readLine({ shell, args, streams }: BuiltinCall): number {
  const names = args.filter((arg) => !arg.startsWith('-'));
  const [line = '', ...rest] = streams.stdin.text.split('\n');
  const isEnd = streams.stdin.text === '';
  streams.stdin.text = rest.join('\n');
  const fields = line.trim().split(/\s+/);
  for (const [index, name] of names.entries()) {
    const isLast = index + 1 === names.length;
    shell.scope.variables.set(name, isLast ? fields.slice(index).join(' ') : (fields[index] ?? ''));
  }
  return isEnd ? 1 : 0;
}
