// SPDX-License-Identifier: Apache-2.0
// A VM's configuration: finding it, its digest, how the API shows it, its lock, tags, memory.
import { createHash } from 'node:crypto';
import { endpointsOf } from '../../../proxmox/wire-facts/index.ts';
import { serverError } from '../api-error.ts';
import type { Core } from '../core.ts';
import { splitList } from '../schema/formats.ts';
import { findParamFact } from '../schema/verify.ts';
import type { ClusterState } from '../state/cluster-state.ts';
import type { Vm } from '../state/model.ts';
import type { VmOptions } from './drives.ts';

/** The VM, if that host has it; otherwise the text that the host gives. */
export function loadVm(core: Core, host: string, id: number): Vm {
  const vm = core.state.vms.get(id);
  if (vm === undefined || vm.host !== host) {
    throw serverError(`Configuration file 'nodes/${host}/qemu-server/${id}.conf' does not exist`);
  }
  return vm;
}

/** The same question, asked by those who look for the process first: another text. */
export function findVm(core: Core, host: string, id: number): Vm {
  const vm = core.state.vms.get(id);
  if (vm === undefined || vm.host !== host) {
    throw serverError(`unable to find configuration file for VM ${id} on node '${host}'`);
  }
  return vm;
}

/** Without a majority the cluster's files can be read only. */
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

/** Whether Proxmox knows an option of that name. */
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

/** As JSON: whole numbers and booleans are numbers, passwords stars. */
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

/** What GET config answers: pending values shown as if applied, unless the current ones are asked for. */
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

/** Tags as they are written back: each once, lower case, sorted, unless the datacenter wants otherwise. */
export function normaliseTags(state: ClusterState, text: string): string {
  const style = state.datacenter['tag-style'] ?? '';
  const caseSensitive = /case-sensitive=1/.test(style);
  const tags = splitList(text).map((tag) => (caseSensitive ? tag : tag.toLowerCase()));
  const unique = [...new Set(tags)];
  return (/ordering=config/.test(style) ? unique : unique.toSorted()).join(';');
}

/** Shares of CPU time, as far as the host's control groups can express them. */
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
  return /^(?:enabled=)?1/.test(config['agent'] ?? '');
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
