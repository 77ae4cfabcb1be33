// SPDX-License-Identifier: Apache-2.0
// Parses an invocation of pvescaler with the real command tree, without running it.
import type { Command } from 'commander';
import { buildProgram, type CliContext, type ProgramHost } from '../../src/cli/index.ts';

/** No command may use its context before its action runs. */
const CONTEXT = new Proxy({} as CliContext, {
  get(_target, name) {
    if (name === 'version') return '0.0.0';
    throw new Error(`parsing a command must not use context.${String(name)}`);
  },
});

function buildUnusableProgram(): Command {
  const host = { context: CONTEXT, colors: { out: false, err: false }, begin: () => undefined };
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- parsing uses nothing else
  return buildProgram(host as unknown as ProgramHost);
}

/** Resolves with undefined if the arguments are valid, otherwise with the message that a user would see. */
export async function findUsageError(args: readonly string[]): Promise<string | undefined> {
  const errors: string[] = [];
  const program = buildUnusableProgram();
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
  let command: Command = buildUnusableProgram();
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
    if (isPath && !isArgument(command, word)) return word;
    isPath = false;
  }
  return undefined;
}

function isArgument({ registeredArguments, commands }: Command, word: string): boolean {
  const [argument] = registeredArguments;
  return argument === undefined
    ? commands.length === 0
    : argument.argChoices?.includes(word) !== false;
}

function hasOption(command: Command, name: string): boolean {
  if (['-h', '--help'].includes(name)) return true;
  return command.options.some(({ short, long }) => [short, long].includes(name));
}

function allCommands(command: Command): readonly Command[] {
  return [command, ...command.commands.flatMap(allCommands)];
}
