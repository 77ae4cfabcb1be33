// SPDX-License-Identifier: Apache-2.0
import type { Command } from 'commander';
import {
  type ConfigOptions,
  readConfigFor,
  reportConfigErrors,
  withConfigOptions,
} from './config-options.ts';
import type { CommandHost } from './context.ts';
import { type OutputOptions, withOutputOption } from './output-option.ts';
import { printObjects } from './print-objects.ts';

export function addConfigShow(parent: Command, host: CommandHost): void {
  const command = parent
    .command('show')
    .description('print the effective config with the origin of every value; secrets are masked')
    .argument('[file]', 'config file, as --config');
  withConfigOptions(withOutputOption(command, 'yaml')).action(
    async (file: string | undefined, options: ConfigOptions & OutputOptions) => {
      const { context } = host;
      const result = await readConfigFor(context, options, { file });
      if (!result.ok) return reportConfigErrors(host, result.problems);
      const { describeOrigin, renderConfigJson, renderConfigYaml, renderProblems } = await import(
        '../config/index.ts'
      );
      context.err(renderProblems(result.problems));
      if (options.output === 'yaml') return context.out(renderConfigYaml(result));
      const value = renderConfigJson(result);
      const rows = Object.entries(value).map(([path, one]) => [
        path,
        JSON.stringify(one.value),
        describeOrigin(one.origin),
      ]);
      await printObjects(host, options, {
        value,
        names: Object.keys(value),
        text: (format) => format.table(['KEY', 'VALUE', 'ORIGIN'], rows),
      });
    },
  );
}
