// SPDX-License-Identifier: Apache-2.0
// Runs the checks of `doctor` and `config validate --online`, with progress on a terminal, and prints the report.
import type { Config } from '../config/index.ts';
import { type CheckResult, examine, formatReport, reportStatus } from '../doctor/index.ts';
import type { CommandHost } from './context.ts';
import type { OutputOptions } from './output-option.ts';
import { printObjects } from './print-objects.ts';

/** As monitoring plugins use them. */
const EXIT_CODES = { ok: 0, warning: 1, failure: 2 } as const;

/** Sets the exit code. */
export async function runDoctor(
  host: CommandHost,
  config: Config,
  scope: 'all' | 'proxmox',
): Promise<readonly CheckResult[]> {
  const { context } = host;
  const results = await examine(context, config, {
    scope,
    signal: context.signal,
    onProgress: ({ ended, known }) => host.showStatus(`${ended} of ${known} checks`),
  });
  host.showStatus('');
  host.exitWith(EXIT_CODES[reportStatus(results)]);
  return results;
}

export async function printReport(
  host: CommandHost,
  results: readonly CheckResult[],
  { output, all }: OutputOptions & { readonly all?: true },
): Promise<void> {
  await printObjects(
    host,
    { output },
    {
      value: { status: reportStatus(results), checks: results },
      names: [...new Set(results.filter(isProblem).map(({ name }) => name))],
      text: () => formatReport(results, { colors: host.colors.out, all: all === true }),
    },
  );
}

function isProblem({ status }: CheckResult): boolean {
  return status === 'warning' || status === 'failure';
}
