// SPDX-License-Identifier: Apache-2.0
import type { CreateVmOrder, VmConfig, VmSummary } from '../hypervisor.ts';
import type { MemoryVm } from './memory-region.ts';

const MEBIBYTE = 2 ** 20;

export function optionsOf(order: CreateVmOrder): Map<string, string> {
  const { identity, hardware, disk } = order;
  const networks = hardware.networks.map((network, index): [string, string] => [
    `net${index}`,
    `${network.model},bridge=${network.bridge}`,
  ]);
  return new Map([
    ...Object.entries(hardware.options),
    ...networks,
    ['name', identity.name],
    ['description', identity.description],
    ['tags', identity.tags.join(';')],
    ['smbios1', `uuid=${identity.smbiosUuid}`],
    ['cores', String(hardware.cores)],
    ['memory', String(Math.ceil(hardware.memoryBytes / MEBIBYTE))],
    ['scsi0', diskOption(order.vmId, disk.storage, disk.bytes)],
  ]);
}

export function diskOption(vmId: number, storage: string, bytes: number): string {
  return `${storage}:vm-${vmId}-disk-0,size=${Math.ceil(bytes / MEBIBYTE)}M`;
}

export function diskBytes(option: string): number {
  return Number(/size=(\d+)M/.exec(option)?.[1] ?? 0) * MEBIBYTE;
}

export function tagsOf(vm: MemoryVm): readonly string[] {
  const tags = (vm.options.get('tags') ?? '').toLowerCase().split(/[;, ]+/);
  return [...new Set(tags)].filter((tag) => tag !== '').sort();
}

export function configOf(vm: MemoryVm): VmConfig {
  const { options } = vm;
  return {
    vmId: vm.vmId,
    host: vm.host,
    digest: `revision-${vm.revision}`,
    name: options.get('name'),
    description: options.get('description'),
    tags: tagsOf(vm),
    smbiosUuid: /uuid=([^,]+)/.exec(options.get('smbios1') ?? '')?.[1]?.toLowerCase(),
    lock: options.get('lock'),
    isTemplate: options.get('template') === '1',
    cpus: cpusOf(vm),
    memoryBytes: memoryBytesOf(vm),
    addresses: [...options]
      .filter(([name]) => name.startsWith('ipconfig'))
      .flatMap(([, value]) => /ip=([^,]+\/\d+)/.exec(value)?.[1] ?? []),
    options: Object.fromEntries(options),
  };
}

export function summaryOf(vm: MemoryVm, isHostOnline: boolean): VmSummary {
  const power = vm.startedAt === undefined ? 'stopped' : 'running';
  const isBeingMade = ['create', 'clone'].includes(vm.options.get('lock') ?? '');
  return {
    vmId: vm.vmId,
    host: vm.host,
    name: vm.options.get('name'),
    power: isHostOnline ? power : 'unknown',
    tags: tagsOf(vm),
    isTemplate: vm.options.get('template') === '1',
    lock: vm.options.get('lock'),
    cpus: isBeingMade ? undefined : cpusOf(vm),
    memoryBytes: isBeingMade ? undefined : memoryBytesOf(vm),
  };
}

function cpusOf(vm: MemoryVm): number {
  return Number(vm.options.get('cores') ?? 1) * Number(vm.options.get('sockets') ?? 1);
}

function memoryBytesOf(vm: MemoryVm): number {
  return Number(vm.options.get('memory') ?? 512) * MEBIBYTE;
}
