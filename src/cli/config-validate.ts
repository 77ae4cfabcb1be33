// SPDX-License-Identifier: Apache-2.0

import type { Command } from 'commander';
import type { Config } from '../config/index.ts';
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
    .option(
      '--online',
      'also check Proxmox, as pvescaler doctor does, without Kubernetes; exit code 1 with warnings, 2 with failures',
    )
    .action((file: string | undefined, options: ValidateOptions) => validate(host, options, file));
}

interface ValidateOptions extends ConfigOptions {
  readonly json?: true;
  readonly online?: true;
}

async function validate(
  host: CommandHost,
  options: ValidateOptions,
  file: string | undefined,
): Promise<void> {
  const { context } = host;
  const result = await readConfigFor(context, options, file);
  if (options.json === true) {
    const planned = result.ok ? result.planned : [];
    const online =
      result.ok && options.online === true ? await examineOnline(host, result.config) : undefined;
    const { ok: valid, problems } = result;
    context.out(`${JSON.stringify({ valid, problems, planned, online }, null, 2)}\n`);
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
  if (options.online === true) {
    const checks = await examineOnline(host, result.config);
    const { printReport } = await import('./run-doctor.ts');
    printReport(host, checks, {});
  }
}

async function examineOnline(host: CommandHost, config: Config) {
  const { runDoctor } = await import('./run-doctor.ts');
  return runDoctor(host, config, 'proxmox');
}
