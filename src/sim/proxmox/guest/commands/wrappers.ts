// SPDX-License-Identifier: Apache-2.0
// Programs that run other programs: shells, sudo, env, timeout, xargs.
import {
  type CommandCall,
  type CommandResult,
  type CommandTable,
  failure,
  OK,
  type ParsedOptions,
  parseOptions,
} from '../shell/command.ts';
import { UMASK } from '../shell/redirects.ts';
import { isPlaceholder, placeholderUrl } from './downloads.ts';

export const WRAPPER_COMMANDS: CommandTable = {
  sh: runShell,
  bash: runShell,
  dash: runShell,
  sudo: (call) => runWithoutFlags(call, ['u', 'g']),
  env: runEnv,
  nohup: (call) => runWithoutFlags(call),
  time: (call) => runWithoutFlags(call),
  nice: (call) => runWithoutFlags(call, ['n']),
  ionice: (call) => runWithoutFlags(call, ['c', 'n']),
  command: (call) => runWithoutFlags(call),
  setsid: (call) => runWithoutFlags(call),
  timeout: (call) => {
    const words = withoutFlags(call.args, ['k', 's']);
    return call.runner.runProgram(words.slice(1), { variables: call.variables, stdin: call.input });
  },
  xargs,
};

/** Runs `sh -c text`, `sh file`, `sh -s args`, or the script on standard input. */
async function runShell(call: CommandCall): Promise<CommandResult> {
  const { flags, words } = splitFlags(call.args);
  const prefix = flags.includes('e') ? 'set -e\n' : '';
  const [first, ...others] = words;
  if (flags.includes('c')) {
    return runShellScript(call, {
      text: prefix + (first ?? ''),
      args: others.slice(1),
      name: others[0],
    });
  }
  if (flags.includes('s') || first === undefined || first === '-') {
    const args = first === '-' ? others : words;
    return runShellScript(call, { text: prefix + call.stdin, args, fromStdin: true });
  }
  const text = call.system.files.read(call.path(first));
  if (text === undefined) return failure(127, `${call.name}: ${first}: No such file or directory`);
  return runShellScript(call, { text: prefix + text, args: others });
}

/** Returns the letters of all leading flags and the remaining words; drops `-o name` and long flags. */
function splitFlags(args: readonly string[]): { flags: string; words: readonly string[] } {
  let flags = '';
  let index = 0;
  for (; /^[-+]./.test(args[index] ?? ''); index += 1) {
    const arg = args[index] ?? '';
    if (arg === '--') return { flags, words: args.slice(index + 1) };
    if (!arg.startsWith('--')) flags += arg.slice(1);
    if (/^[-+][a-z]*o$/.test(arg)) index += 1;
  }
  return { flags, words: args.slice(index) };
}

interface ShellScript {
  readonly text: string;
  readonly args: readonly string[];
  readonly name?: string | undefined;
  readonly fromStdin?: boolean;
}

async function runShellScript(call: CommandCall, script: ShellScript): Promise<CommandResult> {
  if (isPlaceholder(script.text)) {
    call.system.recordWarning(
      `a downloaded script with unknown content was not run: ${placeholderUrl(script.text)}`,
    );
    return OK;
  }
  const stdin = script.fromStdin === true ? '' : call.input;
  const { args, name = call.name } = script;
  return call.runner.runScript(script.text, { args, name, variables: call.variables, stdin });
}

function runWithoutFlags(
  call: CommandCall,
  optionsWithValue: readonly string[] = [],
): Promise<CommandResult> {
  return runWithVariables(call, withoutFlags(call.args, optionsWithValue));
}

function runEnv(call: CommandCall): Promise<CommandResult> {
  return runWithVariables(call, withoutFlags(call.args, ['u']));
}

async function runWithVariables(
  call: CommandCall,
  args: readonly string[],
): Promise<CommandResult> {
  const variables = new Map(call.variables);
  const words = [...args];
  for (let word = words[0]; word !== undefined && /^\w+=/.test(word); word = words[0]) {
    const split = word.indexOf('=');
    variables.set(word.slice(0, split), word.slice(split + 1));
    words.shift();
  }
  if (words.length > 0) return call.runner.runProgram(words, { variables, stdin: call.input });
  return {
    code: 0,
    out: [...variables]
      .filter(([name]) => name !== UMASK)
      .map(([name, value]) => `${name}=${value}\n`)
      .join(''),
  };
}

/** Passes all words at once, `-n` words per call, or with `-I` one line per call in place of the mark. */
async function xargs(call: CommandCall): Promise<CommandResult> {
  const options = parseOptions(call.args.slice(0, countFlags(call.args)), XARGS_OPTIONS_WITH_VALUE);
  const command = call.args.slice(countFlags(call.args));
  const total = { code: 0, out: '', err: '' };
  for (const argv of buildXargsCalls(options, command, call.stdin)) {
    const result = await call.runner.runProgram(argv, { variables: call.variables });
    total.out += result.out;
    total.err += result.err;
    if (result.code !== 0) total.code = 123;
  }
  return total;
}

const XARGS_OPTIONS_WITH_VALUE = ['n', 'I', 'L', 'P'];

function countFlags(args: readonly string[]): number {
  return args.length - withoutFlags(args, XARGS_OPTIONS_WITH_VALUE).length;
}

function buildXargsCalls(
  options: ParsedOptions,
  command: readonly string[],
  input: string,
): string[][] {
  const mark = options.value('I');
  if (mark !== undefined) {
    const lines = input.split('\n').filter((line) => line !== '');
    return lines.map((line) => command.map((word) => word.replaceAll(mark, line)));
  }
  const words = input.split(/\s+/).filter((word) => word !== '');
  const size = Number(options.value('n') ?? 0) || Math.max(1, words.length);
  const count = Math.max(1, Math.ceil(words.length / size));
  return Array.from({ length: count }, (_, index) => [
    ...command,
    ...words.slice(index * size, (index + 1) * size),
  ]);
}

/** Drops leading flags; a flag in `valued` also drops the next word. */
function withoutFlags(
  args: readonly string[],
  optionsWithValue: readonly string[],
): readonly string[] {
  let index = 0;
  for (; (args[index] ?? '').startsWith('-'); index += 1) {
    const flag = args[index] ?? '';
    if (flag === '--') return args.slice(index + 1);
    if (flag.length === 2 && optionsWithValue.includes(flag.slice(1))) index += 1;
  }
  return args.slice(index);
}
