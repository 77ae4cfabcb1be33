// SPDX-License-Identifier: Apache-2.0
// Usage of hosts and storages, shared by the endpoints that list them.
import type { Core } from '../core.ts';
import { STATUS_EXPIRY_MS } from '../state/cluster-state.ts';
import type { Host, Storage } from '../state/model.ts';
import { isStorageAvailable, usedBytes } from '../storage/volumes.ts';

/** Time until corosync reports a lost host as offline. */
const OFFLINE_DETECTION_MS = 3_000;

export function isReportedOnline(core: Core, host: Host): boolean {
  const { state } = core;
  return (
    host.online || state.clock.now() - host.onlineChangedAt < OFFLINE_DETECTION_MS / state.speed
  );
}

/** Memory of the host itself plus that of its running VMs. */
export function usedMemoryBytes(core: Core, host: Host): number {
  let used = 2 * 2 ** 30;
  for (const vm of core.state.vms.values()) {
    if (vm.host !== host.name || vm.running === undefined) continue;
    const mib = Number(
      /^(?:current=)?(\d+)/.exec(vm.running.bootConfig['memory'] ?? '512')?.[1] ?? 512,
    );
    used += mib * 2 ** 20 * 0.6;
  }
  return Math.min(host.memory, Math.floor(used));
}

function uptimeSeconds(core: Core, host: Host): number {
  return Math.floor((core.state.clock.now() - host.onlineChangedAt) / 1000) + 86_400;
}

/** A row of /nodes or /cluster/resources. Without Sys.Audit it has only name and status. */
export function formatNode(core: Core, host: Host, withStats: boolean): Record<string, unknown> {
  const online = isReportedOnline(core, host);
  const entry = {
    id: `node/${host.name}`,
    node: host.name,
    type: 'node',
    status: online ? 'online' : 'offline',
  };
  if (!withStats) return entry;
  const known =
    online || core.state.clock.now() - host.onlineChangedAt < STATUS_EXPIRY_MS / core.state.speed;
  if (!known) return { ...entry, level: '' };
  const still = { ...entry, level: '', maxcpu: host.cpus, maxmem: host.memory };
  if (!online) return still;
  return {
    ...still,
    cpu: 0.02,
    mem: usedMemoryBytes(core, host),
    disk: 8 * 2 ** 30,
    maxdisk: 96 * 2 ** 30,
    uptime: uptimeSeconds(core, host),
  };
}

export function storageUsage(
  storage: Storage,
  host: string,
): { readonly total: number; readonly used: number; readonly avail: number } {
  if (!storage.active) return { total: 0, used: 0, avail: 0 };
  const used = Math.floor(usedBytes(storage, host));
  const avail = Math.max(0, storage.size - (storage.reserved ?? 0) - used);
  return { total: storage.size, used, avail };
}

/** Proxmox returns content types in any order; this keeps the order of the cluster description. */
export function formatStorage(storage: Storage, host: string): Record<string, unknown> {
  const usable = isStorageAvailable(storage, host);
  const figures = usable ? storageUsage(storage, host) : { total: 0, used: 0, avail: 0 };
  return {
    storage: storage.id,
    type: storage.type,
    content: storage.content.join(','),
    shared: storage.shared ? 1 : 0,
    enabled: usable ? 1 : 0,
    active: storage.active && usable ? 1 : 0,
    ...figures,
    ...(figures.total > 0 ? { used_fraction: figures.used / figures.total } : {}),
  };
}
