// SPDX-License-Identifier: Apache-2.0
// Errors of the argument parser as errors of pvescaler, with the subcommand that they are about.
import type { Command, CommanderError } from 'commander';
import { InvalidRequest } from '../ports/errors.ts';

/** `pvescaler pool scale`. */
export function commandPath(command: Command): string {
  const { parent } = command;
  return parent === null ? command.name() : `${commandPath(parent)} ${command.name()}`;
}

export function usageError(command: Command, { message }: CommanderError): InvalidRequest {
  const text = message
    .replace(/^error: /, '')
    .replace(/\n\(Did you mean (.*)\?\)$/s, '; did you mean $1?')
    .replace(/^(unknown (?:option|command)) '(.*?)'/, '$1 $2')
    .replace(/ for '[^']*'(?=\. Expected )/, '')
    .replace(/\.$/, '');
  return new InvalidRequest('USAGE', text, { hint: usageHint(command) });
}

export function usageHint(command: Command): string {
  const what = command.commands.length > 0 ? 'the commands' : 'the options and examples';
  return `Run ${commandPath(command)} --help for ${what}.`;
}
