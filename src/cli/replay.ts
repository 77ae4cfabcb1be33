// SPDX-License-Identifier: Apache-2.0
import type { Command } from 'commander';
import type { CommandHost } from './context.ts';
import { type OutputOptions, withOutputOption } from './output-option.ts';
import { printObjects } from './print-objects.ts';

interface ReplayOptions extends OutputOptions {
  readonly all?: true;
}

export function addReplay(parent: Command, host: CommandHost): void {
  const command = parent
    .command('replay')
    .description('make the plan again from a file of pvescaler plan --save')
    .argument('<file>', 'the file');
  withOutputOption(command)
    .option('--all', 'show every refusal, not a few of each kind')
    .action(async (file: string, options: ReplayOptions) => {
      const { decide, restoreInput } = await import('../scaling/index.ts');
      const { readStoredPlan } = await import('./stored-plan.ts');
      const { plan } = decide(restoreInput(await readStoredPlan(host.context, file)));
      const { formatPlan, stepNames } = await import('./format-plan.ts');
      await printObjects(host, options, {
        value: plan,
        names: stepNames(plan),
        text: () => formatPlan(plan, { all: options.all === true }),
      });
    });
}
