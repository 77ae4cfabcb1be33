// SPDX-License-Identifier: Apache-2.0
// A VM's configuration: lookup, digest, format in the API, lock, tags, memory.
import { createHash } from 'node:crypto';
import { endpointsOf } from '../../../proxmox/wire-facts/index.ts';
import { serverError } from '../api-error.ts';
import type { Core } from '../core.ts';
import { splitList } from '../schema/formats.ts';
import { findParamFact } from '../schema/verify.ts';
import type { ClusterState } from '../state/cluster-state.ts';
import type { Vm } from '../state/model.ts';
import type { VmOptions } from './drives.ts';

/** Returns the VM; throws the message of Proxmox' config loader when the host does not have it. */
export function loadVm(core: Core, host: string, id: number): Vm {
  const vm = core.state.vms.get(id);
  if (vm === undefined || vm.host !== host) {
    throw serverError(`Configuration file 'nodes/${host}/qemu-server/${id}.conf' does not exist`);
  }
  return vm;
}

/** Like `loadVm`, with the message of calls that look for the VM process first. */
export function findVm(core: Core, host: string, id: number): Vm {
  const vm = core.state.vms.get(id);
  if (vm === undefined || vm.host !== host) {
    throw serverError(`unable to find configuration file for VM ${id} on node '${host}'`);
  }
  return vm;
}

/** Without quorum, /etc/pve is read-only. */
export function requireWritable(core: Core, vm: Vm): void {
  if (core.state.quorate) return;
  const pid = core.state.hosts.get(vm.host)?.nextPid ?? 1;
  throw serverError(
    `unable to open file '/etc/pve/nodes/${vm.host}/qemu-server/${vm.id}.conf.tmp.${pid}' - Permission denied`,
  );
}

export function checkLock(vm: Vm): void {
  const lock = vm.config['lock'];
  if (lock !== undefined) throw serverError(`VM is locked (${lock})`);
}

export function isTemplate(vm: Vm): boolean {
  return vm.config['template'] === '1';
}

export function configDigest(vm: Vm): string {
  const lines = (options: VmOptions) =>
    Object.keys(options)
      .toSorted()
      .map((key) => `${key}: ${options[key]}`);
  const text = [
    ...lines(vm.config),
    '[PENDING]',
    ...lines(vm.pending),
    [...vm.pendingDelete].toSorted().join(','),
    ...vm.snapshots.flatMap((snapshot) => [`[${snapshot.name}]`, ...lines(snapshot.config)]),
  ].join('\n');
  return createHash('sha1').update(text).digest('hex');
}

export function checkDigest(vm: Vm, digest: string | undefined): void {
  if (digest !== undefined && digest !== '' && digest !== configDigest(vm)) {
    throw serverError('checksum mismatch (file change by other user?)');
  }
}

function optionType(state: ClusterState, name: string): string | undefined {
  const endpoint = endpointsOf(state.version).find(
    (row) => row.method === 'PUT' && row.path === '/nodes/{node}/qemu/{vmid}/config',
  );
  return endpoint === undefined ? undefined : findParamFact(endpoint.params, name)?.type;
}

export function isKnownOption(state: ClusterState, name: string): boolean {
  const notOptions = [
    'node',
    'vmid',
    'delete',
    'revert',
    'force',
    'digest',
    'skiplock',
    'background_delay',
    'cdrom',
    'import-working-storage',
  ];
  return !notOptions.includes(name) && optionType(state, name) !== undefined;
}

/** Value as in the JSON response: integers and booleans as numbers, passwords as asterisks. */
export function formatOptionValue(
  state: ClusterState,
  name: string,
  value: string,
): string | number {
  if (name === 'cipassword') return '**********';
  const type = optionType(state, name);
  const numeric = type === 'integer' || type === 'boolean';
  return numeric && /^\d+$/.test(value) ? Number(value) : value;
}

/** The response of GET config: with pending values applied, or with current values only. */
export function formatConfig(
  state: ClusterState,
  vm: Vm,
  current: boolean,
): Record<string, string | number> {
  const merged: Record<string, string> = { ...vm.config };
  if (!current) {
    Object.assign(merged, vm.pending);
    for (const name of vm.pendingDelete) delete merged[name];
  }
  const shown: Record<string, string | number> = { digest: configDigest(vm) };
  for (const [name, value] of Object.entries(merged))
    shown[name] = formatOptionValue(state, name, value);
  return shown;
}

/** Unique, lower-case, sorted tags, unless the datacenter options say otherwise. */
export function normaliseTags(state: ClusterState, text: string): string {
  const style = state.datacenter['tag-style'] ?? '';
  const caseSensitive = /case-sensitive=1/.test(style);
  const tags = splitList(text).map((tag) => (caseSensitive ? tag : tag.toLowerCase()));
  const unique = [...new Set(tags)];
  return (/ordering=config/.test(style) ? unique : unique.toSorted()).join(';');
}

/** Limits CPU units to the range of cgroup v2. */
export function clampCpuUnits(value: string): string {
  return String(Math.min(Math.max(Number(value), 1), 10_000));
}

export function memoryMib(config: VmOptions): number {
  return Number(/^(?:current=)?(\d+)/.exec(config['memory'] ?? '512')?.[1] ?? 512);
}

export function cpuCount(config: VmOptions): number {
  const all = Number(config['cores'] ?? 1) * Number(config['sockets'] ?? 1);
  return Math.min(all, Number(config['vcpus'] ?? all));
}

export function isAgentEnabled(config: VmOptions): boolean {
  return /^(?:enabled=)?(?:1|on|yes|true)(?:,|$)/i.test(config['agent'] ?? '');
}

export function parseSmbiosUuid(config: VmOptions): string {
  return /(?:^|,)uuid=([0-9a-fA-F-]{36})/.exec(config['smbios1'] ?? '')?.[1]?.toLowerCase() ?? '';
}

export function withSmbiosUuid(smbios1: string | undefined, uuid: string): string {
  const rest = (smbios1 ?? '')
    .split(',')
    .filter((part) => part !== '' && !part.startsWith('uuid='));
  return [`uuid=${uuid}`, ...rest].toSorted().join(',');
}
