// SPDX-License-Identifier: Apache-2.0
// The command line: parses arguments, runs the command, and reports every error with a hint and an exit code.
import { CommanderError } from 'commander';
import { asPvescalerError } from '../ports/errors.ts';
import type { CliContext } from './context.ts';
import { Invocation } from './invocation.ts';
import { buildProgram } from './program.ts';

export type {
  CliContext,
  KubernetesSimOptions,
  ProgramHost,
  ProxmoxSimOptions,
} from './context.ts';
export { EXAMPLES, FIRST_EXAMPLES } from './examples.ts';
export { buildProgram } from './program.ts';

const USAGE_EXIT_CODE = 2;

/** Runs one command line (without interpreter and script) and returns the exit code. Never rejects. */
export async function runCli(args: readonly string[], context: CliContext): Promise<number> {
  const invocation = new Invocation(context, args);
  const program = buildProgram(invocation);
  try {
    await program.parseAsync([...args], { from: 'user' });
    return invocation.exitCode;
  } catch (error) {
    // Help or the version was printed.
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : USAGE_EXIT_CODE;
    return invocation.reportError(asPvescalerError(error));
  } finally {
    invocation.showStatus('');
  }
}
