// SPDX-License-Identifier: Apache-2.0
import type { Command } from 'commander';
import {
  type ConfigOptions,
  readConfigFor,
  reportConfigErrors,
  withConfigOptions,
} from './config-options.ts';
import type { CommandHost } from './context.ts';

export function addConfigShow(parent: Command, host: CommandHost): void {
  withConfigOptions(
    parent
      .command('show')
      .description('print the effective config with the origin of every value; secrets are masked')
      .argument('[file]', 'config file, as --config'),
  )
    .option('--json', 'print a JSON object of path → { value, origin }')
    .action(async (file: string | undefined, options: ConfigOptions & { readonly json?: true }) => {
      const { context } = host;
      const result = await readConfigFor(context, options, file);
      if (!result.ok) return reportConfigErrors(host, result.problems);
      const { renderConfigJson, renderConfigYaml, renderProblems } = await import(
        '../config/index.ts'
      );
      context.err(renderProblems(result.problems));
      context.out(
        options.json === true
          ? `${JSON.stringify(renderConfigJson(result), null, 2)}\n`
          : renderConfigYaml(result),
      );
    });
}
