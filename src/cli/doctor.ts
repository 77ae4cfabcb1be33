// SPDX-License-Identifier: Apache-2.0
import { type Command, Option } from 'commander';
import {
  type ConfigOptions,
  readConfigFor,
  reportConfigErrors,
  withConfigOptions,
} from './config-options.ts';
import type { CommandHost } from './context.ts';

interface DoctorOptions extends ConfigOptions {
  readonly output?: 'text' | 'json';
  readonly all?: true;
}

export function addDoctor(parent: Command, host: CommandHost): void {
  withConfigOptions(
    parent
      .command('doctor')
      .description(
        'check config, Proxmox and Kubernetes, with a fix for each problem; changes nothing. Exit code 0: all ok, 1: warnings, 2: failures',
      ),
  )
    .addOption(
      new Option('-o, --output <format>', 'format of the report')
        .choices(['text', 'json'])
        .default('text'),
    )
    .option('--all', 'show every check, not only a count of those that are ok')
    .action(async (options: DoctorOptions) => {
      const result = await readConfigFor(host.context, options);
      if (!result.ok) return reportConfigErrors(host, result.problems);
      const { printReport, runDoctor } = await import('./run-doctor.ts');
      printReport(host, await runDoctor(host, result.config, 'all'), options);
    });
}
