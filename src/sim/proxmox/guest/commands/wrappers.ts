// SPDX-License-Identifier: Apache-2.0
// Programs that run other programs: shells, sudo, env, timeout, xargs.
import {
  type Call,
  type CommandTable,
  failure,
  OK,
  type Options,
  type Outcome,
  readOptions,
} from '../shell/command.ts';
import { UMASK } from '../shell/redirects.ts';
import { isStandIn, urlOfStandIn } from './downloads.ts';

export const WRAPPERS: CommandTable = {
  sh: shell,
  bash: shell,
  dash: shell,
  sudo: (call) => rest(call, ['u', 'g']),
  env: environment,
  nohup: (call) => rest(call),
  time: (call) => rest(call),
  nice: (call) => rest(call, ['n']),
  ionice: (call) => rest(call, ['c', 'n']),
  command: (call) => rest(call),
  setsid: (call) => rest(call),
  timeout: (call) => {
    const words = withoutFlags(call.args, ['k', 's']);
    return call.runner.program(words.slice(1), { variables: call.variables, stdin: call.input });
  },
  xargs,
};

/** `sh -c text`, `sh file`, `sh -s args`, or the script on standard input. */
async function shell(call: Call): Promise<Outcome> {
  const { flags, words } = splitFlags(call.args);
  const prefix = flags.includes('e') ? 'set -e\n' : '';
  const [first, ...others] = words;
  if (flags.includes('c')) {
    return run(call, { text: prefix + (first ?? ''), args: others.slice(1), name: others[0] });
  }
  if (flags.includes('s') || first === undefined || first === '-') {
    const args = first === '-' ? others : words;
    return run(call, { text: prefix + call.stdin, args, fromStdin: true });
  }
  const text = call.system.files.read(call.path(first));
  if (text === undefined) return failure(127, `${call.name}: ${first}: No such file or directory`);
  return run(call, { text: prefix + text, args: others });
}

/** The letters of all leading flags, and what follows; `-o name` and long flags are dropped. */
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

interface Script {
  readonly text: string;
  readonly args: readonly string[];
  readonly name?: string | undefined;
  readonly fromStdin?: boolean;
}

async function run(call: Call, script: Script): Promise<Outcome> {
  if (isStandIn(script.text)) {
    call.system.warn(`a downloaded script was not run: ${urlOfStandIn(script.text)}`);
    return OK;
  }
  const stdin = script.fromStdin === true ? '' : call.input;
  const { args, name = call.name } = script;
  return call.runner.script(script.text, { args, name, variables: call.variables, stdin });
}

function rest(call: Call, valued: readonly string[] = []): Promise<Outcome> {
  return withVariables(call, withoutFlags(call.args, valued));
}

function environment(call: Call): Promise<Outcome> {
  return withVariables(call, withoutFlags(call.args, ['u']));
}

async function withVariables(call: Call, args: readonly string[]): Promise<Outcome> {
  const variables = new Map(call.variables);
  const words = [...args];
  for (let word = words[0]; word !== undefined && /^\w+=/.test(word); word = words[0]) {
    const split = word.indexOf('=');
    variables.set(word.slice(0, split), word.slice(split + 1));
    words.shift();
  }
  if (words.length > 0) return call.runner.program(words, { variables, stdin: call.input });
  return {
    code: 0,
    out: [...variables]
      .filter(([name]) => name !== UMASK)
      .map(([name, value]) => `${name}=${value}\n`)
      .join(''),
  };
}

/** All words at once, `-n` at a time, or with `-I` one line each in the place of a mark. */
async function xargs(call: Call): Promise<Outcome> {
  const options = readOptions(call.args.slice(0, flagCount(call.args)), XARGS_VALUED);
  const command = call.args.slice(flagCount(call.args));
  const total = { code: 0, out: '', err: '' };
  for (const argv of xargsCalls(options, command, call.stdin)) {
    const outcome = await call.runner.program(argv, { variables: call.variables });
    total.out += outcome.out;
    total.err += outcome.err;
    if (outcome.code !== 0) total.code = 123;
  }
  return total;
}

const XARGS_VALUED = ['n', 'I', 'L', 'P'];

function flagCount(args: readonly string[]): number {
  return args.length - withoutFlags(args, XARGS_VALUED).length;
}

function xargsCalls(options: Options, command: readonly string[], input: string): string[][] {
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

/** Drops leading flags; those named in `valued` take the next word with them. */
function withoutFlags(args: readonly string[], valued: readonly string[]): readonly string[] {
  let index = 0;
  for (; (args[index] ?? '').startsWith('-'); index += 1) {
    const flag = args[index] ?? '';
    if (flag === '--') return args.slice(index + 1);
    if (flag.length === 2 && valued.includes(flag.slice(1))) index += 1;
  }
  return args.slice(index);
}
