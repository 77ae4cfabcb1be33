// SPDX-License-Identifier: Apache-2.0
import { type Call, failure, type Outcome, readOptions } from '../shell/command.ts';
import { inputOf, linesOf, textOfLines } from './lines.ts';
import { regularExpression } from './regular-expression.ts';

type Edit = (line: string) => readonly string[];

const COMMAND = /^\s*(?:\/((?:[^/\\]|\\.)*)\/\s*)?(.*)$/s;
const SUBSTITUTION = /^s(.)((?:(?!\1)[^\\]|\\.)*)\1((?:(?!\1)[^\\]|\\.)*)\1([gi]*)\s*$/s;

/** `s` and `d`, each with an optional `/address/`: how people comment out a line. */
export function sed(call: Call): Outcome {
  const options = readOptions(call.args, ['e', 'expression']);
  const given = options.all('e', 'expression');
  const scripts = given.length > 0 ? given : options.operands.slice(0, 1);
  const paths = given.length > 0 ? options.operands : options.operands.slice(1);
  const edits = scripts.map((script) => editOf(script, options.has('E', 'r')));
  const known = edits.filter((edit) => edit !== undefined);
  if (known.length < edits.length) return failure(1, `sed: not modelled: ${scripts.join(' ; ')}`);
  if (!options.has('i', 'in-place')) return { code: 0, out: apply(known, inputOf(call, paths)) };
  for (const path of paths) {
    const content = call.system.files.read(call.path(path));
    if (content === undefined)
      return failure(2, `sed: can't read ${path}: No such file or directory`);
    call.system.files.write(call.path(path), apply(known, content));
  }
  return { code: 0 };
}

function apply(edits: readonly Edit[], content: string): string {
  let lines: readonly string[] = linesOf(content);
  for (const edit of edits) lines = lines.flatMap(edit);
  return textOfLines(lines);
}

function editOf(script: string, extended: boolean): Edit | undefined {
  const [, address, command = ''] = COMMAND.exec(script) ?? [];
  const where = regularExpression((address ?? '^').replaceAll('\\/', '/'), { extended });
  if (where === undefined) return undefined;
  if (command.trim() === 'd') return (line) => (where.test(line) ? [] : [line]);
  const change = substitutionOf(command, extended);
  return change === undefined ? undefined : (line) => [where.test(line) ? change(line) : line];
}

function substitutionOf(
  command: string,
  extended: boolean,
): ((line: string) => string) | undefined {
  const match = SUBSTITUTION.exec(command);
  if (match === null) return undefined;
  const [, delimiter = '/', from = '', to = '', flags = ''] = match;
  const what = regularExpression(from.replaceAll(`\\${delimiter}`, delimiter), { extended, flags });
  return what === undefined ? undefined : (line) => line.replace(what, replacement(to));
}

/** `\1` and `&` of sed are `$1` and `$&` of ours; a dollar of theirs is just a dollar. */
function replacement(to: string): string {
  return to
    .replaceAll('$', '$$$$')
    .replace(/\\(\d)/g, '$$$1')
    .replace(/(?<!\\)&/g, '$$&')
    .replace(/\\(.)/g, '$1');
}
