// SPDX-License-Identifier: Apache-2.0
// A simulated cluster on paper: what `--state FILE` keeps. Work in progress is not kept; like on a host that
// lost power, its tasks are gone and locked configurations stay locked.
import { Buffer } from 'node:buffer';
import type { Core } from '../core.ts';
import type { GuestBehaviour } from '../guest/guest.ts';
import type { TaskRecord } from '../tasks/engine.ts';
import { powerOn } from '../vm/guest-link.ts';
import { applyPending } from '../vm/pending.ts';
import type { Acl, HaResource, Snapshot, Storage, Token, Volume } from '../world/model.ts';

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

export interface SimState {
  readonly format: 1;
  readonly quorate: boolean;
  readonly datacenter: Readonly<Record<string, string>>;
  readonly offlineHosts: readonly string[];
  readonly vms: readonly SavedVm[];
  /** Absent in states that were saved before definitions could be changed. */
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

function savedVolumes(core: Core): SavedVolume[] {
  const rows: SavedVolume[] = [];
  for (const storage of core.world.storages.values()) {
    for (const [place, held] of storage.volumes) {
      for (const { bytes, ...volume } of held.values()) {
        const base64 = bytes === undefined ? {} : { base64: Buffer.from(bytes).toString('base64') };
        rows.push({ ...volume, storage: storage.id, place, ...base64 });
      }
    }
  }
  return rows;
}

export function stateOf(core: Core): SimState {
  const { world } = core;
  for (const vm of world.vms.values()) rememberGuest(core, vm.id);
  return {
    format: 1,
    quorate: world.quorate,
    datacenter: { ...world.datacenter },
    offlineHosts: [...world.hosts.values()].filter((host) => !host.online).map(({ name }) => name),
    vms: [...world.vms.values()].map((vm) => ({
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
    storages: [...world.storages.values()].map(({ volumes: _held, ...storage }) => storage),
    volumes: savedVolumes(core),
    users: [...world.users.values()].map((user) => ({
      ...user,
      tokens: [...user.tokens.values()],
    })),
    groups: [...world.groups].map(([id, members]) => [id, [...members]] as const),
    roles: [...world.roles].map(([id, privs]) => [id, [...privs]] as const),
    acl: [...world.acl],
    pools: [...world.pools].map(([id, pool]) => ({
      id,
      comment: pool.comment,
      vms: [...pool.vms],
      storages: [...pool.storages],
    })),
    ha: [...world.ha.values()],
    tasks: core.tasks.snapshot(),
  };
}

/** What a running guest has written so far is on its disk. */
function rememberGuest(core: Core, id: number): void {
  const vm = core.world.vms.get(id);
  const disk = vm?.running === undefined ? undefined : bootDisk(core, id);
  if (vm?.running === undefined || disk === undefined) return;
  disk.guestState = vm.running.guest.diskState();
  disk.everBooted = true;
}

function bootDisk(core: Core, id: number): Volume | undefined {
  for (const storage of core.world.storages.values()) {
    for (const held of storage.volumes.values()) {
      for (const volume of held.values()) {
        if (volume.vmId === id && /disk-0/.test(volume.name)) return volume;
      }
    }
  }
  return undefined;
}

function restoreAccess(core: Core, state: SimState): void {
  const { world } = core;
  world.users.clear();
  for (const user of state.users) {
    const tokens = new Map(user.tokens.map((token) => [token.id, { ...token }]));
    world.users.set(user.id, { ...user, password: user.password, tokens });
  }
  world.groups.clear();
  for (const [id, members] of state.groups) world.groups.set(id, new Set(members));
  for (const [id, privs] of state.roles) world.roles.set(id, new Set(privs));
  world.acl = [...state.acl];
  world.pools.clear();
  for (const { id, comment, vms, storages } of state.pools) {
    world.pools.set(id, { comment, vms: new Set(vms), storages: new Set(storages) });
  }
  world.accessVersion += 1;
}

function restoreStorages(core: Core, { storages }: SimState): void {
  if (storages === undefined) return;
  core.world.storages.clear();
  for (const storage of storages) {
    const { hosts, path } = storage;
    core.world.storages.set(storage.id, { ...storage, hosts, path, volumes: new Map() });
  }
}

function restoreVolumes(core: Core, state: SimState): void {
  for (const storage of core.world.storages.values()) storage.volumes.clear();
  for (const { storage: id, place, base64, ...volume } of state.volumes) {
    const storage = core.world.storages.get(id);
    if (storage === undefined) continue;
    const held = storage.volumes.get(place) ?? new Map<string, Volume>();
    storage.volumes.set(place, held);
    const bytes =
      base64 === undefined ? {} : { bytes: Uint8Array.from(Buffer.from(base64, 'base64')) };
    held.set(volume.name, { ...volume, virtualSize: volume.virtualSize, ...bytes });
  }
}

function restoreVms(core: Core, state: SimState): void {
  const { world } = core;
  for (const vm of world.vms.values()) vm.running?.guest.stop();
  world.vms.clear();
  for (const saved of state.vms) {
    const vm = {
      id: saved.id,
      host: saved.host,
      config: { ...saved.config },
      pending: { ...saved.pending },
      pendingDelete: new Set(saved.pendingDelete),
      snapshots: [...saved.snapshots],
      running: undefined,
      behaviour: saved.behaviour,
      broadcasts: [],
      createdAt: saved.createdAt,
    };
    world.vms.set(vm.id, vm);
    world.touch(vm);
    if (saved.running && world.hosts.get(vm.host)?.online === true) powerOn(core, vm, applyPending);
  }
}

export function restoreState(core: Core, state: SimState): void {
  const { world } = core;
  world.quorate = state.quorate;
  for (const name of Object.keys(world.datacenter)) delete world.datacenter[name];
  Object.assign(world.datacenter, state.datacenter);
  for (const host of world.hosts.values()) host.online = !state.offlineHosts.includes(host.name);
  restoreAccess(core, state);
  restoreStorages(core, state);
  restoreVolumes(core, state);
  restoreVms(core, state);
  world.ha.clear();
  for (const resource of state.ha) world.ha.set(resource.sid, { ...resource });
  core.tasks.restore(state.tasks);
}
