// SPDX-License-Identifier: Apache-2.0
import type { Command } from 'commander';
import { type ConfigOptions, readConfigFor, withConfigOptions } from './config-options.ts';
import type { CommandHost } from './context.ts';
import { tellFaults } from './tell-problems.ts';

export function addConfigShow(parent: Command, host: CommandHost): void {
  withConfigOptions(
    parent
      .command('show')
      .description(
        'print the effective config: every value, and where it came from; secrets are masked',
      )
      .argument('[file]', 'the config file, as --config'),
  )
    .option('--json', 'an object of path → { value, origin }')
    .action(async (file: string | undefined, options: ConfigOptions & { readonly json?: true }) => {
      const { context } = host;
      const result = await readConfigFor(context, options, file);
      if (!result.ok) return tellFaults(host, result.problems);
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
