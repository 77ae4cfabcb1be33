// SPDX-License-Identifier: Apache-2.0

import type { Command } from 'commander';
import type { Config } from '../config/index.ts';
import { formatCount } from '../model/format-text.ts';
import { EXTERNAL_CODES } from '../ports/external-codes.ts';
import {
  type ConfigOptions,
  readConfigFor,
  reportConfigErrors,
  withConfigOptions,
} from './config-options.ts';
import type { CommandHost } from './context.ts';
import { type OutputOptions, withOutputOption } from './output-option.ts';
import { printObjects } from './print-objects.ts';

export function addConfigValidate(parent: Command, host: CommandHost): void {
  const command = parent
    .command('validate')
    .description('check a config file and list all its problems')
    .argument('[file]', 'config file, as --config');
  withConfigOptions(withOutputOption(command))
    .option(
      '--online',
      'also check Proxmox, as pvescaler doctor does, without Kubernetes; exit code 1 with warnings, 2 with failures',
    )
    .action((file: string | undefined, options: ValidateOptions) => validate(host, options, file));
}

interface ValidateOptions extends ConfigOptions, OutputOptions {
  readonly online?: true;
}

async function validate(
  host: CommandHost,
  options: ValidateOptions,
  file: string | undefined,
): Promise<void> {
  const { context } = host;
  const result = await readConfigFor(context, options, { file });
  if (options.output !== 'table') {
    const planned = result.ok ? result.planned : [];
    const online =
      result.ok && options.online === true ? await examineOnline(host, result.config) : undefined;
    const { ok: valid, problems } = result;
    if (!valid) host.exitWith(EXTERNAL_CODES.InvalidConfig.exitCode);
    return printObjects(host, options, {
      value: { valid, problems, planned, online },
      names: problems.map(({ path }) => path),
      text: () => '',
    });
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
    await printReport(host, checks, {});
  }
}

async function examineOnline(host: CommandHost, config: Config) {
  const { runDoctor } = await import('./run-doctor.ts');
  return runDoctor(host, config, 'proxmox');
}
