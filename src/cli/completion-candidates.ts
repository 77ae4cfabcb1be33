// SPDX-License-Identifier: Apache-2.0
// Candidates for the last word of a command line, from the command definitions. An empty result means any text; shells
// then offer files.
import type { Command, Option } from 'commander';

export interface Candidate {
  readonly value: string;
  readonly description: string;
}

interface Position {
  readonly command: Command;
  /** Set when the last word is the value of this option. */
  readonly option: Option | undefined;
  /** Number of arguments of the command before the last word. */
  readonly argument: number;
}

/** `words` follow the program's name; the last one is being typed and may be empty. */
export function completionsFor(program: Command, words: readonly string[]): readonly Candidate[] {
  const { before, typed } = splitWords(words);
  const position = findPosition(program, before);
  return listCandidates(position, typed)
    .filter(({ value }) => value.startsWith(typed))
    .toSorted((a, b) => (a.value < b.value ? -1 : 1));
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
  let position: Position = { command: program, option: undefined, argument: 0 };
  for (const word of words) position = advance(position, word);
  return position;
}

function advance({ command, option, argument }: Position, word: string): Position {
  if (option !== undefined) return { command, option: undefined, argument };
  if (word.startsWith('-')) {
    const named = visibleOptions(command).find(
      ({ long, short }) => long === word || short === word,
    );
    return { command, option: takesValue(named) ? named : undefined, argument };
  }
  const child = visibleCommands(command).find((each) => each.name() === word);
  return child === undefined
    ? { command, option: undefined, argument: argument + 1 }
    : { command: child, option: undefined, argument: 0 };
}

function listCandidates(
  { command, option, argument }: Position,
  typed: string,
): readonly Candidate[] {
  if (option !== undefined) return toCandidates(option.argChoices);
  if (typed.startsWith('-')) {
    return visibleOptions(command).map(({ long, short, description }) => ({
      value: long ?? short ?? '',
      description,
    }));
  }
  if (argument === 0 && command.commands.length > 0) {
    return visibleCommands(command).map((child) => ({
      value: child.name(),
      description: child.description(),
    }));
  }
  return toCandidates(command.registeredArguments[argument]?.argChoices);
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
