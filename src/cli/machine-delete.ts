// SPDX-License-Identifier: Apache-2.0
import type { Command } from 'commander';
import { withConfigOptions } from './config-options.ts';
import type { CommandHost } from './context.ts';
import { withDrainOptions } from './drain-options.ts';
import { MACHINE_ARGUMENT } from './find-machine.ts';
import { withOutputOption } from './output-option.ts';
import type { DeleteOptions } from './run-machine-delete.ts';
import { withTimeoutOption } from './timeout-option.ts';
import { withFleet } from './with-fleet.ts';

export function addMachineDelete(parent: Command, host: CommandHost): void {
  const command = parent
    .command('delete')
    .description(
      'drain machines and delete them with their VMs, seeds, addresses and Nodes, and wait until they are gone',
    )
    .argument('<machines...>', MACHINE_ARGUMENT);
  withDeleteOptions(command).action((texts: readonly string[], options: DeleteOptions) =>
    withFleet(host, options, {
      access: 'drive',
      checksTokens: false,
      use: async (open) => {
        const { deleteNamed } = await import('./run-machine-delete.ts');
        await deleteNamed(host, open, { texts, options });
      },
    }),
  );
}

export function withDeleteOptions(command: Command): Command {
  withDrainOptions(withTimeoutOption(command)).option(
    '--reason <text>',
    'reason for the journal',
    'requested on the command line',
  );
  return withConfigOptions(withOutputOption(command));
}
