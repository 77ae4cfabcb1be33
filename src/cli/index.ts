// SPDX-License-Identifier: Apache-2.0
// The command line: parses arguments, runs the command, and reports every error with a hint and an exit code.
import { CommanderError } from 'commander';
import { asPvescalerError, type PvescalerError } from '../ports/errors.ts';
import type { CliContext } from './context.ts';
import { wantsJson } from './output-option.ts';
import { buildProgram } from './program.ts';

export type { CliContext, KubernetesSimOptions, ProxmoxSimOptions } from './context.ts';
export { buildProgram } from './program.ts';

const USAGE_EXIT_CODE = 2;

/** Runs one command line (without interpreter and script) and returns the exit code. Never rejects. */
export async function runCli(args: readonly string[], context: CliContext): Promise<number> {
  let exitCode = 0;
  const exitWith = (code: number) => {
    exitCode = code;
  };
  const program = buildProgram(context, exitWith);
  try {
    await program.parseAsync([...args], { from: 'user' });
    return exitCode;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : USAGE_EXIT_CODE;
    return reportError(asPvescalerError(error), { args, context });
  }
}

interface Invocation {
  readonly args: readonly string[];
  readonly context: CliContext;
}

/** Returns the exit code. */
function reportError(error: PvescalerError, { args, context }: Invocation): number {
  if (wantsJson(args)) {
    const { code, hint, message, facts } = error;
    context.err(
      `${JSON.stringify({ error: { class: error.class, code, message, hint, facts } })}\n`,
    );
  } else {
    context.err(`pvescaler: ${error.message}\n  ${error.hint} [${error.code}]\n`);
  }
  if (context.environment['PVESCALER_DEBUG'] === '1') context.err(`${error.stack ?? ''}\n`);
  return error.externalCodes.exitCode;
}
