// SPDX-License-Identifier: Apache-2.0
import { createHash } from 'node:crypto';
import type {
  CreateVmOrder,
  VmConfig,
  VmHardware,
  VmSpec,
  VmSummary,
  VolumeContent,
} from '../hypervisor.ts';
import type { MemoryVm } from './memory-region.ts';

const MEBIBYTE = 2 ** 20;

/** The drive to which the seed ISO is attached. */
export const SEED_OPTION = 'ide2';

type Option = readonly [name: string, value: string];

export function orderOptions(order: CreateVmOrder): Map<string, string> {
  const { identity, hardware, disk } = order;
  return new Map([
    ...hardwareOptions(hardware),
    ['name', identity.name],
    ['description', identity.description],
    ...identityOptions(identity),
    ['scsi0', formatDisk(order.vmId, disk.storage, disk.bytes)],
  ]);
}

export function specOptions(spec: VmSpec): readonly Option[] {
  return [...hardwareOptions(spec.hardware), ...identityOptions(spec)];
}

function identityOptions({ tags, smbiosUuid }: Pick<VmSpec, 'tags' | 'smbiosUuid'>): Option[] {
  return [
    ['tags', tags.join(';')],
    ['smbios1', `uuid=${smbiosUuid}`],
  ];
}

function hardwareOptions({ options, networks, cpus, memoryBytes }: VmHardware): Option[] {
  const sockets = Number(options['sockets'] ?? 1);
  return [
    ['sockets', String(sockets)],
    ...Object.entries(options),
    ...networks.map(({ model, bridge }, at): Option => [`net${at}`, `${model},bridge=${bridge}`]),
    ['cores', String(Math.ceil(cpus / sockets))],
    ['memory', String(Math.ceil(memoryBytes / MEBIBYTE))],
  ];
}

export function formatVolumeId(file: {
  readonly storage: string;
  readonly content: VolumeContent;
  readonly name: string;
}): string {
  return `${file.storage}:${file.content}/${file.name}`;
}

export function formatDisk(vmId: number, storage: string, bytes: number): string {
  return `${storage}:vm-${vmId}-disk-0,size=${Math.ceil(bytes / MEBIBYTE)}M`;
}

/** Reads the format of formatDisk only. */
export function parseDiskBytes(option: string): number {
  return Number(/size=(\d+)M/.exec(option)?.[1] ?? 0) * MEBIBYTE;
}

export function parseTags(vm: MemoryVm): readonly string[] {
  const tags = (vm.options.get('tags') ?? '').toLowerCase().split(/[;, ]+/);
  return [...new Set(tags)].filter((tag) => tag !== '').sort();
}

export function toVmConfig(vm: MemoryVm): VmConfig {
  const { options } = vm;
  return {
    vmId: vm.vmId,
    host: vm.host,
    digest: digestOf(vm),
    name: options.get('name'),
    description: options.get('description'),
    tags: parseTags(vm),
    smbiosUuid: /uuid=([^,]+)/.exec(options.get('smbios1') ?? '')?.[1]?.toLowerCase(),
    lock: options.get('lock'),
    isBeingCreated: isBeingCreated(vm),
    isProtected: options.get('protection') === '1',
    isTemplate: options.get('template') === '1',
    cpus: countCpus(vm),
    memoryBytes: readMemoryBytes(vm),
    addresses: [...options]
      .filter(([name]) => name.startsWith('ipconfig'))
      .flatMap(([, value]) => /ip=([^,]+\/\d+)/.exec(value)?.[1] ?? []),
    bootDisk: parseBootDisk(options.get('scsi0')),
    seedVolume: /^[^:,]+:iso\/[^,]+/.exec(options.get(SEED_OPTION) ?? '')?.[0],
  };
}

/** Two VMs have different digests even if both were changed equally often. */
function digestOf({ vmId, revision, options }: MemoryVm): string {
  const lines = [...options].map(([name, value]) => `${name}: ${value}`).toSorted();
  return createHash('sha1')
    .update([vmId, revision, ...lines].join('\n'))
    .digest('hex');
}

function parseBootDisk(stored: string | undefined): VmConfig['bootDisk'] {
  if (stored === undefined) return undefined;
  return { storage: stored.split(':')[0] ?? '', bytes: parseDiskBytes(stored) };
}

function isBeingCreated(vm: MemoryVm): boolean {
  return ['create', 'clone'].includes(vm.options.get('lock') ?? '');
}

export function toVmSummary(vm: MemoryVm, isHostOnline: boolean): VmSummary {
  const power = vm.startedAt === undefined ? 'stopped' : 'running';
  const isIncomplete = isBeingCreated(vm);
  return {
    vmId: vm.vmId,
    host: vm.host,
    name: vm.options.get('name'),
    power: isHostOnline ? power : 'unknown',
    tags: parseTags(vm),
    isTemplate: vm.options.get('template') === '1',
    lock: vm.options.get('lock'),
    isBeingCreated: isIncomplete,
    cpus: isIncomplete ? undefined : countCpus(vm),
    memoryBytes: isIncomplete ? undefined : readMemoryBytes(vm),
  };
}

function countCpus(vm: MemoryVm): number {
  return Number(vm.options.get('cores') ?? 1) * Number(vm.options.get('sockets') ?? 1);
}

function readMemoryBytes(vm: MemoryVm): number {
  return Number(vm.options.get('memory') ?? 512) * MEBIBYTE;
}
