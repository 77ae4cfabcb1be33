// SPDX-License-Identifier: Apache-2.0
import type { TemplateConfig } from '../config/index.ts';
import { formatCount } from '../model/format-text.ts';
import type { Host } from '../model/host.ts';
import { type HostRef, isPhaseSettled, type Machine, type MachineId } from '../model/machine.ts';
import { isTemplateGroup, TEMPLATE_ROLE } from '../model/role.ts';
import { Conflict, InvalidRequest, NotFound, NotOwned } from '../ports/errors.ts';
import type { OpenFleet } from '../setup/index.ts';
import type { ConfigOptions } from './config-options.ts';
import type { CommandHost } from './context.ts';
import { formatGone } from './format-machines.ts';
import type { OutputOptions } from './output-option.ts';
import { deleteMachines, removeMachines } from './run-machine-delete.ts';
import { failedMachinesError } from './run-pool-scale.ts';
import { isRequestOpen, runUntilDone } from './run-until-done.ts';
import {
  chooseTemplate,
  printTemplates,
  readTemplateVms,
  type TemplateVm,
} from './template-list.ts';
import { parseTimeoutMs, type TimeoutOptions } from './timeout-option.ts';

export interface BuildOptions extends ConfigOptions, TimeoutOptions, OutputOptions {
  readonly host?: string;
  /** Absent: all regions. */
  readonly region?: string;
  readonly allHosts?: true;
  readonly reason: string;
}

export interface TemplateDeleteOptions extends ConfigOptions, TimeoutOptions, OutputOptions {
  readonly version?: string;
  readonly host?: string;
  readonly reason: string;
}

interface BuildRequest {
  readonly name: string | undefined;
  readonly options: BuildOptions;
  readonly kind: 'build' | 'sync';
}

/** The result of `template build` and `template sync`; as a table, what was done has been printed. */
export async function runBuild(
  host: CommandHost,
  open: OpenFleet,
  request: BuildRequest,
): Promise<void> {
  await buildTemplate(host, open, request);
  const { name, options } = request;
  if (isTable(options)) return;
  const { key } = chooseTemplate(open.config, name);
  const vms = (await readTemplateVms(open)).filter(({ template }) => template === key);
  await printTemplates(host, options, vms);
}

function isTable({ output = 'table' }: OutputOptions): boolean {
  return output === 'table';
}

/** In other formats the result follows, and only it is written to standard output. */
function sayTo({ context }: CommandHost, options: OutputOptions): (text: string) => void {
  return isTable(options) ? (text) => context.out(text) : (text) => context.err(text);
}

export async function buildTemplate(
  host: CommandHost,
  open: OpenFleet,
  { name, options, kind }: BuildRequest,
): Promise<void> {
  const template = chooseTemplate(open.config, name);
  if (template.image === undefined) {
    throw new InvalidRequest('USAGE', `template ${template.key} has no image to build it from`, {
      hint: "Set 'image' of the template in the config.",
    });
  }
  const built = (await readTemplateVms(open)).filter((one) => one.template === template.key);
  const newest = Math.max(0, ...built.map(({ version }) => version));
  const version = kind === 'build' || newest === 0 ? newest + 1 : newest;
  const hosts = await chooseHosts(open, template, options);
  const has = ({ region, host: at }: HostRef) =>
    built.some((one) => one.region === region && one.host === at && one.version === version);
  const missing = hosts.filter((one) => !has(one));
  if (missing.length === 0) sayTo(host, options)(`template ${template.key} is up to date\n`);
  else await build(host, open, { template, version, hosts: missing, options });
  await collectOld(host, open, { template, options });
}

/** Each host needs its own template, unless its storage is shared: then one per region does. */
async function chooseHosts(
  { config, hypervisors }: OpenFleet,
  { storage }: TemplateConfig,
  { host, region: only, allHosts }: BuildOptions,
): Promise<readonly HostRef[]> {
  const wantedRegions = [...hypervisors].filter(([name]) => name === (only ?? name));
  const views = await Promise.all(wantedRegions.map(([, region]) => region.view()));
  const found = views.flatMap(({ region, hosts }) => {
    const { allow, deny } = config.regions[region]?.hosts ?? { allow: [], deny: [] };
    const usable = hosts.filter(
      ({ name, online }) =>
        online && !deny.includes(name) && (allow.length === 0 || allow.includes(name)),
    );
    const wanted = storage ?? config.regions[region]?.storage.disks[0];
    const isShared = usable.every((one) => hasShared(one, wanted));
    const needed =
      isShared && allHosts !== true && host === undefined ? usable.slice(0, 1) : usable;
    return needed.map(({ name }) => ({ region, host: name }));
  });
  const named = host === undefined ? found : found.filter((one) => one.host === host);
  if (named.length > 0) return named;
  const names = unique(found.map((one) => one.host)).join(', ');
  if (host === undefined || names === '') throw new NotFound('HOST_NOT_FOUND', 'no host is online');
  throw new NotFound('HOST_NOT_FOUND', `--host ${host}: there is no such host`, {
    hint: `Use one of ${names}.`,
  });
}

function unique(names: readonly string[]): readonly string[] {
  return [...new Set(names)];
}

function hasShared({ storages }: Host, wanted: string | undefined): boolean {
  return storages.some(({ name, shared }) => name === wanted && shared);
}

interface Building {
  readonly template: TemplateConfig;
  readonly version: number;
  readonly hosts: readonly HostRef[];
  readonly options: BuildOptions;
}

/** Builds that an earlier command began are continued: their hosts get no second one. */
async function build(host: CommandHost, open: OpenFleet, building: Building): Promise<void> {
  const { template, version, hosts, options } = building;
  const { cpu, memoryBytes, diskBytes, image = '' } = template;
  const own = new Set<MachineId>();
  const progress = new BuildProgress(host, open);
  await runUntilDone(host, open, {
    regions: [...new Set(hosts.map(({ region }) => region))],
    timeoutMs: parseTimeoutMs(options),
    isUnfinished: (machine) => own.has(machine.id) && !isPhaseSettled(machine),
    submit: async () => {
      const { machines } = await open.fleet.status();
      for (const at of hosts) {
        const begun = machines.find((one) => isBuildOf(one, template.key, at));
        const ids =
          begun === undefined
            ? (
                await open.fleet.requestVms({
                  by: 'cli',
                  reason: options.reason,
                  role: TEMPLATE_ROLE,
                  count: 1,
                  size: { cpu, memoryBytes, diskBytes },
                  host: at,
                  vm: {
                    from: { kind: 'image', image },
                    regions: [at.region],
                    template: { name: template.key, version },
                  },
                })
              ).machines
            : [begun.id];
        for (const id of ids) own.add(id);
      }
    },
    isDone: async () => {
      await progress.print();
      const { machines } = await open.fleet.status();
      const left = machines.filter((one) => own.has(one.id) && !isPhaseSettled(one));
      return left.length === 0 && !isRequestOpen(open.fleet, own);
    },
  });
  const { machines } = await open.fleet.status();
  const results = machines.filter(({ id }) => own.has(id));
  const say = sayTo(host, options);
  for (const { phase, placement } of results) {
    if (phase === 'ready' && placement !== undefined)
      say(
        `template ${template.key} version ${version} is VM ${placement.vmId} on ${placement.host}\n`,
      );
  }
  const failed = results.filter(({ phase }) => phase === 'failed');
  if (failed.length > 0) throw failedMachinesError(failed, results.length);
}

function isBuildOf({ pool, phase, vm, requiredHost }: Machine, key: string, at: HostRef): boolean {
  return (
    isTemplateGroup(pool) &&
    vm?.template?.name === key &&
    requiredHost?.host === at.host &&
    requiredHost.region === at.region &&
    !['ready', 'deleting', 'failed', 'gone'].includes(phase)
  );
}

/** Prints what the guests report. */
class BuildProgress {
  readonly #host: CommandHost;
  readonly #open: OpenFleet;
  #sequence: number | undefined;

  constructor(host: CommandHost, open: OpenFleet) {
    this.#host = host;
    this.#open = open;
  }

  async print(): Promise<void> {
    const isFirst = this.#sequence === undefined;
    const entries = await this.#open.store.journal.read({ after: this.#sequence ?? 0 });
    this.#sequence = entries.at(-1)?.sequence ?? this.#sequence ?? 0;
    if (isFirst) return;
    for (const { reason, message } of entries) {
      if (reason === 'TemplateProgress') this.#host.context.err(`${message}\n`);
    }
  }
}

/** Deletes older versions, as far as no linked clone needs them. */
async function collectOld(
  host: CommandHost,
  open: OpenFleet,
  { template, options }: Pick<Building, 'template' | 'options'>,
): Promise<void> {
  const own = (await readTemplateVms(open)).filter((one) => one.template === template.key);
  const isOld = (one: TemplateVm) =>
    own.some(
      ({ region, host: at, version }) =>
        region === one.region && at === one.host && version > one.version,
    );
  const old = own.filter((one) => isOld(one) && one.machine?.phase === 'ready');
  for (const { version, vmId, ...vm } of old) {
    const use = describeUse(vm);
    if (use !== undefined) host.context.err(`version ${version} (VM ${vmId}) is kept: ${use}\n`);
  }
  const unused = old.filter((vm) => describeUse(vm) === undefined);
  if (unused.length === 0) return;
  const { gone } = await removeMachines(host, open, deletionOf(unused, options));
  sayTo(host, options)(`${formatGone(gone.length)}\n`);
}

/** Undefined when no VM needs the template. */
function describeUse({
  linkedClones,
  unreadVms,
}: Pick<TemplateVm, 'linkedClones' | 'unreadVms'>): string | undefined {
  if (linkedClones > 0) return `it has ${formatCount(linkedClones, 'linked clone')}`;
  return unreadVms === 0
    ? undefined
    : `${formatCount(unreadVms, 'VM')} cannot be read now, and may be linked clones of it`;
}

export async function deleteTemplate(
  host: CommandHost,
  open: OpenFleet,
  { name, options }: { readonly name: string; readonly options: TemplateDeleteOptions },
): Promise<void> {
  const vms = (await readTemplateVms(open)).filter(
    (one) =>
      one.template === name &&
      (options.version === undefined || String(one.version) === options.version) &&
      (options.host === undefined || one.host === options.host),
  );
  if (vms.length === 0)
    throw new NotFound('TEMPLATE_NOT_FOUND', `no host has such a version of template ${name}`, {
      hint: 'pvescaler template list lists them.',
    });
  const [first] = vms;
  const built = vms.filter(({ machine }) => machine !== undefined);
  if (built.length === 0 && first !== undefined)
    throw new NotOwned(
      'VM_NOT_OWNED',
      `template VM ${first.vmId} on ${first.host} was not built by pvescaler for this cluster`,
    );
  for (const vm of built) {
    const use = describeUse(vm);
    if (use !== undefined)
      throw new Conflict(
        'TEMPLATE_IN_USE',
        `template VM ${vm.vmId} on ${vm.host} is needed: ${use}`,
      );
  }
  await deleteMachines(host, open, deletionOf(built, options));
}

function deletionOf(vms: readonly TemplateVm[], options: TemplateDeleteOptions) {
  return {
    regions: [...new Set(vms.map(({ region }) => region))],
    select: () => Promise.resolve(vms.flatMap(({ machine }) => machine ?? [])),
    options: { ...options, drain: false as const },
  };
}
