// SPDX-License-Identifier: Apache-2.0
// `-o, --output`: the format of every command that prints objects. print-objects.ts implements it.
import { type Command, Option } from 'commander';

export const OUTPUT_FORMATS = ['table', 'json', 'yaml', 'name'] as const;

export type OutputFormat = (typeof OUTPUT_FORMATS)[number];

export function isOutputFormat(text: string): boolean {
  return OUTPUT_FORMATS.some((format) => format === text);
}

export interface OutputOptions {
  readonly output?: OutputFormat | undefined;
}

export function withOutputOption(command: Command, format: OutputFormat = 'table'): Command {
  return command
    .addOption(
      new Option('-o, --output <format>', 'format of the result')
        .choices(OUTPUT_FORMATS)
        .default(format),
    )
    .addOption(new Option('--json', 'the same as -o json').implies({ output: 'json' }).hideHelp());
}

/** Whether errors are to be printed as JSON too. Read from the words: they may not be parsable. */
export function wantsJson(args: readonly string[]): boolean {
  const end = args.indexOf('--');
  const options = end === -1 ? args : args.slice(0, end);
  const isJson = (arg: string, at: number) =>
    /^(-o|--output=|-o=)json$/.test(arg) ||
    (/^(-o|--output)$/.test(arg) && options[at + 1] === 'json');
  return options.includes('--json') || options.some(isJson);
}
