// SPDX-License-Identifier: Apache-2.0
import type { Command } from 'commander';
import { type ConfigOptions, readConfigFor, withConfigOptions } from './config-options.ts';
import type { CommandHost } from './context.ts';
import { tellFaults } from './tell-problems.ts';

export function addServe(parent: Command, host: CommandHost): void {
  withConfigOptions(
    parent
      .command('serve')
      .description('run as a service: drive the fleet, and serve health and metrics'),
  ).action(async (options: ConfigOptions) => {
    const result = await readConfigFor(host.context, options);
    if (!result.ok) return tellFaults(host, result.problems);
    const { renderProblems } = await import('../config/index.ts');
    host.context.err(renderProblems(result.problems));
    const { serve } = await import('./serve/run.ts');
    await serve(host.context, result);
  });
}
