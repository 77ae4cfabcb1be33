// SPDX-License-Identifier: Apache-2.0
// `vm`: VMs created by hand. Each is a machine with a role instead of a pool.
import { type Command, Option } from 'commander';
import { type ConfigOptions, withConfigOptions } from './config-options.ts';
import type { CommandHost } from './context.ts';
import { withDrainOptions } from './drain-options.ts';
import { type OutputOptions, withOutputOption } from './output-option.ts';
import type { VmCreateOptions } from './run-vm-create.ts';
import type { VmDeleteOptions } from './run-vm-delete.ts';
import { withTimeoutOption } from './timeout-option.ts';
import { withFleet } from './with-fleet.ts';

const VM_ARGUMENT = 'name, VM id, machine id, or a unique prefix of name or machine id';

export function addVm(program: Command, host: CommandHost): void {
  const vm = program
    .command('vm')
    .description('create, list, show, delete or log in to single VMs');
  addCreate(vm, host);
  addList(vm, host);
  addShow(vm, host);
  addDelete(vm, host);
  addSsh(vm, host);
  addConsole(vm, host);
}

function addCreate(parent: Command, host: CommandHost): void {
  const command = parent
    .command('create')
    .description('create VMs, and wait until they can be logged in to')
    .requiredOption('--role <role>', 'role, part of the name: master, worker, or any other')
    .option('--size <name>', 'size: a name of sizes in the config (default: small)')
    .option('--cpus <number>', 'vCPUs, instead of those of the size')
    .option('--memory <size>', 'memory, instead of that of the size: 4Gi; a plain number is in MB')
    .option('--disk <size>', 'disk, instead of that of the size: 40Gi; a plain number is in GB')
    .addOption(
      new Option('--network <kind>', 'how the VM gets its address')
        .choices(['dhcp', 'static'])
        .default('dhcp'),
    )
    .option('--ip <address/prefix>', 'static address, as in 10.0.0.5/24')
    .option('--gateway <address>', 'default gateway of a static address')
    .option('--dns <addresses>', 'name servers of a static address, separated by commas')
    .option('--vmid <number>', 'VM id (default: the next free one of the region)')
    .option('--host <name>', 'Proxmox host (default: chosen by --strategy over all hosts)')
    .option('--region <region>', 'region of the config (default: all regions)')
    .addOption(
      new Option(
        '--strategy <name>',
        'how the host is chosen (default: placement of vms in the config)',
      ).choices(['least-vms', 'spread', 'pack', 'most-free']),
    )
    .option('--count <number>', 'number of VMs', '1')
    .option(
      '--from <source>',
      'image, template or netboot; with a name when the config has several: image:NAME, template:NAME (default: vms.from)',
    )
    .addOption(
      new Option('--clone <kind>', 'full or linked clone of a template').choices([
        'full',
        'linked',
      ]),
    )
    .option('--yes', 'build a missing template without asking')
    .option('--dry-run', 'show where the VMs would be created, and create none')
    .option('--reason <text>', 'reason for the journal', 'requested on the command line');
  withConfigOptions(withOutputOption(command)).action((options: VmCreateOptions) =>
    withFleet(host, options, {
      access: 'drive',
      checksTokens: false,
      use: async (open) => {
        const { createVms } = await import('./run-vm-create.ts');
        await createVms(host, open, options);
      },
    }),
  );
}

function addList(parent: Command, host: CommandHost): void {
  const command = parent
    .command('list')
    .description('list VMs created by hand')
    .option('--all', 'include VMs that are gone');
  withConfigOptions(withOutputOption(command)).action(
    (options: ConfigOptions & OutputOptions & { readonly all?: true }) =>
      withFleet(host, options, {
        access: 'read',
        use: async (open) => {
          const { listVms } = await import('./vm-list.ts');
          await listVms(host, open, options);
        },
      }),
  );
}

function addShow(parent: Command, host: CommandHost): void {
  const command = parent
    .command('show')
    .description('show the record and the journal of a VM')
    .argument('<vm>', VM_ARGUMENT);
  withConfigOptions(withOutputOption(command)).action(
    (text: string, options: ConfigOptions & OutputOptions) =>
      withFleet(host, options, {
        access: 'read',
        use: async (open) => {
          const { showVm } = await import('./vm-list.ts');
          await showVm(host, open, { text, options });
        },
      }),
  );
}

function addDelete(parent: Command, host: CommandHost): void {
  const command = withTimeoutOption(
    parent
      .command('delete')
      .description('delete VMs with their disks and addresses, and wait until they are gone')
      .argument('<vms...>', VM_ARGUMENT)
      .option('--force', 'delete one VM that pvescaler did not create; its name must be typed')
      .option('--confirm-name <name>', 'name of that VM, instead of the question')
      .option('--region <region>', 'region of that VM, if several have its name or id')
      .option('--reason <text>', 'reason for the journal', 'requested on the command line'),
  );
  withConfigOptions(withOutputOption(withDrainOptions(command))).action(
    (texts: readonly string[], options: VmDeleteOptions) =>
      withFleet(host, options, {
        access: 'drive',
        checksTokens: false,
        use: async (open) => {
          const { deleteVms } = await import('./run-vm-delete.ts');
          await deleteVms(host, open, { texts, options });
        },
      }),
  );
}

function addSsh(parent: Command, host: CommandHost): void {
  const command = parent
    .command('ssh')
    .description('log in to a VM with the ssh program of this computer')
    .argument('<vm>', VM_ARGUMENT)
    .argument('[command...]', 'command to run in the VM; its options after --');
  withConfigOptions(command).action(
    (text: string, words: readonly string[], options: ConfigOptions) =>
      withFleet(host, options, {
        access: 'view',
        use: async (open) => {
          const { sshToVm } = await import('./vm-access.ts');
          await sshToVm(host, open, { text, words });
        },
      }),
  );
}

function addConsole(parent: Command, host: CommandHost): void {
  const command = parent
    .command('console')
    .description('print the address of the console of a VM in the Proxmox web interface')
    .argument('<vm>', VM_ARGUMENT);
  withConfigOptions(withOutputOption(command)).action(
    (text: string, options: ConfigOptions & OutputOptions) =>
      withFleet(host, options, {
        access: 'read',
        use: async (open) => {
          const { printConsole } = await import('./vm-access.ts');
          await printConsole(host, open, { ...options, text });
        },
      }),
  );
}
