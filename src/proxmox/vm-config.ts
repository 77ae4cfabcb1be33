// SPDX-License-Identifier: Apache-2.0
import type { VmConfig, VmRef } from '../ports/hypervisor.ts';
import { bootDiskOf, seedVolumeOf, type VmOptions } from './drives.ts';
import { flagOf, numberOf, recordOf, textOf } from './json.ts';
import { parseProperties } from './property-string.ts';
import { tagsOf } from './tags.ts';

const MEBIBYTE = 2 ** 20;
/** What Proxmox gives a VM whose configuration does not say. */
const DEFAULT_MEMORY_MIB = 512;

export interface StoredConfig {
  readonly config: VmConfig;
  /** Every option as Proxmox stores it. */
  readonly options: VmOptions;
}

export function storedConfigOf(vm: VmRef, data: unknown): StoredConfig {
  const { digest, ...stored } = recordOf(data);
  const options: Record<string, string> = {};
  for (const [name, value] of Object.entries(stored)) {
    const text = textOf(value);
    if (text !== undefined) options[name] = text;
  }
  return { config: vmConfigOf(vm, textOf(digest) ?? '', options), options };
}

function vmConfigOf(vm: VmRef, digest: string, options: VmOptions): VmConfig {
  return {
    vmId: vm.vmId,
    host: vm.host,
    digest,
    name: options['name'],
    description: options['description']?.replace(/\s+$/, ''),
    tags: tagsOf(options['tags']),
    smbiosUuid: smbiosUuidOf(options['smbios1']),
    lock: options['lock'],
    isBeingCreated: isCreationLock(options['lock']),
    isProtected: flagOf(options['protection']),
    isTemplate: flagOf(options['template']),
    cpus: cpusOf(options),
    memoryBytes: memoryMiBOf(options['memory']) * MEBIBYTE,
    bootDisk: bootDiskOf(options),
    seedVolume: seedVolumeOf(options),
    addresses: addressesOf(options),
  };
}

/**
 * The lock alone decides. A clone has a temporary description first, and the final one as soon as its first disk is
 * copied; either way the VM is removed again when its task fails.
 */
export function isCreationLock(lock: string | undefined): boolean {
  return lock === 'create' || lock === 'clone';
}

function smbiosUuidOf(smbios1: string | undefined): string | undefined {
  return parseProperties(smbios1 ?? '', 'uuid')
    .get('uuid')
    ?.toLowerCase();
}

/** With `vcpus`, so many of the cores are plugged in; more than there are means all of them. */
function cpusOf(options: VmOptions): number {
  const cores = (numberOf(options['cores']) ?? 1) * (numberOf(options['sockets']) ?? 1);
  return Math.min(cores, numberOf(options['vcpus']) ?? cores);
}

/** `2048`, or since 8.1 `current=2048`. */
function memoryMiBOf(memory: string | undefined): number {
  return numberOf(parseProperties(memory ?? '', 'current').get('current')) ?? DEFAULT_MEMORY_MIB;
}

function addressesOf(options: VmOptions): readonly string[] {
  return Object.keys(options)
    .filter((name) => /^ipconfig\d+$/.test(name))
    .sort((a, b) => Number(a.slice('ipconfig'.length)) - Number(b.slice('ipconfig'.length)))
    .flatMap((name) => {
      const properties = parseProperties(options[name] ?? '', 'ip');
      return [properties.get('ip'), properties.get('ip6')];
    })
    .filter((address) => address?.includes('/') === true)
    .flatMap((address) => address ?? []);
}
