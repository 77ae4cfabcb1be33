// SPDX-License-Identifier: Apache-2.0
// Test data with defaults: a test sets only what matters to it.
import type { Host, HostStorage } from '../../model/host.ts';
import type { PlacementRequest, PlacementRules } from '../hosts/decision.ts';
import type { RegionFacts, Reservation, VmFacts } from '../hosts/facts.ts';

export const GIB = 2 ** 30;

export const ANY_HOST = { allow: [], deny: [] } as const;

export function aStorage(overrides: Partial<HostStorage> = {}): HostStorage {
  return {
    name: 'local-lvm',
    shared: false,
    active: true,
    content: ['images', 'rootdir'],
    totalBytes: 1000 * GIB,
    freeBytes: 500 * GIB,
    ...overrides,
  };
}

/** The storage `local` of every Proxmox installation, for images and seeds. */
export function aLocal(overrides: Partial<HostStorage> = {}): HostStorage {
  return aStorage({ name: 'local', content: ['iso', 'import', 'vztmpl'], ...overrides });
}

export function aHost(name: string, overrides: Partial<Host> = {}): Host {
  return {
    region: 'lab',
    name,
    online: true,
    cpus: 16,
    memoryBytes: 64 * GIB,
    storages: [aStorage(), aLocal()],
    ...overrides,
  };
}

export function aVm(vmId: number, host: string, overrides: Partial<VmFacts> = {}): VmFacts {
  return {
    vmId,
    host,
    power: 'running',
    isTemplate: false,
    cpus: 2,
    memoryBytes: 4 * GIB,
    ...overrides,
  };
}

export function aReservation(
  vmId: number,
  host: string,
  overrides: Partial<Reservation> = {},
): Reservation {
  return {
    vmId,
    pool: 'small',
    host,
    cpus: 2,
    memoryBytes: 4 * GIB,
    storage: 'local-lvm',
    pendingDiskBytes: 40 * GIB,
    ...overrides,
  };
}

export function rules(overrides: Partial<PlacementRules> = {}): PlacementRules {
  return {
    strategy: 'spread',
    hosts: ANY_HOST,
    cpuOvercommit: 2,
    memoryOvercommit: 1,
    memoryReserveBytes: 2 * GIB,
    ...overrides,
  };
}

export function aRequest(overrides: Partial<PlacementRequest> = {}): PlacementRequest {
  return {
    pool: 'small',
    size: { cpu: 2, memoryBytes: 4 * GIB, diskBytes: 40 * GIB },
    source: { kind: 'netboot' },
    storages: ['local-lvm'],
    regionHosts: ANY_HOST,
    placement: rules(),
    ...overrides,
  };
}

export function facts(
  hosts: readonly Host[],
  overrides: Partial<Omit<RegionFacts, 'hosts'>> = {},
): RegionFacts {
  return { hosts, vms: [], reservations: [], ...overrides };
}
