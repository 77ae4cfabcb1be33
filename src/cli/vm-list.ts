// SPDX-License-Identifier: Apache-2.0
import { formatAge } from '../model/format-text.ts';
import { addressesOf, type Machine } from '../model/machine.ts';
import { isTemplateGroup, roleOf } from '../model/role.ts';
import { NotFound } from '../ports/errors.ts';
import type { OpenFleet } from '../setup/index.ts';
import type { CommandHost } from './context.ts';
import { findMachineIn } from './find-machine.ts';
import { displayName } from './format-machines.ts';
import type { OutputOptions } from './output-option.ts';
import { printObjects } from './print-objects.ts';
import { showMachine } from './run-machine-show.ts';

/** Hand-made VMs; templates have commands of their own. */
export async function readVms({ fleet }: OpenFleet): Promise<readonly Machine[]> {
  const { machines } = await fleet.status();
  return machines.filter(({ pool }) => roleOf(pool) !== undefined && !isTemplateGroup(pool));
}

/** By name, VM id, machine id or the first characters of it. */
export async function findVm(open: OpenFleet, text: string): Promise<Machine | undefined> {
  const vms = await readVms(open);
  const byVmId = vms.filter(
    ({ placement, phase }) =>
      String(placement?.vmId) === text && phase !== 'gone' && phase !== 'failed',
  );
  if (byVmId[0] !== undefined) return byVmId[0];
  try {
    return findMachineIn(vms, text);
  } catch (error) {
    if (error instanceof NotFound) return undefined;
    throw error;
  }
}

export async function requireVm(open: OpenFleet, text: string): Promise<Machine> {
  const vm = await findVm(open, text);
  if (vm !== undefined) return vm;
  throw new NotFound('MACHINE_NOT_FOUND', `no VM created by hand has the name or id '${text}'`, {
    hint: 'pvescaler vm list --all lists them; pvescaler machines lists the machines of pools.',
  });
}

export async function listVms(
  host: CommandHost,
  open: OpenFleet,
  { all, output }: OutputOptions & { readonly all?: true },
): Promise<void> {
  const vms = (await readVms(open)).filter(({ phase }) => all === true || phase !== 'gone');
  const now = host.context.clock.now();
  const rows = vms.map((vm) => {
    const { pool, placement, phase, phaseSince, missingSince, failure } = vm;
    return [
      displayName(vm),
      roleOf(pool) ?? '',
      missingSince === undefined ? phase : 'missing',
      formatAge(now - phaseSince),
      placement?.host ?? '-',
      placement === undefined ? '-' : String(placement.vmId),
      addressesOf(vm).join(',') || '-',
      failure?.message ?? '',
    ];
  });
  const head = ['NAME', 'ROLE', 'PHASE', 'SINCE', 'NODE', 'VM', 'ADDRESS', 'REASON'];
  await printObjects(
    host,
    { output },
    {
      value: vms,
      names: vms.map(displayName),
      text: (format) => format.table(head, rows),
    },
  );
}

export async function showVm(
  host: CommandHost,
  open: OpenFleet,
  { text, options }: { readonly text: string; readonly options: OutputOptions },
): Promise<void> {
  const machine = await requireVm(open, text);
  await showMachine(host, open, { machine, output: options.output });
}
