// SPDX-License-Identifier: Apache-2.0
import type { VmConfig, VmRef } from '../ports/hypervisor.ts';
import { findSeedVolume, parseBootDisk, parseProperties, type VmOptions } from './drives.ts';
import { asBoolean, asNumber, asObject, asText } from './wire-values.ts';

const MEBIBYTE = 2 ** 20;
/** The default of Proxmox for a configuration without `memory`. */
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
 * Only the lock shows that a create or clone task is in progress. A clone already has its final description once its
 * first disk is copied, but Proxmox still removes the VM if the task fails.
 */
export function isCreationLock(lock: string | undefined): boolean {
  return lock === 'create' || lock === 'clone';
}

/** Sorts and lower-cases the tags, as Proxmox does unless the data center's tag style differs. */
export function parseTags(text: string | undefined): readonly string[] {
  const tags = (text ?? '').split(/[;,\s]+/).filter((tag) => tag !== '');
  return [...new Set(tags.map((tag) => tag.toLowerCase()))].sort();
}

function parseSmbiosUuid(smbios1: string | undefined): string | undefined {
  return parseProperties(smbios1 ?? '', 'uuid')
    .get('uuid')
    ?.toLowerCase();
}

/** `vcpus` limits how many of the cores are plugged in. */
function countCpus(options: VmOptions): number {
  const cores = (asNumber(options['cores']) ?? 1) * (asNumber(options['sockets']) ?? 1);
  return Math.min(cores, asNumber(options['vcpus']) ?? cores);
}

/** Accepts `2048` and, since 8.1, `current=2048`. */
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
