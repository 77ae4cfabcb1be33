// SPDX-License-Identifier: Apache-2.0

import type { Command } from 'commander';
import { formatCount } from '../model/format-text.ts';
import {
  type ConfigOptions,
  readConfigFor,
  reportConfigErrors,
  withConfigOptions,
} from './config-options.ts';
import type { CommandHost } from './context.ts';

export function addConfigValidate(parent: Command, host: CommandHost): void {
  withConfigOptions(
    parent
      .command('validate')
      .description('check a config file and list all its problems')
      .argument('[file]', 'config file, as --config'),
  )
    .option('--json', 'print JSON')
    .action((file: string | undefined, options: ConfigOptions & { readonly json?: true }) =>
      validate(host, options, file),
    );
}

async function validate(
  host: CommandHost,
  options: ConfigOptions & { readonly json?: true },
  file: string | undefined,
): Promise<void> {
  const { context } = host;
  const result = await readConfigFor(context, options, file);
  if (options.json === true) {
    const planned = result.ok ? result.planned : [];
    context.out(
      `${JSON.stringify({ valid: result.ok, problems: result.problems, planned }, null, 2)}\n`,
    );
    if (!result.ok) await reportConfigErrors(host, []);
    return;
  }
  if (!result.ok) return reportConfigErrors(host, result.problems);
  const { describePlannedKey, renderProblems } = await import('../config/index.ts');
  context.err(renderProblems(result.problems));
  const { pools, regions } = result.config;
  context.out(
    `valid: ${formatCount(pools.length, 'pool')} in ${formatCount(Object.keys(regions).length, 'region')}\n`,
  );
  for (const key of result.planned) context.err(`warning: ${describePlannedKey(key)}\n`);
}
