// SPDX-License-Identifier: Apache-2.0
import type { VmDecision } from '../fleet/index.ts';
import { type Machine, mayHaveVm } from '../model/machine.ts';
import { roleOf } from '../model/role.ts';
import { InvalidRequest, NotFound, NotOwned } from '../ports/errors.ts';
import type { VmConfig, VmSummary } from '../ports/hypervisor.ts';
import type { OpenFleet } from '../setup/index.ts';
import type { CommandHost } from './context.ts';
import { printObjects } from './print-objects.ts';
import { type DeleteOptions, deleteMachines, requireNoVmLeftBehind } from './run-machine-delete.ts';
import { parseTimeoutMs } from './timeout-option.ts';
import { findVm } from './vm-list.ts';

export interface VmDeleteOptions extends DeleteOptions {
  readonly force?: true;
  readonly confirmName?: string;
  readonly region?: string;
}

interface DeleteRequest {
  readonly texts: readonly string[];
  readonly options: VmDeleteOptions;
}

export async function deleteVms(
  host: CommandHost,
  open: OpenFleet,
  { texts, options }: DeleteRequest,
): Promise<void> {
  const { region, force, confirmName } = options;
  const find = (text: string) =>
    findVm(open, text, { region, isExact: force === true || confirmName !== undefined });
  for (const text of texts) {
    if ((await find(text)) !== undefined) continue;
    const foreign = await requireForeign(open, text, options);
    if (options.force !== true) throw notOurs(foreign);
    if (texts.length > 1) throw usage('--force is for one VM that is not ours, not for several');
    return deleteForeign(host, open, { foreign, options });
  }
  const select = async () => {
    const found = await Promise.all(texts.map(find));
    return found.filter((vm) => vm !== undefined);
  };
  const ids = await deleteMachines(host, open, {
    regions: regionsOf(open, await select()),
    select,
    options,
  });
  await requireNoVmLeftBehind(open, ids);
}

function regionsOf({ config }: OpenFleet, vms: readonly Machine[]): readonly string[] {
  const regions = new Set(vms.map(({ placement }) => placement?.region));
  return Object.keys(config.regions).filter((region) => regions.has(region));
}

interface ForeignVm extends VmSummary {
  readonly region: string;
}

/** The VM that has that name or id, if it is no machine. */
async function requireForeign(
  open: OpenFleet,
  text: string,
  { region }: VmDeleteOptions,
): Promise<ForeignVm> {
  const { machines } = await open.fleet.status();
  const ofPool = machines.find(
    ({ id, pool, placement, phase }) =>
      roleOf(pool) === undefined &&
      mayHaveVm(phase) &&
      (region ?? placement?.region) === placement?.region &&
      [id, placement?.name, String(placement?.vmId)].includes(text),
  );
  if (ofPool !== undefined) {
    throw new NotOwned('VM_NOT_OWNED', `${text} is a machine of pool ${ofPool.pool}`, {
      hint: `Delete it with pvescaler machine delete ${ofPool.placement?.name ?? ofPool.id}.`,
    });
  }
  const all = await findOnProxmox(open, text);
  const [first, second] = all.filter((vm) => vm.region === (region ?? vm.region));
  if (first === undefined) {
    throw new NotFound('VM_NOT_FOUND', `no VM has the name or id '${text}'`, {
      hint: 'pvescaler vm list lists the VMs created by hand.',
    });
  }
  if (second === undefined) return first;
  const places = all.map((vm) => `VM ${vm.vmId} on ${vm.host} (region ${vm.region})`).join(', ');
  throw usage(`several VMs have the name or id '${text}': ${places}; give the VM id, or --region`);
}

function describe({ vmId, host, name }: Pick<VmConfig, 'vmId' | 'host' | 'name'>): string {
  return `VM ${vmId} (${name ?? 'without a name'}) on ${host}`;
}

function notOurs(vm: ForeignVm): NotOwned {
  return new NotOwned(
    'VM_NOT_OWNED',
    `${describe(vm)} was not created by pvescaler for this cluster`,
    {
      hint: `It is not deleted. With --force it is, once its name is typed.`,
    },
  );
}

async function findOnProxmox(
  { hypervisors }: OpenFleet,
  text: string,
): Promise<readonly ForeignVm[]> {
  const views = await Promise.all([...hypervisors.values()].map((region) => region.view()));
  return views
    .flatMap(({ vms, region }) => vms.map((vm) => ({ ...vm, region })))
    .filter(({ vmId, name }) => String(vmId) === text || name === text);
}

interface ForeignDeletion {
  readonly foreign: ForeignVm;
  readonly options: VmDeleteOptions;
}

async function deleteForeign(
  host: CommandHost,
  open: OpenFleet,
  { foreign, options }: ForeignDeletion,
): Promise<void> {
  const { vmId, region } = foreign;
  const plan = await open.fleet.planVmDecision({ kind: 'destroy', vmId, region });
  await requireTypedName(host, plan, options);
  const { carryOutDecision } = await import('./run-orphans-decide.ts');
  await carryOutDecision(host, open, { plan, timeoutMs: parseTimeoutMs(options) });
  const { host: at, name } = plan.vm;
  await printObjects(host, options, {
    value: [{ region, host: at, vmId, name }],
    names: [name ?? String(vmId)],
    text: () => `${describe(plan.vm)} is gone\n`,
  });
}

async function requireTypedName(
  { context }: CommandHost,
  { vm, region }: VmDecision,
  { confirmName }: VmDeleteOptions,
): Promise<void> {
  const expected = vm.name ?? String(vm.vmId);
  const what = vm.name === undefined ? 'VM id' : 'name';
  const question = `${describe(vm)} in region ${region} was not created by pvescaler for this cluster. It is stopped and deleted with its disks.\nType its ${what} to delete it: `;
  const typed = confirmName ?? (await context.adapters.ask(question));
  if (typed === expected) return;
  const why = typed === undefined ? 'its name was not typed' : `'${typed}' is not its ${what}`;
  throw new NotOwned('VM_NOT_OWNED', `${describe(vm)} is not deleted: ${why}`, {
    hint: `Type its ${what}, or give it with --confirm-name.`,
  });
}

function usage(message: string): InvalidRequest {
  return new InvalidRequest('USAGE', message, {
    hint: 'Run pvescaler vm delete --help for all options.',
  });
}
