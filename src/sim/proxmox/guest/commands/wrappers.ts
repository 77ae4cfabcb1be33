// SPDX-License-Identifier: Apache-2.0
// Programs that run other programs: shells, sudo, env, timeout, xargs.
import { type Call, type CommandTable, failure, OK, type Outcome } from '../shell/command.ts';
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
  exec: (call) => rest(call),
  setsid: (call) => rest(call),
  timeout: (call) => {
    const words = withoutFlags(call.args, ['k', 's']);
    return call.runner.program(words.slice(1), { variables: call.variables, stdin: call.stdin });
  },
  xargs: (call) => {
    const words = withoutFlags(call.args, ['n', 'I', 'L', 'P']);
    const more = call.stdin.split(/\s+/).filter((word) => word !== '');
    return call.runner.program([...words, ...more], { variables: call.variables });
  },
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
  const stdin = script.fromStdin === true ? '' : call.stdin;
  const { args, name = call.name } = script;
  return call.runner.script(script.text, { args, name, variables: call.variables, stdin });
}

function rest(call: Call, valued: readonly string[] = []): Promise<Outcome> {
  return environment({ ...call, args: withoutFlags(call.args, valued) });
}

async function environment(call: Call): Promise<Outcome> {
  const variables = new Map(call.variables);
  const words = [...withoutFlags(call.args, ['u'])];
  for (let word = words[0]; word !== undefined && /^\w+=/.test(word); word = words[0]) {
    const split = word.indexOf('=');
    variables.set(word.slice(0, split), word.slice(split + 1));
    words.shift();
  }
  if (words.length > 0) return call.runner.program(words, { variables, stdin: call.stdin });
  return {
    code: 0,
    out: [...variables]
      .filter(([name]) => name !== UMASK)
      .map(([name, value]) => `${name}=${value}\n`)
      .join(''),
  };
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
