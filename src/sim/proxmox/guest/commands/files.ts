// SPDX-License-Identifier: Apache-2.0
// Programs that create, change and read files.
import {
  type CommandCall,
  type CommandResult,
  type CommandTable,
  failure,
  OK,
  type ParsedOptions,
  parseOptions,
} from '../shell/command.ts';
import { escapeRegExp } from '../shell/expand.ts';
import { newFileMode } from '../shell/redirects.ts';
import { baseName, parentPath } from '../system/files.ts';
import { runBracketTest, runTest } from './conditions.ts';

export const FILE_COMMANDS: CommandTable = {
  mkdir,
  install,
  chmod,
  chown: (call) => changeEachFile(call, (path, owner) => call.system.files.chown(path, owner)),
  touch: (call) =>
    applyToOperands(call, (path) =>
      writeInExistingDirectory(call, { path, content: '', append: true }),
    ),
  rm: removeFiles,
  rmdir: removeFiles,
  cp: (call) => copyFiles(call, false),
  mv: (call) => copyFiles(call, true),
  ln: (call) => copyFiles(call, false),
  cat,
  cmp: (call) => {
    const [one, two] = parseOperands(call).map((path) => call.system.files.read(call.path(path)));
    if (one === undefined || two === undefined) return failure(2, 'cmp: No such file or directory');
    return { code: one === two ? 0 : 1 };
  },
  tee,
  ls: (call) => {
    const missing = parseOperands(call).find((path) => !call.system.files.exists(call.path(path)));
    if (missing !== undefined)
      return failure(2, `ls: cannot access '${missing}': No such file or directory`);
    return {
      code: 0,
      out: parseOperands(call)
        .map((path) => `${path}\n`)
        .join(''),
    };
  },
  truncate: (call) => {
    const options = parseOptions(call.args, ['s', 'size']);
    for (const path of options.operands) call.system.files.write(call.path(path), '');
    return OK;
  },
  mktemp: (call) => {
    const path = `/tmp/tmp.${call.system.input.random.integer(2 ** 31).toString(36)}`;
    if (parseOptions(call.args).has('d', 'directory')) call.system.files.makeDirectory(path);
    else call.system.files.write(path, '', { mode: '0600' });
    return { code: 0, out: `${path}\n` };
  },
  basename: ({ args }) => ({
    code: 0,
    out: `${baseName(args[0] ?? '').replace(new RegExp(`${escapeRegExp(args[1] ?? '')}$`), '')}\n`,
  }),
  dirname: ({ args }) => ({ code: 0, out: `${parentPath(args[0] ?? '')}\n` }),
  test: runTest,
  '[': runBracketTest,
  '[[': runBracketTest,
};

function parseOperands(
  call: CommandCall,
  optionsWithValue: readonly string[] = [],
): readonly string[] {
  return parseOptions(call.args, optionsWithValue).operands;
}

function applyToOperands(call: CommandCall, act: (path: string) => CommandResult): CommandResult {
  const failed = parseOperands(call)
    .map((path) => act(call.path(path)))
    .filter((result) => result.code !== 0);
  return failed[0] ?? OK;
}

interface FileWrite {
  readonly path: string;
  readonly content: string | Uint8Array;
  readonly mode?: string;
  readonly append?: boolean;
}

function writeInExistingDirectory(
  call: CommandCall,
  { path, content, ...options }: FileWrite,
): CommandResult {
  if (!call.system.files.isDirectory(parentPath(path))) {
    return failure(1, `${call.name}: cannot create '${path}': No such file or directory`);
  }
  call.system.files.write(path, content, { ...options, newMode: newFileMode(call.variables) });
  return OK;
}

function mkdir(call: CommandCall): CommandResult {
  const options = parseOptions(call.args, ['m', 'mode']);
  const { files } = call.system;
  for (const operand of options.operands) {
    const path = call.path(operand);
    if (!options.has('p', 'parents')) {
      if (files.exists(path))
        return failure(1, `mkdir: cannot create directory '${path}': File exists`);
      if (!files.isDirectory(parentPath(path))) {
        return failure(1, `mkdir: cannot create directory '${path}': No such file or directory`);
      }
    }
    files.makeDirectory(path);
  }
  return OK;
}

const INSTALL_OPTIONS_WITH_VALUE = 'm mode o owner g group t target-directory'.split(' ');

function install(call: CommandCall): CommandResult {
  const options = parseOptions(call.args, INSTALL_OPTIONS_WITH_VALUE);
  const { files } = call.system;
  if (options.has('d', 'directory')) {
    for (const path of options.operands) files.makeDirectory(call.path(path));
    return OK;
  }
  const into = options.value('t', 'target-directory');
  const sources = into === undefined ? options.operands.slice(0, -1) : options.operands;
  const target = call.path(into ?? options.operands.at(-1) ?? '');
  if (options.has('D')) files.makeDirectory(parentPath(target));
  for (const source of sources) {
    const result = installFile(call, { source, target }, options);
    if (result.code !== 0) return result;
  }
  return OK;
}

function installFile(call: CommandCall, copy: FileCopy, options: ParsedOptions): CommandResult {
  const mode = parseMode(options.value('m', 'mode') ?? '0755', '0755');
  const result = copyFile(call, { ...copy, mode });
  const owner = options.value('o', 'owner');
  if (result.code === 0 && owner !== undefined) {
    call.system.files.chown(copy.target, `${owner}:${options.value('g', 'group') ?? owner}`);
  }
  return result;
}

interface FileCopy {
  readonly source: string;
  readonly target: string;
  readonly mode?: string;
}

function copyFile(call: CommandCall, { source, target, mode }: FileCopy): CommandResult {
  const from = call.path(source);
  const file = source === '/dev/stdin' ? { mode: '0644' } : call.system.files.get(from);
  const content = source === '/dev/stdin' ? call.stdin : call.system.files.bytes(from);
  if (file === undefined || content === undefined) {
    return failure(1, `${call.name}: cannot stat '${source}': No such file or directory`);
  }
  const to = call.system.files.isDirectory(target) ? `${target}/${baseName(from)}` : target;
  return writeInExistingDirectory(call, { path: to, content, mode: mode ?? file.mode });
}

function copyFiles(call: CommandCall, removesSource: boolean): CommandResult {
  const words = parseOperands(call, ['t']);
  const target = call.path(words.at(-1) ?? '');
  for (const source of words.slice(0, -1)) {
    const result = copyFile(call, { source, target });
    if (result.code !== 0) return result;
    if (removesSource) call.system.files.remove(call.path(source));
  }
  return OK;
}

function chmod(call: CommandCall): CommandResult {
  return changeEachFile(call, (path, mode) => {
    const old = call.system.files.get(path)?.mode ?? '0755';
    return call.system.files.chmod(path, parseMode(mode, old));
  });
}

function changeEachFile(
  call: CommandCall,
  change: (path: string, value: string) => boolean,
): CommandResult {
  const [value = '', ...paths] = call.args.filter((arg) => !/^-[A-Za-z-]*[Rvcf]/.test(arg));
  for (const path of paths) {
    if (!change(call.path(path), value)) {
      return failure(1, `${call.name}: cannot access '${path}': No such file or directory`);
    }
  }
  return OK;
}

/** Parses `0644`, `644`, and symbolic modes (`u+x`, `go-rwx`) relative to the old mode. */
export function parseMode(text: string, old: string): string {
  if (/^[0-7]{3,4}$/.test(text)) return text.padStart(4, '0');
  let bits = Number.parseInt(old, 8);
  for (const clause of text.split(',')) {
    const [, who = '', sign = '', what = ''] = /^([ugoa]*)([-+=])([rwxX]*)$/.exec(clause) ?? [];
    const each = Array.from(what).reduce((sum, letter) => sum | ({ r: 4, w: 2 }[letter] ?? 1), 0);
    const mask = parseModeClasses(who) & (each * 0o111);
    if (sign === '-') bits &= ~mask;
    else bits = (sign === '=' ? bits & ~parseModeClasses(who) : bits) | mask;
  }
  return bits.toString(8).padStart(4, '0');
}

function parseModeClasses(who: string): number {
  if (who === '' || who.includes('a')) return 0o777;
  return (
    (who.includes('u') ? 0o700 : 0) |
    (who.includes('g') ? 0o070 : 0) |
    (who.includes('o') ? 0o007 : 0)
  );
}

function removeFiles(call: CommandCall): CommandResult {
  const options = parseOptions(call.args);
  for (const operand of options.operands) {
    const path = call.path(operand);
    if (!call.system.files.exists(path) && !options.has('f', 'force')) {
      return failure(1, `rm: cannot remove '${operand}': No such file or directory`);
    }
    if (path !== '/') call.system.files.remove(path);
  }
  return OK;
}

function cat(call: CommandCall): CommandResult {
  const words = parseOperands(call);
  let out = words.length === 0 ? call.stdin : '';
  for (const word of words) {
    const text = word === '-' ? call.stdin : call.system.files.read(call.path(word));
    if (text === undefined)
      return { code: 1, out, err: `cat: ${word}: No such file or directory\n` };
    out += text;
  }
  return { code: 0, out };
}

function tee(call: CommandCall): CommandResult {
  const options = parseOptions(call.args);
  const append = options.has('a', 'append');
  const failed = options.operands
    .filter((path) => !path.startsWith('/dev/'))
    .map((path) =>
      writeInExistingDirectory(call, { path: call.path(path), content: call.stdin, append }),
    )
    .find((result) => result.code !== 0);
  return { code: failed?.code ?? 0, out: call.stdin, err: failed?.err ?? '' };
}
