// SPDX-License-Identifier: Apache-2.0
import type { Command } from 'commander';
import type { CommandHost } from './context.ts';

interface ReplayOptions {
  readonly json?: true;
  readonly all?: true;
}

export function addReplay(parent: Command, host: CommandHost): void {
  parent
    .command('replay')
    .description('make the plan again from a file of pvescaler plan --save')
    .argument('<file>', 'the file')
    .option('--json', 'print JSON')
    .option('--all', 'show every refusal, not a few of each kind')
    .action(async (file: string, options: ReplayOptions) => {
      const { decide, restoreInput } = await import('../scaling/index.ts');
      const { readStoredPlan } = await import('./stored-plan.ts');
      const { plan } = decide(restoreInput(await readStoredPlan(host.context, file)));
      const { formatPlan } = await import('./format-plan.ts');
      host.context.out(
        options.json === true
          ? `${JSON.stringify(plan, null, 2)}\n`
          : formatPlan(plan, { all: options.all === true }),
      );
    });
}
