// SPDX-License-Identifier: Apache-2.0
// `orphans adopt` and `orphans forget`: a person decides whose a VM is that nothing proves to be ours.
import type { Command } from 'commander';
import type { VmDecision } from '../fleet/index.ts';
import { withConfigOptions } from './config-options.ts';
import type { CommandHost } from './context.ts';
import { withOutputOption } from './output-option.ts';
import type { DecideOptions } from './run-orphans-decide.ts';
import { withTimeoutOption } from './timeout-option.ts';
import { withFleet } from './with-fleet.ts';

export function addOrphansAdopt(parent: Command, host: CommandHost): void {
  const command = parent
    .command('adopt')
    .description('make a VM a machine: write the marker that proves that pvescaler may change it')
    .option('--pool <pool>', 'pool of a VM that was never a machine');
  addDecision(command, host, 'adopt');
}

export function addOrphansForget(parent: Command, host: CommandHost): void {
  const command = parent
    .command('forget')
    .description('never change or list a VM again: remove the marker and the tags of pvescaler');
  addDecision(command, host, 'forget');
}

type OrphanDecision = Exclude<VmDecision['kind'], 'destroy'>;

function addDecision(command: Command, host: CommandHost, kind: OrphanDecision): void {
  withTimeoutOption(command)
    .argument('<vmid>', 'id of the VM')
    .option('--region <region>', 'region of the VM, if several have the id')
    .option('--yes', 'do it; without it the VM is only shown');
  withConfigOptions(withOutputOption(command)).action((vmId: string, options: DecideOptions) =>
    withFleet(host, options, {
      access: 'drive',
      checksTokens: false,
      use: async (open) => {
        const { decide } = await import('./run-orphans-decide.ts');
        await decide(host, open, { kind, vmId, options });
      },
    }),
  );
}
