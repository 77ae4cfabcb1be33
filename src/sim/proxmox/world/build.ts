// SPDX-License-Identifier: Apache-2.0
// From a description to a world: hosts, storages with their files, users, VMs with their disks.

import { addVolume, splitVolumeId, volumesOn } from '../storage/volumes.ts';
import { normaliseTags, withSmbiosUuid } from '../vm/config.ts';
import {
  defaultBootOrder,
  drivesOf,
  isCdrom,
  newDiskOf,
  nicsOf,
  printDrive,
  printNic,
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
} from './description.ts';
import type { Acl, Storage, Vm, Volume } from './model.ts';
import { SYSTEM_STORAGE_PATHS } from './paths.ts';
import { formatSize, parseSize, World, type WorldOptions } from './world.ts';

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

function addHost(world: World, host: HostDescription, index: number): void {
  world.hosts.set(host.name, {
    name: host.name,
    cpus: host.cpus,
    memory: host.memory,
    address: host.address ?? `192.0.2.${index + 11}`,
    bridges: (host.bridges ?? [{ name: 'vmbr0', dhcp: '10.20.0.0/16' }]).map((bridge) => ({
      name: bridge.name,
      dhcp: bridge.dhcp,
    })),
    online: host.online ?? true,
    whenOff: host.whenOff ?? 'no-route',
    since: world.clock.now(),
    nextPid: 1000 + index * 37,
  });
}

function fileVolume(world: World, file: FileDescription): Volume {
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
    createdAt: world.seconds(),
    checksums: file.checksums,
    backingFile: file.backingFile,
    image: content === 'import' ? name : undefined,
    guestState: undefined,
    everBooted: false,
  };
}

function storagePath({ type, path, name }: StorageDescription): string | undefined {
  if (!FILE_BASED.has(type)) return undefined;
  return path ?? SYSTEM_STORAGE_PATHS[name] ?? `/mnt/pve/${name}`;
}

export function addStorage(world: World, described: StorageDescription): void {
  const storage: Storage = {
    id: described.name,
    type: described.type,
    content: described.content,
    shared: described.shared ?? SHARED_TYPES.has(described.type),
    hosts: described.hosts,
    options: {},
    path: storagePath(described),
    size: described.size,
    used: described.used ?? 0,
    enabled: described.enabled ?? true,
    active: described.active ?? true,
    volumes: new Map(),
  };
  world.storages.set(storage.id, storage);
  for (const file of described.files ?? []) {
    for (const host of file.hosts ?? world.hosts.keys()) {
      volumesOn(storage, host).set(file.name, fileVolume(world, file));
    }
  }
}

function addUser(world: World, described: UserDescription): void {
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
  world.users.set(described.id, {
    id: described.id,
    password: described.password,
    enabled: described.enabled ?? true,
    expire: described.expire ?? 0,
    tokens: new Map(tokens),
  });
}

function aclOf(entry: AclDescription): Acl {
  const { path, role, user = '', group, token, propagate = true } = entry;
  if (token !== undefined) return { path, role, type: 'token', who: token, propagate };
  if (group !== undefined) return { path, role, type: 'group', who: group, propagate };
  return { path, role, type: 'user', who: user, propagate };
}

function addAccess(world: World, cluster: ClusterDescription): void {
  const { users = [], groups = [], roles = [], acl = [] } = cluster;
  addUser(world, { id: 'root@pam' });
  for (const user of users) addUser(world, user);
  for (const group of groups) world.groups.set(group.id, new Set(group.members));
  for (const role of roles) world.roles.set(role.id, new Set(role.privs));
  world.acl.push(...acl.map(aclOf));
}

function setDatacenter(world: World, described: DatacenterDescription): void {
  const { nextId, tagStyle, userTagAccess, registeredTags, macPrefix } = described;
  const put = (name: string, parts: readonly (string | undefined)[]) => {
    const text = parts.filter((part) => part !== undefined).join(',');
    if (text !== '') world.datacenter[name] = text;
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
  Object.assign(world.datacenter, described.options);
}

/** A volume that the description names as if it had always been there. */
function addNamedVolume(
  world: World,
  vm: Vm,
  at: { readonly file: string; readonly size: number; readonly image: string | undefined },
): void {
  const id = splitVolumeId(at.file);
  const storage = world.storages.get(id?.storage ?? '');
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
    createdAt: world.seconds(),
    base: undefined,
    image: at.image,
    guestState: undefined,
    everBooted: false,
  });
}

function addDisks(world: World, vm: Vm, image: string | undefined): void {
  for (const [slot, drive] of drivesOf(vm.config)) {
    if (isCdrom(drive) || drive.file === 'none') continue;
    const order = newDiskOf(drive);
    const storage = world.storages.get(order?.storage ?? '');
    if (order === undefined || storage === undefined) {
      const size = parseSize(drive.options['size'] ?? '32G') ?? 0;
      addNamedVolume(world, vm, { file: drive.file, size, image });
      continue;
    }
    const { format, ...rest } = drive.options;
    const volume = { vmId: vm.id, size: order.bytes, image, format };
    const file = addVolume(world, { storage, host: vm.host }, volume);
    const options = { ...rest, size: formatSize(order.bytes) };
    vm.config[slot] = printDrive({ file, options });
  }
}

function addVm(world: World, described: VmDescription): Vm {
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
    createdAt: world.clock.now(),
  };
  for (const [name, nic] of nicsOf(vm.config)) vm.config[name] = printNic(nic, world.newMac());
  if (vm.config['tags'] !== undefined) vm.config['tags'] = normaliseTags(world, vm.config['tags']);
  vm.config['smbios1'] ??= withSmbiosUuid(undefined, world.random.uuid());
  addDisks(world, vm, described.image);
  vm.config['boot'] ??= defaultBootOrder(vm.config);
  for (const { name, description } of described.snapshots ?? []) {
    const parent = vm.snapshots.at(-1)?.name;
    const takenAt = world.seconds();
    vm.snapshots.push({ name, description, takenAt, parent, config: { ...vm.config } });
  }
  world.vms.set(vm.id, vm);
  // Long known: the overview has it from the first moment.
  world.touch(vm);
  vm.broadcasts = vm.broadcasts.map((entry) => ({ ...entry, at: 0 }));
  return vm;
}

export interface Built {
  readonly world: World;
  /** VMs that the description wants running, or as templates: the caller makes them so. */
  readonly running: readonly Vm[];
  readonly templates: readonly Vm[];
}

export function buildWorld(cluster: ClusterDescription, options: WorldOptions): Built {
  const world = new World(options);
  world.clusterName = cluster.name ?? (cluster.hosts.length > 1 ? 'sim' : undefined);
  for (const [index, host] of cluster.hosts.entries()) addHost(world, host, index);
  const online = [...world.hosts.values()].filter((host) => host.online).length;
  world.quorate = online > world.hosts.size / 2;
  for (const storage of cluster.storages) addStorage(world, storage);
  addAccess(world, cluster);
  setDatacenter(world, cluster.datacenter ?? {});
  for (const url of cluster.urls ?? []) world.urls.set(url.url, url);
  world.guestRules = cluster.guests ?? [];
  const vms = (cluster.vms ?? []).map((described) => ({ described, vm: addVm(world, described) }));
  addRest(world, cluster);
  return {
    world,
    running: vms.filter(({ described }) => described.running === true).map(({ vm }) => vm),
    templates: vms.filter(({ described }) => described.template === true).map(({ vm }) => vm),
  };
}

function addContainer(world: World, described: ContainerDescription): void {
  const {
    id,
    host,
    name = `CT${id}`,
    running = false,
    memory = 512 * 2 ** 20,
    cpus = 1,
  } = described;
  world.containers.set(id, { id, host, name, running, memory, cpus });
}

function addRest(world: World, cluster: ClusterDescription): void {
  const { containers = [], pools = [], ha = [] } = cluster;
  for (const container of containers) addContainer(world, container);
  for (const { id, comment, vms, storages } of pools) {
    world.pools.set(id, { comment, vms: new Set(vms), storages: new Set(storages) });
  }
  for (const { sid, state = 'started', group, comment } of ha) {
    world.ha.set(sid, { sid, state, group, comment });
  }
}
