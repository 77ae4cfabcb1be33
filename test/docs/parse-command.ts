// SPDX-License-Identifier: Apache-2.0
// Parses an invocation of pvescaler with the real command tree, without running it.
import type { Command } from 'commander';
import { buildProgram, type CliContext } from '../../src/cli/index.ts';

/** No command may use its context before its action runs. */
const CONTEXT = new Proxy({} as CliContext, {
  get(_target, name) {
    if (name === 'version') return '0.0.0';
    throw new Error(`parsing a command must not use context.${String(name)}`);
  },
});

/** Resolves with undefined if the arguments are valid, otherwise with the message that a user would see. */
export async function findUsageError(args: readonly string[]): Promise<string | undefined> {
  const errors: string[] = [];
  const program = buildProgram(CONTEXT, () => undefined);
  for (const command of allCommands(program)) {
    command.configureOutput({
      writeOut: () => undefined,
      writeErr: (text) => void errors.push(text),
    });
    // Commands without an action, such as `pool`, need a subcommand.
    if (Reflect.get(command, '_actionHandler') !== null) command.action(() => undefined);
  }
  try {
    await program.parseAsync([...args], { from: 'user' });
    return undefined;
  } catch (error) {
    const isHelp = Reflect.get(Object(error), 'exitCode') === 0;
    return isHelp ? undefined : errors.join('') || String(error);
  }
}

/** The first unknown subcommand or option; values are not checked, so that prose may use NAME and `…`. */
export function findUnknownWord(args: readonly string[]): string | undefined {
  let command: Command = buildProgram(CONTEXT, () => undefined);
  let isPath = true;
  for (const word of args) {
    if (word.startsWith('-')) {
      const [name = ''] = word.split('=');
      if (!hasOption(command, name)) return name;
      continue;
    }
    const child = command.commands.find((one) => one.name() === word);
    if (child !== undefined && isPath) {
      command = child;
      continue;
    }
    const [argument] = command.registeredArguments;
    if (isPath && argument === undefined && command.commands.length > 0) return word;
    if (isPath && argument?.argChoices?.includes(word) === false) return word;
    isPath = false;
  }
  return undefined;
}

function hasOption(command: Command, name: string): boolean {
  if (['-h', '--help'].includes(name)) return true;
  return command.options.some(({ short, long }) => [short, long].includes(name));
}

function allCommands(command: Command): readonly Command[] {
  return [command, ...command.commands.flatMap(allCommands)];
}
