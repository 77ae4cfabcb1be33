// SPDX-License-Identifier: Apache-2.0
import type { Host, HostStorage } from '../model/host.ts';
import type { ContainerSummary, VmSummary } from '../ports/hypervisor.ts';
import { type Foreign, flagOf, numberOf, recordsOf, textOf } from './json.ts';
import { tagsOf } from './tags.ts';
import { isCreationLock } from './vm-config.ts';

/** `/cluster/resources`, sorted out: one reading of everything, whatever the number of VMs. */
export interface Overview {
  readonly hosts: readonly Host[];
  readonly vms: readonly VmSummary[];
  readonly containers: readonly ContainerSummary[];
  readonly takenVmIds: readonly number[];
}

export function overviewOf(region: string, data: unknown): Overview {
  const entries = recordsOf(data);
  const hosts = hostsOf(region, entries);
  const online = new Set(hosts.filter((host) => host.online).map((host) => host.name));
  return {
    hosts,
    vms: entries
      .filter((entry) => entry['type'] === 'qemu')
      .flatMap((entry) => summaryOf(entry, online))
      .sort((a, b) => a.vmId - b.vmId),
    containers: entries
      .filter(isContainer)
      .flatMap((entry) => containerOf(entry, online))
      .sort((a, b) => a.vmId - b.vmId),
    takenVmIds: entries
      .filter((entry) => entry['type'] === 'qemu' || isContainer(entry))
      .flatMap((entry) => numberOf(entry['vmid']) ?? [])
      .sort((a, b) => a - b),
  };
}

function hostsOf(region: string, entries: readonly Foreign[]): readonly Host[] {
  const storages = entries.filter((entry) => entry['type'] === 'storage');
  return entries
    .filter((entry) => entry['type'] === 'node')
    .flatMap((entry) => {
      const name = textOf(entry['node']);
      return name === undefined ? [] : [hostOf(region, name, { entry, storages })];
    })
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

function hostOf(
  region: string,
  name: string,
  from: { readonly entry: Foreign; readonly storages: readonly Foreign[] },
): Host {
  return {
    region,
    name,
    online: from.entry['status'] === 'online',
    cpus: numberOf(from.entry['maxcpu']) ?? 0,
    memoryBytes: numberOf(from.entry['maxmem']) ?? 0,
    storages: from.storages
      .filter((storage) => storage['node'] === name)
      .flatMap(storageOf)
      .sort((a, b) => (a.name < b.name ? -1 : 1)),
  };
}

function storageOf(entry: Foreign): readonly HostStorage[] {
  const name = textOf(entry['storage']);
  if (name === undefined) return [];
  const totalBytes = numberOf(entry['maxdisk']) ?? 0;
  return [
    {
      name,
      shared: flagOf(entry['shared']),
      active: entry['status'] === 'available',
      content: (textOf(entry['content']) ?? '').split(',').filter(Boolean).sort(),
      totalBytes,
      freeBytes: Math.max(0, totalBytes - (numberOf(entry['disk']) ?? 0)),
    },
  ];
}

function summaryOf(entry: Foreign, online: ReadonlySet<string>): readonly VmSummary[] {
  const vmId = numberOf(entry['vmid']);
  const host = textOf(entry['node']);
  if (vmId === undefined || host === undefined) return [];
  return [
    {
      vmId,
      host,
      name: textOf(entry['name']),
      // The values of a host that died stay for five minutes: its VMs "run" on nothing.
      power: online.has(host) ? powerOf(entry['status']) : 'unknown',
      tags: tagsOf(textOf(entry['tags'])),
      isTemplate: flagOf(entry['template']),
      lock: textOf(entry['lock']),
      isBeingCreated: isCreationLock(textOf(entry['lock'])),
      cpus: numberOf(entry['maxcpu']),
      memoryBytes: numberOf(entry['maxmem']),
    },
  ];
}

function isContainer(entry: Foreign): boolean {
  return entry['type'] === 'lxc' || entry['type'] === 'openvz';
}

/** The overview takes a container's figures from its configuration, not from its use. */
function containerOf(entry: Foreign, online: ReadonlySet<string>): readonly ContainerSummary[] {
  return summaryOf(entry, online).map(
    ({ vmId, host, power, isTemplate, cpus, memoryBytes }): ContainerSummary => ({
      vmId,
      host,
      power,
      isTemplate,
      cpus,
      memoryBytes,
    }),
  );
}

function powerOf(status: unknown): VmSummary['power'] {
  return status === 'running' || status === 'stopped' ? status : 'unknown';
}
