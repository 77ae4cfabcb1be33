// SPDX-License-Identifier: Apache-2.0
import type { Command } from 'commander';
import type { PlannedOnce } from '../autoscaler/index.ts';
import { type ConfigOptions, withConfigOptions } from './config-options.ts';
import type { CommandHost } from './context.ts';
import { withPlan } from './make-plan.ts';
import { type OutputOptions, withOutputOption } from './output-option.ts';
import { printObjects } from './print-objects.ts';
import { writeResult } from './write-result.ts';

interface PlanOptions extends ConfigOptions, OutputOptions {
  readonly all?: true;
  readonly save?: string;
  readonly force?: true;
}

export function addPlan(parent: Command, host: CommandHost): void {
  const command = parent
    .command('plan')
    .description(
      'show what the standalone autoscaler would do now, and why it does not do more; changes nothing',
    );
  withConfigOptions(withOutputOption(command))
    .option('--all', 'show every refusal, not a few of each kind')
    .option('--save <file>', 'write what the plan was made from, for pvescaler replay')
    .option('--force', 'overwrite the file')
    .action((options: PlanOptions) =>
      withPlan(host, options, (planned) => printPlan(host, planned, options)),
    );
}

async function printPlan(
  host: CommandHost,
  { input, decision, objects }: PlannedOnce,
  options: PlanOptions,
): Promise<void> {
  if (options.save !== undefined) {
    const { storeInput } = await import('../scaling/index.ts');
    const { formatStoredPlan } = await import('./stored-plan.ts');
    await writeResult(host.context, formatStoredPlan(storeInput(input, objects)), {
      output: options.save,
      ...(options.force === true && { force: true }),
    });
  }
  const { formatPlan, stepNames } = await import('./format-plan.ts');
  const { plan } = decision;
  await printObjects(host, options, {
    value: plan,
    names: stepNames(plan),
    text: () => formatPlan(plan, { all: options.all === true }),
  });
}
