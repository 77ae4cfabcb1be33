// SPDX-License-Identifier: Apache-2.0
// Builds the state from a cluster description: hosts, storages with files, users, VMs with disks.

import { addVolume, splitVolumeId, volumesOn } from '../storage/volumes.ts';
import { normaliseTags, withSmbiosUuid } from '../vm/config.ts';
import {
  defaultBootOrder,
  formatDrive,
  formatNic,
  isCdrom,
  parseDrives,
  parseNewDisk,
  parseNics,
} from '../vm/drives.ts';
import type {
  AclDescription,
  ClusterDescription,
  ContainerDescription,
  DatacenterDescription,
  FileDescription,
  HostDescription,
  StorageDescription,
  UserDescription,
  VmDescription,
} from './cluster-description.ts';
import { ClusterState, type ClusterStateOptions, formatSize, parseSize } from './cluster-state.ts';
import type { Acl, Storage, Vm, Volume } from './model.ts';

/** Storages that every Proxmox VE installation has at a fixed path. */
const SYSTEM_STORAGE_PATHS: Readonly<Record<string, string>> = { local: '/var/lib/vz' };

const FILE_BASED = new Set(['dir', 'nfs', 'cifs', 'cephfs', 'btrfs', 'glusterfs']);
const SHARED_TYPES = new Set([
  'nfs',
  'cifs',
  'cephfs',
  'rbd',
  'glusterfs',
  'iscsi',
  'iscsidirect',
  'zfs',
  'pbs',
  'esxi',
]);

function addHost(state: ClusterState, host: HostDescription, index: number): void {
  state.hosts.set(host.name, {
    name: host.name,
    cpus: host.cpus,
    memory: host.memory,
    address: host.address ?? `192.0.2.${index + 11}`,
    bridges: (host.bridges ?? [{ name: 'vmbr0', dhcp: '10.20.0.0/16' }]).map((bridge) => ({
      name: bridge.name,
      dhcp: bridge.dhcp,
      vlanAware: bridge.vlanAware,
      vlans: bridge.vlans,
    })),
    clockSkew: host.clockSkew,
    release: host.release,
    online: host.online ?? true,
    whenOff: host.whenOff ?? 'no-route',
    // A host that is off from the start has been off for long.
    onlineChangedAt: host.online === false ? 0 : state.clock.now(),
    nextPid: 1000 + index * 37,
  });
}

function toVolume(state: ClusterState, file: FileDescription): Volume {
  const [content = 'iso', name = file.name] = file.name.split(/\/(.*)/s);
  const extension = /\.([a-z0-9]+)$/i.exec(name)?.[1] ?? 'raw';
  const fixed: Readonly<Record<string, string>> = { iso: 'iso', snippets: 'snippet' };
  return {
    name: file.name,
    content,
    format: fixed[content] ?? extension,
    size: file.size,
    virtualSize: file.virtualSize,
    vmId: undefined,
    createdAt: state.nowSeconds(),
    checksums: file.checksums,
    backingFile: file.backingFile,
    image: content === 'import' ? name : undefined,
    guestState: undefined,
    everBooted: false,
  };
}

function findStoragePath({ type, path, name }: StorageDescription): string | undefined {
  if (!FILE_BASED.has(type)) return undefined;
  return path ?? SYSTEM_STORAGE_PATHS[name] ?? `/mnt/pve/${name}`;
}

export function addStorage(state: ClusterState, described: StorageDescription): void {
  const storage: Storage = {
    id: described.name,
    type: described.type,
    content: described.content,
    shared: described.shared ?? SHARED_TYPES.has(described.type),
    hosts: described.hosts,
    options: {},
    path: findStoragePath(described),
    size: described.size,
    used: described.used ?? 0,
    reserved: described.reserved ?? 0,
    enabled: described.enabled ?? true,
    active: described.active ?? true,
    volumes: new Map(),
  };
  state.storages.set(storage.id, storage);
  for (const file of described.files ?? []) {
    for (const host of file.hosts ?? state.hosts.keys()) {
      volumesOn(storage, host).set(file.name, toVolume(state, file));
    }
  }
}

function addUser(state: ClusterState, described: UserDescription): void {
  const tokens = (described.tokens ?? []).map(
    (token) =>
      [
        token.id,
        {
          id: token.id,
          secret: token.secret,
          privsep: token.privsep ?? true,
          expire: token.expire ?? 0,
          comment: token.comment,
        },
      ] as const,
  );
  state.users.set(described.id, {
    id: described.id,
    password: described.password,
    enabled: described.enabled ?? true,
    expire: described.expire ?? 0,
    tokens: new Map(tokens),
  });
}

function toAcl(entry: AclDescription): Acl {
  const { path, role, user = '', group, token, propagate = true } = entry;
  if (token !== undefined) return { path, role, type: 'token', who: token, propagate };
  if (group !== undefined) return { path, role, type: 'group', who: group, propagate };
  return { path, role, type: 'user', who: user, propagate };
}

function addAccess(state: ClusterState, cluster: ClusterDescription): void {
  const { users = [], groups = [], roles = [], acl = [] } = cluster;
  addUser(state, { id: 'root@pam' });
  for (const user of users) addUser(state, user);
  for (const group of groups) state.groups.set(group.id, new Set(group.members));
  for (const role of roles) state.roles.set(role.id, new Set(role.privs));
  state.acl.push(...acl.map(toAcl));
}

function setDatacenter(state: ClusterState, described: DatacenterDescription): void {
  const { nextId, tagStyle, userTagAccess, registeredTags, macPrefix } = described;
  const put = (name: string, parts: readonly (string | undefined)[]) => {
    const text = parts.filter((part) => part !== undefined).join(',');
    if (text !== '') state.datacenter[name] = text;
  };
  const part = (key: string, value: string | number | undefined) =>
    value === undefined ? undefined : `${key}=${value}`;
  put('next-id', [part('lower', nextId?.lower), part('upper', nextId?.upper)]);
  put('tag-style', [
    tagStyle?.caseSensitive === true ? 'case-sensitive=1' : undefined,
    part('ordering', tagStyle?.ordering),
  ]);
  put('user-tag-access', [
    part('user-allow', userTagAccess?.allow),
    part('user-allow-list', userTagAccess?.list?.join(';')),
  ]);
  put('registered-tags', [registeredTags?.join(';')]);
  put('mac_prefix', [macPrefix]);
  Object.assign(state.datacenter, described.options);
}

/** Adds a volume that the description refers to by its full id. */
function addNamedVolume(
  state: ClusterState,
  vm: Vm,
  at: { readonly file: string; readonly size: number; readonly image: string | undefined },
): void {
  const id = splitVolumeId(at.file);
  const storage = state.storages.get(id?.storage ?? '');
  if (id === undefined || storage === undefined) return;
  const volumes = volumesOn(storage, vm.host);
  if (volumes.has(id.name)) return;
  volumes.set(id.name, {
    name: id.name,
    content: 'images',
    format: /\.(qcow2|raw|vmdk)$/.exec(id.name)?.[1] ?? 'raw',
    size: at.size,
    virtualSize: undefined,
    vmId: vm.id,
    createdAt: state.nowSeconds(),
    base: undefined,
    image: at.image,
    guestState: undefined,
    everBooted: false,
  });
}

function addDisks(state: ClusterState, vm: Vm, image: string | undefined): void {
  for (const [slot, drive] of parseDrives(vm.config)) {
    if (isCdrom(drive) || drive.file === 'none') continue;
    const order = parseNewDisk(drive);
    const storage = state.storages.get(order?.storage ?? '');
    if (order === undefined || storage === undefined) {
      const size = parseSize(drive.options['size'] ?? '32G') ?? 0;
      addNamedVolume(state, vm, { file: drive.file, size, image });
      continue;
    }
    const { format, ...rest } = drive.options;
    const volume = { vmId: vm.id, size: order.bytes, image, format };
    const file = addVolume(state, { storage, host: vm.host }, volume);
    const options = { ...rest, size: formatSize(order.bytes) };
    vm.config[slot] = formatDrive({ file, options });
  }
}

function addVm(state: ClusterState, described: VmDescription): Vm {
  const vm: Vm = {
    id: described.id,
    host: described.host,
    config: { ...described.config },
    pending: {},
    pendingDelete: new Set(),
    snapshots: [],
    running: undefined,
    behaviour: described.guest,
    broadcasts: [],
    createdAt: state.clock.now(),
  };
  for (const [name, nic] of parseNics(vm.config))
    vm.config[name] = formatNic(nic, state.generateMac());
  if (vm.config['tags'] !== undefined) vm.config['tags'] = normaliseTags(state, vm.config['tags']);
  vm.config['smbios1'] ??= withSmbiosUuid(undefined, state.random.uuid());
  addDisks(state, vm, described.image);
  vm.config['boot'] ??= defaultBootOrder(vm.config);
  for (const { name, description } of described.snapshots ?? []) {
    const parent = vm.snapshots.at(-1)?.name;
    const takenAt = state.nowSeconds();
    vm.snapshots.push({ name, description, takenAt, parent, config: { ...vm.config } });
  }
  state.vms.set(vm.id, vm);
  // Date the broadcast back: /cluster/resources shows the VM from the start.
  state.recordStatus(vm);
  vm.broadcasts = vm.broadcasts.map((entry) => ({ ...entry, at: 0 }));
  return vm;
}

export interface BuiltCluster {
  readonly state: ClusterState;
  /** VMs that the caller has to start or to convert to templates. */
  readonly running: readonly Vm[];
  readonly templates: readonly Vm[];
}

export function buildClusterState(
  cluster: ClusterDescription,
  options: ClusterStateOptions,
): BuiltCluster {
  const state = new ClusterState(options);
  state.clusterName = cluster.name ?? (cluster.hosts.length > 1 ? 'sim' : undefined);
  state.hasSsh = cluster.ssh ?? true;
  for (const [index, host] of cluster.hosts.entries()) addHost(state, host, index);
  const online = [...state.hosts.values()].filter((host) => host.online).length;
  state.quorate = online > state.hosts.size / 2;
  for (const storage of cluster.storages) addStorage(state, storage);
  addAccess(state, cluster);
  setDatacenter(state, cluster.datacenter ?? {});
  for (const url of cluster.urls ?? []) state.urls.set(url.url, url);
  state.guestRules = cluster.guests ?? [];
  const vms = (cluster.vms ?? []).map((described) => ({ described, vm: addVm(state, described) }));
  addOtherResources(state, cluster);
  return {
    state,
    running: vms.filter(({ described }) => described.running === true).map(({ vm }) => vm),
    templates: vms.filter(({ described }) => described.template === true).map(({ vm }) => vm),
  };
}

function addContainer(state: ClusterState, described: ContainerDescription): void {
  const {
    id,
    host,
    name = `CT${id}`,
    running = false,
    memory = 512 * 2 ** 20,
    cpus = 1,
  } = described;
  state.containers.set(id, { id, host, name, running, memory, cpus });
}

function addOtherResources(state: ClusterState, cluster: ClusterDescription): void {
  const { containers = [], pools = [], ha = [] } = cluster;
  for (const container of containers) addContainer(state, container);
  for (const { id, comment, vms, storages } of pools) {
    state.pools.set(id, { comment, vms: new Set(vms), storages: new Set(storages) });
  }
  for (const { sid, state: haState = 'started', group, comment } of ha) {
    state.ha.set(sid, { sid, state: haState, group, comment });
  }
}
