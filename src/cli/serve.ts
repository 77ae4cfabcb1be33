// SPDX-License-Identifier: Apache-2.0
import type { Command } from 'commander';
import type { ConfigSource } from '../serve/index.ts';
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
    let text: string | undefined;
    const readFile = async (path: string) => {
      text = await context.files.read(path);
      return text;
    };
    const result = await readConfigFor(context, options, { readFile });
    if (!result.ok) return reportConfigErrors(host, result.problems);
    const { locateConfig, renderProblems } = await import('../config/index.ts');
    context.err(renderProblems(result.problems));
    const { serve } = await import('../serve/index.ts');
    const { path } = locateConfig(options.config, context.environment);
    const source: ConfigSource = {
      path,
      readText: () => context.files.read(path),
      load: (read, pools) =>
        readConfigFor(context, options, { readFile: () => Promise.resolve(read), pools }),
    };
    const failure = await serve(context, { loaded: result, text, source });
    if (failure !== undefined) host.exitWith(failure.externalCodes.exitCode);
  });
}
