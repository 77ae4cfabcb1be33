// SPDX-License-Identifier: Apache-2.0
import type { Problem } from '../config/index.ts';
import { EXTERNAL_CODES } from '../ports/external-codes.ts';
import type { CommandHost } from './context.ts';

/** Says what is wrong with a config, line by line, and ends with the exit code for it. */
export async function tellFaults(host: CommandHost, problems: readonly Problem[]): Promise<void> {
  if (problems.length > 0) {
    const { renderProblems } = await import('../config/index.ts');
    const errors = problems.filter(({ severity }) => severity === 'error').length;
    host.context.err(renderProblems(problems));
    host.context.err(`${errors} ${errors === 1 ? 'error' : 'errors'}; nothing was done.\n`);
  }
  host.exitWith(EXTERNAL_CODES.InvalidConfig.exitCode);
}
