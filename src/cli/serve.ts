// SPDX-License-Identifier: Apache-2.0
import type { Command } from 'commander';
import {
  type ConfigOptions,
  readConfigFor,
  reportConfigErrors,
  withConfigOptions,
} from './config-options.ts';
import type { CommandHost } from './context.ts';

export function addServe(parent: Command, host: CommandHost): void {
  withConfigOptions(
    parent
      .command('serve')
      .description('run the daemon: drive the fleet, and serve health, metrics and gRPC'),
  ).action(async (options: ConfigOptions) => {
    const { context } = host;
    const result = await readConfigFor(context, options);
    if (!result.ok) return reportConfigErrors(host, result.problems);
    const { renderProblems } = await import('../config/index.ts');
    context.err(renderProblems(result.problems));
    const { serve } = await import('../serve/index.ts');
    const failure = await serve(context, result);
    if (failure !== undefined) host.exitWith(failure.externalCodes.exitCode);
  });
}
