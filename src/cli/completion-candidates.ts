// SPDX-License-Identifier: Apache-2.0
// Candidates for the last word of a command line, from the command definitions; names of pools and machines are read where
// the definition names such a value: <pool>, <machine>, <vm>, <template>. An empty result means any text; shells then offer
// files.
import type { Command, Option } from 'commander';

export interface Candidate {
  readonly value: string;
  readonly description: string;
}

interface Position {
  readonly command: Command;
  /** Set when the last word is the value of this option. */
  readonly option: Option | undefined;
  /** Arguments of the command before the last word. */
  readonly operands: readonly string[];
}

/** Names of objects of that kind. `words` are those before the typed one: they may name the config. */
export type ReadNames = (kind: string, words: readonly string[]) => Promise<readonly string[]>;

/** `words` follow the program's name; the last one is being typed and may be empty. */
export async function completionsFor(
  program: Command,
  words: readonly string[],
  readNames: ReadNames,
): Promise<readonly Candidate[]> {
  const { before, typed } = splitWords(words);
  const position = findPosition(program, before);
  const defined = listCandidates(position, typed);
  const kind = defined.length > 0 ? undefined : kindOfValue(position, typed);
  const named = kind === undefined ? [] : await readNames(kind, before);
  return [...defined, ...toCandidates(named)]
    .filter(({ value }) => value.startsWith(typed))
    .toSorted((a, b) => (a.value < b.value ? -1 : 1));
}

/** The name of the argument or of the option's value. `explain KIND NAME` takes the kind from its first argument. */
function kindOfValue({ command, option, operands }: Position, typed: string): string | undefined {
  if (option !== undefined) return /<(.+?)>/.exec(option.flags)?.[1];
  if (typed.startsWith('-')) return undefined;
  const { registeredArguments } = command;
  const last = registeredArguments.at(-1);
  const found =
    registeredArguments[operands.length] ?? (last?.variadic === true ? last : undefined);
  return found?.name() === 'name' ? operands.at(-1) : found?.name();
}

/** bash splits `--from=x` into three words, other shells keep it whole; here it is always two. */
function splitWords(words: readonly string[]): {
  readonly before: readonly string[];
  readonly typed: string;
} {
  const separated = words
    .flatMap((word) => {
      const [, option, value] = /^(--[^=]+)=(.*)$/s.exec(word) ?? [];
      return option === undefined ? [word] : [option, value ?? ''];
    })
    .filter((word, index, all) => word !== '=' || index === all.length - 1);
  const typed = separated.at(-1) ?? '';
  return { before: separated.slice(0, -1), typed: typed === '=' ? '' : typed };
}

function findPosition(program: Command, words: readonly string[]): Position {
  let position: Position = { command: program, option: undefined, operands: [] };
  for (const word of words) position = advance(position, word);
  return position;
}

function advance({ command, option, operands }: Position, word: string): Position {
  if (option !== undefined) return { command, option: undefined, operands };
  if (word.startsWith('-')) {
    const named = visibleOptions(command).find(
      ({ long, short }) => long === word || short === word,
    );
    return { command, option: takesValue(named) ? named : undefined, operands };
  }
  const child = visibleCommands(command).find((each) => each.name() === word);
  return child === undefined
    ? { command, option: undefined, operands: [...operands, word] }
    : { command: child, option: undefined, operands: [] };
}

function listCandidates(
  { command, option, operands }: Position,
  typed: string,
): readonly Candidate[] {
  if (option !== undefined) return toCandidates(option.argChoices);
  if (typed.startsWith('-')) {
    return visibleOptions(command).map(({ long, short, description }) => ({
      value: long ?? short ?? '',
      description,
    }));
  }
  if (operands.length === 0 && command.commands.length > 0) {
    return visibleCommands(command).map((child) => ({
      value: child.name(),
      description: child.description(),
    }));
  }
  return toCandidates(command.registeredArguments[operands.length]?.argChoices);
}

function toCandidates(values: readonly string[] | undefined): readonly Candidate[] {
  return (values ?? []).map((value) => ({ value, description: '' }));
}

function takesValue(option: Option | undefined): boolean {
  return option?.required === true || option?.optional === true;
}

function visibleOptions(command: Command): readonly Option[] {
  return command.createHelp().visibleOptions(command);
}

function visibleCommands(command: Command): readonly Command[] {
  return command.createHelp().visibleCommands(command);
}
