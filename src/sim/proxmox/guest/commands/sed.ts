// SPDX-License-Identifier: Apache-2.0
import { type CommandCall, type CommandResult, failure, parseOptions } from '../shell/command.ts';
import { joinLines, readInput, splitLines } from './lines.ts';
import { compileRegExp } from './posix-regexp.ts';

type LineEdit = (line: string) => readonly string[];

const COMMAND = /^\s*(?:\/((?:[^/\\]|\\.)*)\/\s*)?(.*)$/s;
const SUBSTITUTION = /^s(.)((?:(?!\1)[^\\]|\\.)*)\1((?:(?!\1)[^\\]|\\.)*)\1([gi]*)\s*$/s;

/** Supports `s` and `d` with an optional `/address/`. */
export function sed(call: CommandCall): CommandResult {
  const options = parseOptions(call.args, ['e', 'expression']);
  const given = options.all('e', 'expression');
  const scripts = given.length > 0 ? given : options.operands.slice(0, 1);
  const paths = given.length > 0 ? options.operands : options.operands.slice(1);
  const edits = scripts.map((script) => parseEdit(script, options.has('E', 'r')));
  const known = edits.filter((edit) => edit !== undefined);
  if (known.length < edits.length) return failure(1, `sed: not simulated: ${scripts.join(' ; ')}`);
  if (!options.has('i', 'in-place'))
    return { code: 0, out: applyEdits(known, readInput(call, paths)) };
  for (const path of paths) {
    const content = call.system.files.read(call.path(path));
    if (content === undefined)
      return failure(2, `sed: can't read ${path}: No such file or directory`);
    call.system.files.write(call.path(path), applyEdits(known, content));
  }
  return { code: 0 };
}

function applyEdits(edits: readonly LineEdit[], content: string): string {
  let lines: readonly string[] = splitLines(content);
  for (const edit of edits) lines = lines.flatMap(edit);
  return joinLines(lines);
}

function parseEdit(script: string, extended: boolean): LineEdit | undefined {
  const [, address, command = ''] = COMMAND.exec(script) ?? [];
  const where = compileRegExp((address ?? '^').replaceAll('\\/', '/'), { extended });
  if (where === undefined) return undefined;
  if (command.trim() === 'd') return (line) => (where.test(line) ? [] : [line]);
  const change = parseSubstitution(command, extended);
  return change === undefined ? undefined : (line) => [where.test(line) ? change(line) : line];
}

function parseSubstitution(
  command: string,
  extended: boolean,
): ((line: string) => string) | undefined {
  const match = SUBSTITUTION.exec(command);
  if (match === null) return undefined;
  const [, delimiter = '/', from = '', to = '', flags = ''] = match;
  const what = compileRegExp(from.replaceAll(`\\${delimiter}`, delimiter), { extended, flags });
  return what === undefined ? undefined : (line) => line.replace(what, translateReplacement(to));
}

/** Translates `\1` and `&` of sed to `$1` and `$&` of JavaScript, and escapes literal dollars. */
function translateReplacement(to: string): string {
  return to
    .replaceAll('$', '$$$$')
    .replace(/\\(\d)/g, '$$$1')
    .replace(/(?<!\\)&/g, '$$&')
    .replace(/\\(.)/g, '$1');
}
