// SPDX-License-Identifier: Apache-2.0
// What may stand at the end of a command line, read from the commands themselves. Nothing at all means that any
// text may stand there: shells then offer files, which is what most such places take.
import type { Command, Option } from 'commander';

export interface Candidate {
  readonly value: string;
  readonly description: string;
}

interface Position {
  readonly command: Command;
  /** The option whose value the last word is. */
  readonly option: Option | undefined;
  /** How many arguments of the command stand before the last word. */
  readonly argument: number;
}

/** `words` are those behind the program's name; the last one is being typed and may be empty. */
export function completionsFor(program: Command, words: readonly string[]): readonly Candidate[] {
  const { before, typed } = split(words);
  const position = positionAfter(program, before);
  return candidatesAt(position, typed)
    .filter(({ value }) => value.startsWith(typed))
    .toSorted((a, b) => (a.value < b.value ? -1 : 1));
}

/** bash takes `--from=x` apart into three words, other shells leave it whole; here it is always two. */
function split(words: readonly string[]): {
  readonly before: readonly string[];
  readonly typed: string;
} {
  const apart = words
    .flatMap((word) => {
      const [, option, value] = /^(--[^=]+)=(.*)$/s.exec(word) ?? [];
      return option === undefined ? [word] : [option, value ?? ''];
    })
    .filter((word, index, all) => word !== '=' || index === all.length - 1);
  const typed = apart.at(-1) ?? '';
  return { before: apart.slice(0, -1), typed: typed === '=' ? '' : typed };
}

function positionAfter(program: Command, words: readonly string[]): Position {
  let position: Position = { command: program, option: undefined, argument: 0 };
  for (const word of words) position = step(position, word);
  return position;
}

function step({ command, option, argument }: Position, word: string): Position {
  if (option !== undefined) return { command, option: undefined, argument };
  if (word.startsWith('-')) {
    const named = visibleOptions(command).find(
      ({ long, short }) => long === word || short === word,
    );
    return { command, option: takesValue(named) ? named : undefined, argument };
  }
  const below = visibleCommands(command).find((child) => child.name() === word);
  return below === undefined
    ? { command, option: undefined, argument: argument + 1 }
    : { command: below, option: undefined, argument: 0 };
}

function candidatesAt(
  { command, option, argument }: Position,
  typed: string,
): readonly Candidate[] {
  if (option !== undefined) return choices(option.argChoices);
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
  return choices(command.registeredArguments[argument]?.argChoices);
}

function choices(values: readonly string[] | undefined): readonly Candidate[] {
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
