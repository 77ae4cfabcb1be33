// SPDX-License-Identifier: Apache-2.0
// The saved state of a simulated cluster (`--state FILE`). Running tasks are not saved: as after a power failure,
// they are gone and locked configurations stay locked.

import { Buffer } from 'node:buffer';
import type { Core } from '../core.ts';
import type { GuestBehaviour } from '../guest/guest.ts';
import type { Acl, HaResource, Snapshot, Storage, Token, Volume } from '../state/model.ts';
import type { TaskRecord } from '../tasks/engine.ts';
import { findBootVolume, powerOn } from '../vm/guest-lifecycle.ts';
import { applyPending } from '../vm/pending.ts';

interface SavedVm {
  readonly id: number;
  readonly host: string;
  readonly config: Readonly<Record<string, string>>;
  readonly pending: Readonly<Record<string, string>>;
  readonly pendingDelete: readonly string[];
  readonly snapshots: readonly Snapshot[];
  readonly running: boolean;
  readonly behaviour?: GuestBehaviour | undefined;
  readonly createdAt: number;
}

interface SavedVolume extends Omit<Volume, 'bytes'> {
  readonly storage: string;
  readonly place: string;
  readonly base64?: string | undefined;
}

interface SavedUser {
  readonly id: string;
  readonly password?: string | undefined;
  readonly enabled: boolean;
  readonly expire: number;
  readonly tokens: readonly Token[];
}

export interface SavedState {
  readonly format: 1;
  readonly quorate: boolean;
  readonly datacenter: Readonly<Record<string, string>>;
  readonly offlineHosts: readonly string[];
  readonly vms: readonly SavedVm[];
  /** Absent in states saved by versions in which storage definitions could not change. */
  readonly storages?: readonly Omit<Storage, 'volumes'>[];
  readonly volumes: readonly SavedVolume[];
  readonly users: readonly SavedUser[];
  readonly groups: readonly (readonly [string, readonly string[]])[];
  readonly roles: readonly (readonly [string, readonly string[]])[];
  readonly acl: readonly Acl[];
  readonly pools: readonly {
    readonly id: string;
    readonly comment?: string | undefined;
    readonly vms: readonly number[];
    readonly storages: readonly string[];
  }[];
  readonly ha: readonly HaResource[];
  readonly tasks: readonly TaskRecord[];
}

function captureVolumes(core: Core): SavedVolume[] {
  const rows: SavedVolume[] = [];
  for (const storage of core.state.storages.values()) {
    for (const [place, held] of storage.volumes) {
      for (const { bytes, ...volume } of held.values()) {
        const base64 = bytes === undefined ? {} : { base64: Buffer.from(bytes).toString('base64') };
        rows.push({ ...volume, storage: storage.id, place, ...base64 });
      }
    }
  }
  return rows;
}

export function captureState(core: Core): SavedState {
  const { state } = core;
  for (const vm of state.vms.values()) saveGuestDisk(core, vm.id);
  return {
    format: 1,
    quorate: state.quorate,
    datacenter: { ...state.datacenter },
    offlineHosts: [...state.hosts.values()].filter((host) => !host.online).map(({ name }) => name),
    vms: [...state.vms.values()].map((vm) => ({
      id: vm.id,
      host: vm.host,
      config: { ...vm.config },
      pending: { ...vm.pending },
      pendingDelete: [...vm.pendingDelete],
      snapshots: [...vm.snapshots],
      running: vm.running !== undefined,
      behaviour: vm.behaviour,
      createdAt: vm.createdAt,
    })),
    storages: [...state.storages.values()].map(({ volumes: _held, ...storage }) => storage),
    volumes: captureVolumes(core),
    users: [...state.users.values()].map((user) => ({
      ...user,
      tokens: [...user.tokens.values()],
    })),
    groups: [...state.groups].map(([id, members]) => [id, [...members]] as const),
    roles: [...state.roles].map(([id, privs]) => [id, [...privs]] as const),
    acl: [...state.acl],
    pools: [...state.pools].map(([id, pool]) => ({
      id,
      comment: pool.comment,
      vms: [...pool.vms],
      storages: [...pool.storages],
    })),
    ha: [...state.ha.values()],
    tasks: core.tasks.snapshot(),
  };
}

/** Copies the disk state of a running guest to its boot volume. */
function saveGuestDisk(core: Core, id: number): void {
  const vm = core.state.vms.get(id);
  const disk = vm?.running === undefined ? undefined : findBootVolume(core, vm);
  if (vm?.running === undefined || disk === undefined) return;
  disk.guestState = vm.running.guest.diskState();
  disk.everBooted = true;
}

function restoreAccess(core: Core, saved: SavedState): void {
  const { state } = core;
  state.users.clear();
  for (const user of saved.users) {
    const tokens = new Map(user.tokens.map((token) => [token.id, { ...token }]));
    state.users.set(user.id, { ...user, password: user.password, tokens });
  }
  state.groups.clear();
  for (const [id, members] of saved.groups) state.groups.set(id, new Set(members));
  state.roles.clear();
  for (const [id, privs] of saved.roles) state.roles.set(id, new Set(privs));
  state.acl = [...saved.acl];
  state.pools.clear();
  for (const { id, comment, vms, storages } of saved.pools) {
    state.pools.set(id, { comment, vms: new Set(vms), storages: new Set(storages) });
  }
  state.accessVersion += 1;
}

function restoreStorages(core: Core, { storages }: SavedState): void {
  if (storages === undefined) return;
  core.state.storages.clear();
  for (const storage of storages) {
    const { hosts, path } = storage;
    core.state.storages.set(storage.id, { ...storage, hosts, path, volumes: new Map() });
  }
}

function restoreVolumes(core: Core, saved: SavedState): void {
  for (const storage of core.state.storages.values()) storage.volumes.clear();
  for (const { storage: id, place, base64, ...volume } of saved.volumes) {
    const storage = core.state.storages.get(id);
    if (storage === undefined) continue;
    const held = storage.volumes.get(place) ?? new Map<string, Volume>();
    storage.volumes.set(place, held);
    const bytes =
      base64 === undefined ? {} : { bytes: Uint8Array.from(Buffer.from(base64, 'base64')) };
    held.set(volume.name, { ...volume, virtualSize: volume.virtualSize, ...bytes });
  }
}

function restoreVms(core: Core, saved: SavedState): void {
  const { state } = core;
  for (const vm of state.vms.values()) vm.running?.guest.stop();
  state.vms.clear();
  for (const savedVm of saved.vms) {
    const vm = {
      id: savedVm.id,
      host: savedVm.host,
      config: { ...savedVm.config },
      pending: { ...savedVm.pending },
      pendingDelete: new Set(savedVm.pendingDelete),
      snapshots: [...savedVm.snapshots],
      running: undefined,
      behaviour: savedVm.behaviour,
      broadcasts: [],
      createdAt: savedVm.createdAt,
    };
    state.vms.set(vm.id, vm);
    state.recordStatus(vm);
    if (savedVm.running && state.hosts.get(vm.host)?.online === true)
      powerOn(core, vm, applyPending);
  }
}

export function restoreState(core: Core, saved: SavedState): void {
  const { state } = core;
  state.quorate = saved.quorate;
  for (const name of Object.keys(state.datacenter)) delete state.datacenter[name];
  Object.assign(state.datacenter, saved.datacenter);
  for (const host of state.hosts.values()) host.online = !saved.offlineHosts.includes(host.name);
  restoreAccess(core, saved);
  restoreStorages(core, saved);
  restoreVolumes(core, saved);
  restoreVms(core, saved);
  state.ha.clear();
  for (const resource of saved.ha) state.ha.set(resource.sid, { ...resource });
  core.tasks.restore(saved.tasks);
}
