// SPDX-License-Identifier: Apache-2.0
import type { VmConfig, VmRef } from '../ports/hypervisor.ts';
import { findSeedVolume, parseBootDisk, type VmOptions } from './drives.ts';
import { asBoolean, asNumber, asObject, asText } from './json.ts';
import { parseProperties } from './property-string.ts';

const MEBIBYTE = 2 ** 20;
/** What Proxmox gives a VM whose configuration does not say. */
const DEFAULT_MEMORY_MEBIBYTES = 512;

export interface ParsedVmConfig {
  readonly config: VmConfig;
  /** Every option as Proxmox stores it. */
  readonly options: VmOptions;
}

export function parseVmConfig(vm: VmRef, data: unknown): ParsedVmConfig {
  const { digest, ...stored } = asObject(data);
  const options: Record<string, string> = {};
  for (const [name, value] of Object.entries(stored)) {
    const text = asText(value);
    if (text !== undefined) options[name] = text;
  }
  return { config: buildVmConfig(vm, asText(digest) ?? '', options), options };
}

function buildVmConfig(vm: VmRef, digest: string, options: VmOptions): VmConfig {
  return {
    vmId: vm.vmId,
    host: vm.host,
    digest,
    name: options['name'],
    description: options['description']?.replace(/\s+$/, ''),
    tags: parseTags(options['tags']),
    smbiosUuid: parseSmbiosUuid(options['smbios1']),
    lock: options['lock'],
    isBeingCreated: isCreationLock(options['lock']),
    isProtected: asBoolean(options['protection']),
    isTemplate: asBoolean(options['template']),
    cpus: countCpus(options),
    memoryBytes: parseMemoryMebibytes(options['memory']) * MEBIBYTE,
    bootDisk: parseBootDisk(options),
    seedVolume: findSeedVolume(options),
    addresses: parseAddresses(options),
  };
}

/**
 * The lock alone decides. A clone has a temporary description first, and the final one as soon as its first disk is
 * copied; either way the VM is removed again when its task fails.
 */
export function isCreationLock(lock: string | undefined): boolean {
  return lock === 'create' || lock === 'clone';
}

/** Sorted and in lower case: the tag style of the data center decides how Proxmox itself returns them. */
export function parseTags(text: string | undefined): readonly string[] {
  const tags = (text ?? '').split(/[;,\s]+/).filter((tag) => tag !== '');
  return [...new Set(tags.map((tag) => tag.toLowerCase()))].sort();
}

function parseSmbiosUuid(smbios1: string | undefined): string | undefined {
  return parseProperties(smbios1 ?? '', 'uuid')
    .get('uuid')
    ?.toLowerCase();
}

/** With `vcpus`, so many of the cores are plugged in; more than there are means all of them. */
function countCpus(options: VmOptions): number {
  const cores = (asNumber(options['cores']) ?? 1) * (asNumber(options['sockets']) ?? 1);
  return Math.min(cores, asNumber(options['vcpus']) ?? cores);
}

/** `2048`, or since 8.1 `current=2048`. */
function parseMemoryMebibytes(memory: string | undefined): number {
  return (
    asNumber(parseProperties(memory ?? '', 'current').get('current')) ?? DEFAULT_MEMORY_MEBIBYTES
  );
}

function parseAddresses(options: VmOptions): readonly string[] {
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
