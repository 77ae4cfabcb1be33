// SPDX-License-Identifier: Apache-2.0
import type { Command } from 'commander';
import type { PlannedOnce } from '../autoscaler/index.ts';
import { type ConfigOptions, withConfigOptions } from './config-options.ts';
import type { CommandHost } from './context.ts';
import { withPlan } from './make-plan.ts';
import { writeResult } from './write-result.ts';

interface PlanOptions extends ConfigOptions {
  readonly json?: true;
  readonly all?: true;
  readonly save?: string;
  readonly force?: true;
}

export function addPlan(parent: Command, host: CommandHost): void {
  withConfigOptions(
    parent
      .command('plan')
      .description(
        'show what the standalone autoscaler would do now, and why it does not do more; changes nothing',
      ),
  )
    .option('--json', 'print JSON')
    .option('--all', 'show every refusal, not a few of each kind')
    .option('--save <file>', 'write what the plan was made from, for pvescaler replay')
    .option('--force', 'overwrite the file')
    .action((options: PlanOptions) =>
      withPlan(host, options, (planned) => printPlan(host, planned, options)),
    );
}

async function printPlan(
  { context }: CommandHost,
  { input, decision, objects }: PlannedOnce,
  options: PlanOptions,
): Promise<void> {
  if (options.save !== undefined) {
    const { storeInput } = await import('../scaling/index.ts');
    const { formatStoredPlan } = await import('./stored-plan.ts');
    await writeResult(context, formatStoredPlan(storeInput(input, objects)), {
      output: options.save,
      ...(options.force === true && { force: true }),
    });
  }
  const { formatPlan } = await import('./format-plan.ts');
  const { plan } = decision;
  context.out(
    options.json === true
      ? `${JSON.stringify(plan, null, 2)}\n`
      : formatPlan(plan, { all: options.all === true }),
  );
}
