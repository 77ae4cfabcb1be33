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

interface DoctorOptions extends ConfigOptions, OutputOptions {
  readonly all?: true;
}

export function addDoctor(parent: Command, host: CommandHost): void {
  const command = parent
    .command('doctor')
    .description(
      'check config, Proxmox and Kubernetes, with a fix for each problem; changes nothing. Exit code 0: all ok, 1: warnings, 2: failures',
    );
  withConfigOptions(withOutputOption(command))
    .option('--all', 'show every check, not only a count of those that are ok')
    .action(async (options: DoctorOptions) => {
      const file = await readConfigFor(host.context, options);
      if (!file.ok) return reportConfigErrors(host, file.problems);
      const { withPoolObjects } = await import('./with-pool-objects.ts');
      // Without the pools of objects when they cannot be read, which checks report.
      const result = await withPoolObjects(host.context, options, file).catch(() => file);
      if (!result.ok) return reportConfigErrors(host, result.problems);
      const { printReport, runDoctor } = await import('./run-doctor.ts');
      await printReport(host, await runDoctor(host, result.config, 'all'), options);
    });
}
