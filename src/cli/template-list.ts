// SPDX-License-Identifier: Apache-2.0
// Templates by host: those that pvescaler built or builds, and those of the config that were made by other means.
import type { Config, TemplateConfig } from '../config/index.ts';
import type { Machine } from '../model/machine.ts';
import {
  isBuiltTemplate,
  isNamedTemplate,
  isTemplateGroup,
  templateVersionOf,
} from '../model/role.ts';
import { InvalidRequest, PvescalerError } from '../ports/errors.ts';
import type { Hypervisor, RegionView, VmSummary } from '../ports/hypervisor.ts';
import type { OpenFleet } from '../setup/index.ts';
import type { CommandHost } from './context.ts';
import type { OutputOptions } from './output-option.ts';
import { printObjects, type TableFormat } from './print-objects.ts';

export interface TemplateVm {
  /** In the config. */
  readonly template: string;
  /** 0: made by other means, or by another cluster. */
  readonly version: number;
  readonly region: string;
  readonly host: string;
  readonly vmId: number;
  readonly name: string;
  /** VMs whose disks need it. */
  readonly linkedClones: number;
  /** VMs that cannot be read now, and may be linked clones. */
  readonly unreadVms: number;
  readonly machine: Machine | undefined;
}

/** Names the template, or takes the only one that can be built. */
export function chooseTemplate({ templates }: Config, name: string | undefined): TemplateConfig {
  const all = Object.values(templates);
  const buildable = all.filter(({ image }) => image !== undefined);
  const found = name === undefined ? buildable : all.filter(({ key }) => key === name);
  const [first, second] = found;
  if (first !== undefined && second === undefined) return first;
  const names = buildable.map(({ key }) => key).join(', ') || 'none';
  const message =
    name === undefined
      ? `name a template: the config has ${names} that can be built`
      : `the config has no template ${name}; it has ${Object.keys(templates).join(', ') || 'none'}`;
  throw new InvalidRequest('USAGE', message, {
    hint: "Add it to 'templates' of the config, with an image of 'images'.",
  });
}

export async function readTemplateVms({
  config,
  fleet,
  hypervisors,
}: OpenFleet): Promise<readonly TemplateVm[]> {
  const { machines } = await fleet.status();
  const found = await Promise.all(
    [...hypervisors.values()].map(async (hypervisor) => {
      const view = await hypervisor.view();
      const bases = await readBases(hypervisor, view);
      return view.vms
        .filter(({ isTemplate }) => isTemplate)
        .flatMap((vm) => toTemplateVm(config, { view, vm, bases, machines }));
    }),
  );
  return found.flat();
}

interface Bases {
  /** The template of each linked clone. */
  readonly vmIds: readonly (number | undefined)[];
  readonly unread: number;
}

/** A VM on a host that is down cannot be read, and one that is being cloned does not name its template yet. */
async function readBases(hypervisor: Hypervisor, { vms }: RegionView): Promise<Bases> {
  const clones = vms.filter(({ isTemplate }) => !isTemplate);
  const configs = await Promise.all(
    clones.map((vm) =>
      hypervisor.vmConfig(vm).catch((error: unknown) => {
        if (error instanceof PvescalerError) return undefined;
        throw error;
      }),
    ),
  );
  const read = configs
    .filter((config) => config !== undefined)
    .filter((one) => !one.isBeingCreated);
  return {
    vmIds: read.map(({ bootDisk }) => bootDisk?.baseVmId),
    unread: configs.length - read.length,
  };
}

interface Found {
  readonly view: RegionView;
  readonly vm: VmSummary;
  readonly bases: Bases;
  readonly machines: readonly Machine[];
}

function toTemplateVm(
  { templates, cluster }: Config,
  { view: { region }, vm, bases, machines }: Found,
): readonly TemplateVm[] {
  const { vmId, host, name = '', tags } = vm;
  const all = Object.values(templates);
  const built = all.find((one) => isBuiltTemplate(vm, one, cluster.name));
  const template = built ?? all.find((one) => isNamedTemplate(vm, one));
  if (template === undefined) return [];
  const machine = machines.find(
    ({ pool, phase, placement }) =>
      isTemplateGroup(pool) &&
      placement?.vmId === vmId &&
      placement.region === region &&
      phase !== 'gone' &&
      phase !== 'failed',
  );
  const version = built === undefined ? 0 : templateVersionOf(tags);
  const linkedClones = bases.vmIds.filter((base) => base === vmId).length;
  const { unread: unreadVms } = bases;
  return [
    { template: template.key, version, region, host, vmId, name, linkedClones, unreadVms, machine },
  ];
}

export async function listTemplates(
  host: CommandHost,
  open: OpenFleet,
  options: OutputOptions,
): Promise<void> {
  await printTemplates(host, options, await readTemplateVms(open));
}

export async function printTemplates(
  host: CommandHost,
  options: OutputOptions,
  vms: readonly TemplateVm[],
): Promise<void> {
  await printObjects(host, options, {
    value: vms.map(withoutMachine),
    names: vms.map(({ name }) => name),
    text: (format) => render(vms, format),
  });
}

export async function showTemplate(
  host: CommandHost,
  open: OpenFleet,
  { name, output }: OutputOptions & { readonly name: string | undefined },
): Promise<void> {
  const template = chooseTemplate(open.config, name);
  const vms = (await readTemplateVms(open)).filter((one) => one.template === template.key);
  const { key, image, packages, commands, kubeadm } = template;
  const rows = [
    ['template', key],
    ['name', template.name ?? ''],
    ['image', image ?? '(none: it is made by other means)'],
    ['packages', packages.join(', ')],
    ['commands', String(commands.length)],
    ['kubeadm', kubeadm ?? '-'],
  ];
  await printObjects(
    host,
    { output },
    {
      value: { template, vms: vms.map(withoutMachine) },
      names: [key],
      text: (format) => `${format.fields(rows)}\n${render(vms, format)}`,
    },
  );
}

function withoutMachine({ machine, ...vm }: TemplateVm) {
  return { ...vm, managed: machine !== undefined };
}

function render(vms: readonly TemplateVm[], format: TableFormat): string {
  const rows = vms.map(({ template, version, region, host, vmId, name, linkedClones, machine }) => [
    template,
    version === 0 ? '-' : String(version),
    region,
    host,
    String(vmId),
    name,
    String(linkedClones),
    machine === undefined ? 'unmanaged' : machine.phase,
  ]);
  const head = ['TEMPLATE', 'VERSION', 'REGION', 'HOST', 'VM', 'NAME', 'LINKED CLONES', 'STATE'];
  return format.table(head, rows);
}
