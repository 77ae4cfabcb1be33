// SPDX-License-Identifier: Apache-2.0
// Programs that read, write and filter text.
import {
  type CommandCall,
  type CommandResult,
  type CommandTable,
  failure,
  parseOptions,
} from '../shell/command.ts';
import { escapeRegExp } from '../shell/expand.ts';
import { sha256sum } from './checksums.ts';
import { joinLines, readInput, splitLines } from './lines.ts';
import { compileRegExp } from './posix-regexp.ts';
import { sed } from './sed.ts';

export const TEXT_COMMANDS: CommandTable = {
  echo,
  printf,
  grep,
  sed,
  sha256sum,
  base64: (call) => {
    const content = readInput(call, parseOptions(call.args, ['w']).operands);
    const decodes = parseOptions(call.args, ['w']).has('d', 'decode');
    const out = decodes
      ? Buffer.from(content, 'base64').toString()
      : `${Buffer.from(content).toString('base64')}\n`;
    return { code: 0, out };
  },
  head: (call) => selectLines(call, (lines, count) => lines.slice(0, count)),
  tail: (call) => selectLines(call, (lines, count) => lines.slice(-count)),
  wc: (call) => {
    const options = parseOptions(call.args);
    const content = readInput(call, options.operands);
    const words = content.split(/\s+/).filter((word) => word !== '').length;
    const lines = splitLines(content).length;
    const count = options.has('c', 'm') ? content.length : options.has('w') ? words : lines;
    return { code: 0, out: `${count}\n` };
  },
  sort: (call) => {
    const options = parseOptions(call.args, ['k', 't']);
    const lines = splitLines(readInput(call, options.operands)).sort();
    return { code: 0, out: joinLines(options.has('u', 'unique') ? [...new Set(lines)] : lines) };
  },
  cut,
  tr: (call) => {
    const options = parseOptions(call.args);
    const [from = '', to = ''] = options.operands.map(expandCharacterSet);
    const out = Array.from(call.stdin).map((char) => {
      const at = from.indexOf(char);
      if (at < 0) return char;
      return options.has('d') ? '' : (to[Math.min(at, to.length - 1)] ?? char);
    });
    const joined = out.join('');
    if (!options.has('s')) return { code: 0, out: joined };
    const repeated = new RegExp(`([${escapeRegExp(to || from)}])\\1+`, 'g');
    return { code: 0, out: joined.replace(repeated, '$1') };
  },
  awk,
  seq: ({ args }) => {
    const [first, last] =
      args.length === 1 ? [1, Number(args[0])] : [Number(args[0]), Number(args.at(-1))];
    const length = Math.min(Math.max(0, last - first + 1) || 0, 10_000);
    return { code: 0, out: joinLines(Array.from({ length }, (_, index) => String(first + index))) };
  },
  date: (call) => ({ code: 0, out: `${new Date(call.system.now()).toISOString()}\n` }),
  sleep: async (call) => {
    const [, amount = '0', unit = 's'] = /^([\d.]+)([smhd]?)$/.exec(call.args[0] ?? '') ?? [];
    const factor = { m: 60, h: 3600, d: 86_400 }[unit] ?? 1;
    await call.system.sleepSimulated(Number(amount) * factor * 1000);
    return { code: 0 };
  },
};

function cut(call: CommandCall): CommandResult {
  const options = parseOptions(call.args, ['d', 'delimiter', 'f', 'fields', 'c', 'characters']);
  const lines = splitLines(readInput(call, options.operands));
  const characters = options.value('c', 'characters');
  if (characters !== undefined) {
    const [first = '1', last = first] = characters.split('-');
    const end = last === '' ? undefined : Number(last);
    return { code: 0, out: joinLines(lines.map((line) => line.slice(Number(first) - 1, end))) };
  }
  const index = Number(options.value('f', 'fields') ?? 1) - 1;
  const delimiter = options.value('d', 'delimiter') ?? '\t';
  return { code: 0, out: joinLines(lines.map((line) => line.split(delimiter)[index] ?? '')) };
}

/** Supports only programs of the form `{print $n}`. */
function awk(call: CommandCall): CommandResult {
  const options = parseOptions(call.args, ['F']);
  const [program = '', ...files] = options.operands;
  const field = /^\s*\{\s*print\s+\$(\d+)\s*;?\s*\}\s*$/.exec(program)?.[1];
  if (field === undefined) return failure(2, 'awk: this program is not simulated');
  const separator = options.value('F') ?? /\s+/;
  const lines = splitLines(readInput(call, files));
  return {
    code: 0,
    out: joinLines(lines.map((line) => line.trim().split(separator)[Number(field) - 1] ?? '')),
  };
}

/** Expands ranges such as `a-z`. */
function expandCharacterSet(set: string): string {
  return set.replaceAll('\\n', '\n').replace(/(.)-(.)/g, (_, first: string, last: string) => {
    const start = first.charCodeAt(0);
    const length = Math.max(0, last.charCodeAt(0) - start + 1);
    return Array.from({ length }, (_unused, index) => String.fromCharCode(start + index)).join('');
  });
}

function selectLines(
  call: CommandCall,
  pick: (lines: readonly string[], count: number) => readonly string[],
): CommandResult {
  const args = call.args.map((arg) => arg.replace(/^-(\d+)$/, '-n$1'));
  const options = parseOptions(args, ['n', 'lines', 'c']);
  const count = Number(options.value('n', 'lines') ?? 10);
  return { code: 0, out: joinLines(pick(splitLines(readInput(call, options.operands)), count)) };
}

function echo({ args }: CommandCall): CommandResult {
  const flags = /^-[neE]+$/.test(args[0] ?? '') ? (args[0] ?? '') : '';
  const words = (flags === '' ? args : args.slice(1)).join(' ');
  const line = flags.includes('e') ? unescapeText(words) : words;
  return { code: 0, out: flags.includes('n') ? line : `${line}\n` };
}

/** Repeats the format until all arguments are used. */
function printf({ args }: CommandCall): CommandResult {
  const [format = '', ...values] = args[0] === '--' ? args.slice(1) : args;
  const directives = unescapeText(format).match(/%-?\d*[sdb]/g)?.length ?? 0;
  const repetitions = directives === 0 ? 1 : Math.max(1, Math.ceil(values.length / directives));
  let next = 0;
  const out = unescapeText(format)
    .repeat(repetitions)
    .replace(/%\d*[sdb%]/g, (directive) => {
      if (directive.endsWith('%')) return '%';
      next += 1;
      const value = values[next - 1] ?? (directive.endsWith('d') ? '0' : '');
      return value.padStart(Number(directive.slice(1, -1)), directive[1] === '0' ? '0' : ' ');
    });
  return { code: 0, out };
}

function unescapeText(value: string): string {
  const known: Readonly<Record<string, string>> = {
    n: '\n',
    t: '\t',
    r: '\r',
    '\\': '\\',
    '0': '\0',
  };
  return value.replace(/\\([ntr\\0])/g, (_, letter: string) => known[letter] ?? letter);
}

function grep(call: CommandCall): CommandResult {
  const options = parseOptions(call.args, ['e', 'regexp', 'm', 'A', 'B']);
  const [first = '', ...rest] = options.operands;
  const given = options.value('e', 'regexp');
  const pattern = given ?? first;
  const matcher = compileRegExp(pattern, {
    extended: options.has('E', 'P', 'extended-regexp'),
    fixed: options.has('F', 'fixed-strings'),
    flags: options.has('i') ? 'i' : '',
  });
  if (matcher === undefined) return failure(2, 'grep: invalid pattern');
  const lines = splitLines(readInput(call, given === undefined ? rest : options.operands));
  const found = lines.filter((line) => matcher.test(line) !== options.has('v', 'invert-match'));
  const code = found.length > 0 ? 0 : 1;
  if (options.has('q', 'quiet', 's')) return { code };
  if (options.has('o', 'only-matching')) {
    return { code, out: joinLines(found.map((line) => matcher.exec(line)?.[0] ?? '')) };
  }
  return { code, out: options.has('c', 'count') ? `${found.length}\n` : joinLines(found) };
}
