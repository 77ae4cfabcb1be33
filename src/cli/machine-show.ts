// SPDX-License-Identifier: Apache-2.0
import type { Command } from 'commander';
import { type ConfigOptions, withConfigOptions } from './config-options.ts';
import type { CommandHost } from './context.ts';
import { findMachine, MACHINE_ARGUMENT } from './find-machine.ts';
import { type OutputOptions, withOutputOption } from './output-option.ts';
import { withFleet } from './with-fleet.ts';

export function addMachineShow(parent: Command, host: CommandHost): void {
  const command = parent
    .command('show')
    .description('show the record and the journal of a machine')
    .argument('<machine>', MACHINE_ARGUMENT);
  withConfigOptions(withOutputOption(command)).action(
    (text: string, options: ConfigOptions & OutputOptions) =>
      withFleet(host, options, {
        access: 'read',
        use: async (open) => {
          const machine = await findMachine(open, text);
          const { showMachine } = await import('./run-machine-show.ts');
          await showMachine(host, open, { machine, output: options.output });
        },
      }),
  );
}
