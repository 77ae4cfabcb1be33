// SPDX-License-Identifier: Apache-2.0
import type { Command } from 'commander';
import type { Plan } from '../scaling/index.ts';
import { type ConfigOptions, withConfigOptions } from './config-options.ts';
import type { CommandHost } from './context.ts';
import { withPlan } from './with-plan.ts';

interface PlanOptions extends ConfigOptions {
  readonly save?: string;
  readonly json?: true;
}

export function addPlan(parent: Command, host: CommandHost): void {
  withConfigOptions(
    parent
      .command('plan')
      .description(
        'print what the standalone autoscaler would do now and what it refuses, without doing it',
      )
      .option('--save <file>', 'write what the plan was made from, for pvescaler replay')
      .option('--json', 'print JSON'),
  ).action((options: PlanOptions) =>
    withPlan(host, options, async ({ decision, stored }) => {
      if (options.save !== undefined) {
        const { canonicalJson } = await import('../scaling/index.ts');
        const { files } = host.context;
        await files.write(options.save, `${canonicalJson(stored)}\n`, { overwrite: true });
      }
      host.context.out(formatPlan(decision.plan, options));
    }),
  );
}

export function formatPlan(plan: Plan, { json }: { readonly json?: true }): string {
  if (json === true) return `${JSON.stringify(plan, null, 2)}\n`;
  const { pending, fitExisting, fitProvisioning, fitNew, unplaced, unneeded } = plan.counts;
  const lines = [
    `${pending} pending pods: ${fitExisting} fit on nodes, ${fitProvisioning} on machines being provisioned, ${fitNew} on new machines, ${unplaced} nowhere`,
    `${unneeded} unneeded machines`,
    ...plan.steps.map(({ kind, reason }) => `${kind.padEnd(7)} ${reason}`),
    ...(plan.steps.length === 0 ? ['nothing to do'] : []),
    ...plan.refusals.map(({ code, reason }) => `refused ${reason} (${code})`),
  ];
  return `${lines.join('\n')}\n`;
}
