// SPDX-License-Identifier: Apache-2.0
// The state of the simulated cluster, with simple lookups. Permission checks and simulated durations belong to
// its callers.

import type { Clock } from '../../../ports/clock.ts';
import type { Random } from '../../../ports/random.ts';
import { type ApiVersion, builtInRoles } from '../../../proxmox/wire-facts/index.ts';
import type { GuestRule, UrlDescription } from './cluster-description.ts';
import { DhcpLeases } from './dhcp-leases.ts';
import type {
  Acl,
  Container,
  HaResource,
  Host,
  Pool,
  StatusBroadcast,
  Storage,
  User,
  Vm,
} from './model.ts';

/** How often the status daemon (pvestatd) of a host broadcasts. */
export const STATUS_INTERVAL_MS = 10_000;
/** How long the broadcasts of an offline host stay valid. */
export const STATUS_EXPIRY_MS = 300_000;

export interface ClusterStateOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly speed: number;
  readonly version: ApiVersion;
}

export class ClusterState {
  readonly clock: Clock;
  readonly random: Random;
  readonly speed: number;
  readonly version: ApiVersion;
  clusterName: string | undefined;
  quorate = true;
  /** Options of datacenter.cfg, in the format of the API. */
  readonly datacenter: Record<string, string> = {};
  readonly hosts = new Map<string, Host>();
  readonly storages = new Map<string, Storage>();
  readonly vms = new Map<number, Vm>();
  readonly containers = new Map<number, Container>();
  readonly users = new Map<string, User>();
  readonly groups = new Map<string, Set<string>>();
  readonly roles: Map<string, ReadonlySet<string>>;
  acl: Acl[] = [];
  readonly pools = new Map<string, Pool>();
  /** Whether root can log in by ssh from host to host. */
  hasSsh = true;
  /** Temporary files of uploads that could not be passed on, as `host:path`. */
  readonly leftUploads: string[] = [];
  readonly ha = new Map<string, HaResource>();
  readonly urls = new Map<string, UrlDescription>();
  guestRules: readonly GuestRule[] = [];
  readonly dhcpLeases = new DhcpLeases();
  /** Incremented on every change of permissions, to invalidate caches. */
  accessVersion = 0;

  constructor(options: ClusterStateOptions) {
    this.clock = options.clock;
    this.random = options.random;
    this.speed = options.speed;
    this.version = options.version;
    this.roles = new Map(
      Object.entries(builtInRoles(options.version)).map(([id, privs]) => [id, new Set(privs)]),
    );
  }

  /** Seconds since 1970, the usual time stamp on the wire. */
  nowSeconds(): number {
    return Math.floor(this.clock.now() / 1000);
  }

  /** Host and type of the VM or container with this id. */
  findGuest(id: number): { readonly host: string; readonly type: 'VM' | 'CT' } | undefined {
    const vm = this.vms.get(id);
    if (vm !== undefined) return { host: vm.host, type: 'VM' };
    const container = this.containers.get(id);
    return container === undefined ? undefined : { host: container.host, type: 'CT' };
  }

  findPool(id: number): string | undefined {
    for (const [name, pool] of this.pools) if (pool.vms.has(id)) return name;
    return undefined;
  }

  /** A random MAC address with the prefix that Proxmox uses. */
  generateMac(): string {
    const prefix = this.datacenter['mac_prefix'] ?? 'BC:24:11';
    const missing = 6 - prefix.split(':').filter((part) => part !== '').length;
    const rest = Array.from(this.random.bytes(missing), (byte) =>
      byte.toString(16).toUpperCase().padStart(2, '0'),
    );
    return [prefix.replace(/:$/, ''), ...rest].join(':').toUpperCase();
  }

  /** Records the VM's status for the next broadcast of its host. */
  recordStatus(vm: Vm): void {
    const now = this.clock.now();
    const entry: StatusBroadcast = { at: now, ...this.#currentStatus(vm) };
    const lastBroadcastAt = this.#lastBroadcastTime(vm.host, now);
    const settled = vm.broadcasts.findLastIndex((known) => known.at <= lastBroadcastAt);
    vm.broadcasts = [...vm.broadcasts.slice(Math.max(0, settled)), entry];
  }

  /** The status that /cluster/resources shows; undefined before the first broadcast and after the last one expired. */
  lastBroadcast(vm: Vm): StatusBroadcast | undefined {
    const host = this.hosts.get(vm.host);
    const now = this.clock.now();
    if (host === undefined) return undefined;
    if (!host.online && now - host.onlineChangedAt > STATUS_EXPIRY_MS / this.speed)
      return undefined;
    const lastBroadcastAt = this.#lastBroadcastTime(
      vm.host,
      host.online ? now : host.onlineChangedAt,
    );
    return vm.broadcasts.findLast((entry) => entry.at <= lastBroadcastAt);
  }

  /** After a migration the VM's status is unknown until its new host broadcasts. */
  recordMove(vm: Vm): void {
    vm.broadcasts = [];
    this.recordStatus(vm);
  }

  #currentStatus(vm: Vm): Omit<StatusBroadcast, 'at'> {
    const memory = /^(?:current=)?(\d+)/.exec(vm.config['memory'] ?? '512')?.[1] ?? '512';
    return {
      name: vm.config['name'] ?? `VM ${vm.id}`,
      status: vm.running === undefined ? 'stopped' : 'running',
      cpus: this.#pluggedCpus(vm),
      memory: Number(memory) * 2 ** 20,
      disk: bootDiskBytes(vm.config),
      startedAt: vm.running?.startedAt,
    };
  }

  /** Plugged-in CPUs; pvestatd never reports more than the host has. */
  #pluggedCpus({ host, config }: Vm): number {
    const cores = Number(config['cores'] ?? 1) * Number(config['sockets'] ?? 1);
    const hostCpus = this.hosts.get(host)?.cpus ?? cores;
    return Math.min(cores, Number(config['vcpus'] ?? cores), hostCpus);
  }

  /** Time of the host's last broadcast. Each host has its own phase. */
  #lastBroadcastTime(host: string, now: number): number {
    const interval = STATUS_INTERVAL_MS / this.speed;
    const names = [...this.hosts.keys()];
    const phase = (interval * names.indexOf(host)) / Math.max(1, names.length);
    return Math.floor((now - phase) / interval) * interval + phase;
  }
}

const UNITS: Readonly<Record<string, number>> = { K: 2 ** 10, M: 2 ** 20, G: 2 ** 30, T: 2 ** 40 };

/** `32G` → bytes. */
export function parseSize(text: string): number | undefined {
  const match = /^(\d+(?:\.\d+)?)([KMGT])?$/.exec(text);
  if (match === null) return undefined;
  return Math.floor(Number(match[1]) * (UNITS[match[2] ?? ''] ?? 1));
}

/** Bytes → size in the largest unit that divides them. */
export function formatSize(bytes: number): string {
  let size = Math.floor(bytes);
  for (const unit of ['', 'K', 'M', 'G']) {
    if (size % 1024 !== 0) return `${size}${unit}`;
    size /= 1024;
  }
  return `${size}T`;
}

function bootDiskBytes(config: Readonly<Record<string, string>>): number {
  const order = /order=([^,]+)/.exec(config['boot'] ?? '')?.[1]?.split(';') ?? [];
  const drive = [...order, 'scsi0', 'virtio0', 'sata0', 'ide0'].find(
    (name) => /,size=/.test(config[name] ?? '') && !/media=cdrom/.test(config[name] ?? ''),
  );
  const size = /,size=([^,]+)/.exec(config[drive ?? ''] ?? '')?.[1];
  return size === undefined ? 0 : (parseSize(size) ?? 0);
}
