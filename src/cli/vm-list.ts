// SPDX-License-Identifier: Apache-2.0
import { formatAge } from '../model/format-text.ts';
import { addressesOf, type Machine } from '../model/machine.ts';
import { isTemplateGroup, roleOf } from '../model/role.ts';
import { InvalidRequest, NotFound } from '../ports/errors.ts';
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

interface VmSearch {
  readonly region?: string | undefined;
  /** Only a VM that exists, by its whole name or id: the text may be that of a VM that is not ours. */
  readonly isExact?: boolean;
}

/** By name, VM id, machine id or the first characters of it. */
export async function findVm(
  open: OpenFleet,
  text: string,
  { region, isExact = false }: VmSearch = {},
): Promise<Machine | undefined> {
  const vms = (await readVms(open)).filter(
    ({ placement }) => region === undefined || placement?.region === region,
  );
  const existing = vms.filter(({ phase }) => phase !== 'gone' && phase !== 'failed');
  const [first, second] = existing.filter(({ placement }) => String(placement?.vmId) === text);
  if (first !== undefined && second !== undefined) {
    throw new InvalidRequest('USAGE', `several regions have a VM ${text}`, {
      hint: 'Give the name of the VM.',
    });
  }
  if (first !== undefined) return first;
  const isNamed = ({ id, placement }: Machine) => id === text || placement?.name === text;
  if (isExact) return existing.find(isNamed);
  // Digits are a VM id, not the beginning of a machine id.
  if (/^\d+$/.test(text)) return vms.find(isNamed);
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
