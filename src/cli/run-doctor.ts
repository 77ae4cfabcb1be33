// SPDX-License-Identifier: Apache-2.0
// Runs the checks of `doctor` and `config validate --online`, with progress on a terminal, and prints the report.
import type { Config } from '../config/index.ts';
import { type CheckResult, examine, formatReport, reportStatus } from '../doctor/index.ts';
import type { CommandHost } from './context.ts';

/** As monitoring plugins use them. */
const EXIT_CODES = { ok: 0, warning: 1, failure: 2 } as const;
const CLEAR_LINE = '\r\u001b[K';

/** Sets the exit code. */
export async function runDoctor(
  host: CommandHost,
  config: Config,
  scope: 'all' | 'proxmox',
): Promise<readonly CheckResult[]> {
  const { context } = host;
  const { err } = context.isTerminal;
  const results = await examine(context, config, {
    scope,
    signal: context.signal,
    onProgress: ({ ended, known }) => {
      if (err) context.err(`${CLEAR_LINE}${ended} of ${known} checks`);
    },
  });
  if (err) context.err(CLEAR_LINE);
  host.exitWith(EXIT_CODES[reportStatus(results)]);
  return results;
}

export function printReport(
  { context }: CommandHost,
  results: readonly CheckResult[],
  { output, all }: { readonly output?: 'text' | 'json'; readonly all?: true },
): void {
  const colors = context.isTerminal.out && (context.environment['NO_COLOR'] ?? '') === '';
  context.out(
    output === 'json'
      ? `${JSON.stringify({ status: reportStatus(results), checks: results }, null, 2)}\n`
      : formatReport(results, { colors, all: all === true }),
  );
}
