// SPDX-License-Identifier: Apache-2.0
import { type Command, Option } from 'commander';

export interface OutputOptions {
  readonly output?: 'json' | undefined;
}

export function withOutputOption(command: Command): Command {
  return command.addOption(new Option('-o, --output <format>', 'print JSON').choices(['json']));
}

/** Whether errors are to be printed as JSON too. */
export function wantsJson(args: readonly string[]): boolean {
  const isJson = (arg: string, at: number) =>
    /^(-o|--output=|-o=)json$/.test(arg) ||
    (/^(-o|--output)$/.test(arg) && args[at + 1] === 'json');
  return args.includes('--json') || args.some(isJson);
}
