// SPDX-License-Identifier: Apache-2.0
// Programs that make, change and look at files.
import {
  type Call,
  type CommandTable,
  failure,
  OK,
  type Options,
  type Outcome,
  readOptions,
} from '../shell/command.ts';
import { newFileMode } from '../shell/redirects.ts';
import { baseName, parentOf } from '../system/files.ts';
import { bracketed, condition } from './conditions.ts';
import { literal } from './regular-expression.ts';

export const FILE_COMMANDS: CommandTable = {
  mkdir,
  install,
  chmod,
  chown: (call) => changeEach(call, (path, owner) => call.system.files.chown(path, owner)),
  touch: (call) => eachOperand(call, (path) => put(call, { path, content: '', append: true })),
  rm: remove,
  rmdir: remove,
  cp: (call) => copy(call, false),
  mv: (call) => copy(call, true),
  ln: (call) => copy(call, false),
  cat,
  tee,
  ls: (call) => {
    const missing = operands(call).find((path) => !call.system.files.exists(call.path(path)));
    if (missing !== undefined)
      return failure(2, `ls: cannot access '${missing}': No such file or directory`);
    return {
      code: 0,
      out: operands(call)
        .map((path) => `${path}\n`)
        .join(''),
    };
  },
  truncate: (call) => {
    const options = readOptions(call.args, ['s', 'size']);
    for (const path of options.operands) call.system.files.write(call.path(path), '');
    return OK;
  },
  mktemp: (call) => {
    const path = `/tmp/tmp.${call.system.input.random.integer(2 ** 31).toString(36)}`;
    if (readOptions(call.args).has('d', 'directory')) call.system.files.makeDirectory(path);
    else call.system.files.write(path, '', { mode: '0600' });
    return { code: 0, out: `${path}\n` };
  },
  basename: ({ args }) => ({
    code: 0,
    out: `${baseName(args[0] ?? '').replace(new RegExp(`${literal(args[1] ?? '')}$`), '')}\n`,
  }),
  dirname: ({ args }) => ({ code: 0, out: `${parentOf(args[0] ?? '')}\n` }),
  test: condition,
  '[': bracketed,
  '[[': bracketed,
};

function operands(call: Call, valued: readonly string[] = []): readonly string[] {
  return readOptions(call.args, valued).operands;
}

function eachOperand(call: Call, act: (path: string) => Outcome): Outcome {
  const failed = operands(call)
    .map((path) => act(call.path(path)))
    .filter((outcome) => outcome.code !== 0);
  return failed[0] ?? OK;
}

interface Put {
  readonly path: string;
  readonly content: string | Uint8Array;
  readonly mode?: string;
  readonly append?: boolean;
}

function put(call: Call, { path, content, ...options }: Put): Outcome {
  if (!call.system.files.isDirectory(parentOf(path))) {
    return failure(1, `${call.name}: cannot create '${path}': No such file or directory`);
  }
  call.system.files.write(path, content, { ...options, newMode: newFileMode(call.variables) });
  return OK;
}

function mkdir(call: Call): Outcome {
  const options = readOptions(call.args, ['m', 'mode']);
  const { files } = call.system;
  for (const operand of options.operands) {
    const path = call.path(operand);
    if (!options.has('p', 'parents')) {
      if (files.exists(path))
        return failure(1, `mkdir: cannot create directory '${path}': File exists`);
      if (!files.isDirectory(parentOf(path))) {
        return failure(1, `mkdir: cannot create directory '${path}': No such file or directory`);
      }
    }
    files.makeDirectory(path);
  }
  return OK;
}

const INSTALL_VALUED = 'm mode o owner g group t target-directory'.split(' ');

function install(call: Call): Outcome {
  const options = readOptions(call.args, INSTALL_VALUED);
  const { files } = call.system;
  if (options.has('d', 'directory')) {
    for (const path of options.operands) files.makeDirectory(call.path(path));
    return OK;
  }
  const into = options.value('t', 'target-directory');
  const sources = into === undefined ? options.operands.slice(0, -1) : options.operands;
  const target = call.path(into ?? options.operands.at(-1) ?? '');
  if (options.has('D')) files.makeDirectory(parentOf(target));
  for (const source of sources) {
    const outcome = installOne(call, { source, target }, options);
    if (outcome.code !== 0) return outcome;
  }
  return OK;
}

function installOne(call: Call, copy: Copy, options: Options): Outcome {
  const mode = octal(options.value('m', 'mode') ?? '0755', '0755');
  const outcome = copyOne(call, { ...copy, mode });
  const owner = options.value('o', 'owner');
  if (outcome.code === 0 && owner !== undefined) {
    call.system.files.chown(copy.target, `${owner}:${options.value('g', 'group') ?? owner}`);
  }
  return outcome;
}

interface Copy {
  readonly source: string;
  readonly target: string;
  readonly mode?: string;
}

function copyOne(call: Call, { source, target, mode }: Copy): Outcome {
  const from = call.path(source);
  const file = source === '/dev/stdin' ? { mode: '0644' } : call.system.files.get(from);
  const content = source === '/dev/stdin' ? call.stdin : call.system.files.bytes(from);
  if (file === undefined || content === undefined) {
    return failure(1, `${call.name}: cannot stat '${source}': No such file or directory`);
  }
  const to = call.system.files.isDirectory(target) ? `${target}/${baseName(from)}` : target;
  return put(call, { path: to, content, mode: mode ?? file.mode });
}

function copy(call: Call, removes: boolean): Outcome {
  const words = operands(call, ['t']);
  const target = call.path(words.at(-1) ?? '');
  for (const source of words.slice(0, -1)) {
    const outcome = copyOne(call, { source, target });
    if (outcome.code !== 0) return outcome;
    if (removes) call.system.files.remove(call.path(source));
  }
  return OK;
}

function chmod(call: Call): Outcome {
  return changeEach(call, (path, mode) => {
    const old = call.system.files.get(path)?.mode ?? '0755';
    return call.system.files.chmod(path, octal(mode, old));
  });
}

function changeEach(call: Call, change: (path: string, value: string) => boolean): Outcome {
  const [value = '', ...paths] = call.args.filter((arg) => !/^-[A-Za-z-]*[Rvcf]/.test(arg));
  for (const path of paths) {
    if (!change(call.path(path), value)) {
      return failure(1, `${call.name}: cannot access '${path}': No such file or directory`);
    }
  }
  return OK;
}

/** `0644` and `644` as they are; `u+x`, `+x`, `go-rwx` against the old mode. */
export function octal(text: string, old: string): string {
  if (/^[0-7]{3,4}$/.test(text)) return text.padStart(4, '0');
  let bits = Number.parseInt(old, 8);
  for (const clause of text.split(',')) {
    const [, who = '', sign = '', what = ''] = /^([ugoa]*)([-+=])([rwxX]*)$/.exec(clause) ?? [];
    const each = Array.from(what).reduce((sum, letter) => sum | ({ r: 4, w: 2 }[letter] ?? 1), 0);
    const mask = whoMask(who) & (each * 0o111);
    if (sign === '-') bits &= ~mask;
    else bits = (sign === '=' ? bits & ~whoMask(who) : bits) | mask;
  }
  return bits.toString(8).padStart(4, '0');
}

function whoMask(who: string): number {
  if (who === '' || who.includes('a')) return 0o777;
  return (
    (who.includes('u') ? 0o700 : 0) |
    (who.includes('g') ? 0o070 : 0) |
    (who.includes('o') ? 0o007 : 0)
  );
}

function remove(call: Call): Outcome {
  const options = readOptions(call.args);
  for (const operand of options.operands) {
    const path = call.path(operand);
    if (!call.system.files.exists(path) && !options.has('f', 'force')) {
      return failure(1, `rm: cannot remove '${operand}': No such file or directory`);
    }
    if (path !== '/') call.system.files.remove(path);
  }
  return OK;
}

function cat(call: Call): Outcome {
  const words = operands(call);
  let out = words.length === 0 ? call.stdin : '';
  for (const word of words) {
    const text = word === '-' ? call.stdin : call.system.files.read(call.path(word));
    if (text === undefined)
      return { code: 1, out, err: `cat: ${word}: No such file or directory\n` };
    out += text;
  }
  return { code: 0, out };
}

function tee(call: Call): Outcome {
  const options = readOptions(call.args);
  const append = options.has('a', 'append');
  const failed = options.operands
    .filter((path) => !path.startsWith('/dev/'))
    .map((path) => put(call, { path: call.path(path), content: call.stdin, append }))
    .find((outcome) => outcome.code !== 0);
  return { code: failed?.code ?? 0, out: call.stdin, err: failed?.err ?? '' };
}
