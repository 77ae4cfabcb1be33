// SPDX-License-Identifier: Apache-2.0
import type { Host, HostStorage } from '../model/host.ts';
import type { ContainerSummary, VmSummary } from '../ports/hypervisor.ts';
import { isCreationLock, parseTags } from './vm-config.ts';
import { asBoolean, asNumber, asObjects, asText, type JsonObject } from './wire-values.ts';

/** The response of `/cluster/resources`: one request, whatever the number of VMs. */
export interface ClusterResources {
  readonly hosts: readonly Host[];
  readonly vms: readonly VmSummary[];
  readonly containers: readonly ContainerSummary[];
  readonly takenVmIds: readonly number[];
}

export function parseClusterResources(region: string, data: unknown): ClusterResources {
  const entries = asObjects(data);
  const hosts = parseHosts(region, entries);
  const online = new Set(hosts.filter((host) => host.online).map((host) => host.name));
  return {
    hosts,
    vms: entries
      .filter((entry) => entry['type'] === 'qemu')
      .flatMap((entry) => parseVmSummary(entry, online))
      .sort((a, b) => a.vmId - b.vmId),
    containers: entries
      .filter(isContainer)
      .flatMap((entry) => parseContainer(entry, online))
      .sort((a, b) => a.vmId - b.vmId),
    takenVmIds: entries
      .filter((entry) => entry['type'] === 'qemu' || isContainer(entry))
      .flatMap((entry) => asNumber(entry['vmid']) ?? [])
      .sort((a, b) => a - b),
  };
}

function parseHosts(region: string, entries: readonly JsonObject[]): readonly Host[] {
  const storages = entries.filter((entry) => entry['type'] === 'storage');
  return entries
    .filter((entry) => entry['type'] === 'node')
    .flatMap((entry) => {
      const name = asText(entry['node']);
      return name === undefined ? [] : [parseHost(region, name, { entry, storages })];
    })
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

function parseHost(
  region: string,
  name: string,
  from: { readonly entry: JsonObject; readonly storages: readonly JsonObject[] },
): Host {
  return {
    region,
    name,
    online: from.entry['status'] === 'online',
    cpus: asNumber(from.entry['maxcpu']) ?? 0,
    memoryBytes: asNumber(from.entry['maxmem']) ?? 0,
    storages: from.storages
      .filter((storage) => storage['node'] === name)
      .flatMap(parseStorage)
      .sort((a, b) => (a.name < b.name ? -1 : 1)),
  };
}

function parseStorage(entry: JsonObject): readonly HostStorage[] {
  const name = asText(entry['storage']);
  if (name === undefined) return [];
  const totalBytes = asNumber(entry['maxdisk']) ?? 0;
  return [
    {
      name,
      shared: asBoolean(entry['shared']),
      active: entry['status'] === 'available',
      content: (asText(entry['content']) ?? '').split(',').filter(Boolean).sort(),
      totalBytes,
      freeBytes: Math.max(0, totalBytes - (asNumber(entry['disk']) ?? 0)),
    },
  ];
}

function parseVmSummary(entry: JsonObject, online: ReadonlySet<string>): readonly VmSummary[] {
  const vmId = asNumber(entry['vmid']);
  const host = asText(entry['node']);
  if (vmId === undefined || host === undefined) return [];
  return [
    {
      vmId,
      host,
      name: asText(entry['name']),
      // Proxmox keeps the last values of a failed host for five minutes, so its VMs still appear as running.
      power: online.has(host) ? parsePower(entry['status']) : 'unknown',
      tags: parseTags(asText(entry['tags'])),
      isTemplate: asBoolean(entry['template']),
      lock: asText(entry['lock']),
      isBeingCreated: isCreationLock(asText(entry['lock'])),
      cpus: asNumber(entry['maxcpu']),
      memoryBytes: asNumber(entry['maxmem']),
    },
  ];
}

function isContainer(entry: JsonObject): boolean {
  return entry['type'] === 'lxc' || entry['type'] === 'openvz';
}

/** For containers Proxmox lists the configured CPUs and memory, not the usage. */
function parseContainer(
  entry: JsonObject,
  online: ReadonlySet<string>,
): readonly ContainerSummary[] {
  return parseVmSummary(entry, online).map(
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

function parsePower(status: unknown): VmSummary['power'] {
  return status === 'running' || status === 'stopped' ? status : 'unknown';
}
