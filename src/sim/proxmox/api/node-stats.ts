// SPDX-License-Identifier: Apache-2.0
// Figures of hosts and storages, shared by the lists that show them.
import type { Core } from '../core.ts';
import { isAvailable, usedBytes } from '../storage/volumes.ts';
import type { Host, Storage } from '../world/model.ts';
import { STATUS_BELIEVED_MS } from '../world/world.ts';

/** Corosync needs a moment to notice that a host is gone. */
const NOTICE_MS = 3_000;

export function seesOnline(core: Core, host: Host): boolean {
  const { world } = core;
  return host.online || world.clock.now() - host.since < NOTICE_MS / world.speed;
}

/** What runs on a host takes memory; a host itself takes a little. */
export function usedMemory(core: Core, host: Host): number {
  let used = 2 * 2 ** 30;
  for (const vm of core.world.vms.values()) {
    if (vm.host !== host.name || vm.running === undefined) continue;
    const mib = Number(
      /^(?:current=)?(\d+)/.exec(vm.running.bootConfig['memory'] ?? '512')?.[1] ?? 512,
    );
    used += mib * 2 ** 20 * 0.6;
  }
  return Math.min(host.memory, Math.floor(used));
}

function uptime(core: Core, host: Host): number {
  return Math.floor((core.world.clock.now() - host.since) / 1000) + 86_400;
}

/** One line of /nodes or of the overview. Without Sys.Audit only name and state. */
export function nodeEntry(core: Core, host: Host, withStats: boolean): Record<string, unknown> {
  const online = seesOnline(core, host);
  const entry = {
    id: `node/${host.name}`,
    node: host.name,
    type: 'node',
    status: online ? 'online' : 'offline',
  };
  if (!withStats) return entry;
  const known =
    online || core.world.clock.now() - host.since < STATUS_BELIEVED_MS / core.world.speed;
  if (!known) return { ...entry, level: '' };
  const still = { ...entry, level: '', maxcpu: host.cpus, maxmem: host.memory };
  if (!online) return still;
  return {
    ...still,
    cpu: 0.02,
    mem: usedMemory(core, host),
    disk: 8 * 2 ** 30,
    maxdisk: 96 * 2 ** 30,
    uptime: uptime(core, host),
  };
}

export function storageFigures(
  storage: Storage,
  host: string,
): { readonly total: number; readonly used: number; readonly avail: number } {
  if (!storage.active) return { total: 0, used: 0, avail: 0 };
  const used = Math.floor(usedBytes(storage, host));
  return { total: storage.size, used, avail: storage.size - used };
}

/** Content types come in no particular order; here in the order of the description. */
export function storageEntry(storage: Storage, host: string): Record<string, unknown> {
  const usable = isAvailable(storage, host);
  const figures = usable ? storageFigures(storage, host) : { total: 0, used: 0, avail: 0 };
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
