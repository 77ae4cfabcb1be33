// SPDX-License-Identifier: Apache-2.0
import type { VmConfig, VmRef } from '../ports/hypervisor.ts';
import { flagOf, numberOf, recordOf, textOf } from './json.ts';
import { parseProperties } from './property-string.ts';
import { tagsOf } from './view.ts';

const MEBIBYTE = 2 ** 20;
/** What Proxmox gives a VM whose configuration does not say. */
const DEFAULT_MEMORY_MIB = 512;

export function vmConfigOf(vm: VmRef, data: unknown): VmConfig {
  const { digest, ...stored } = recordOf(data);
  const options: Record<string, string> = {};
  for (const [name, value] of Object.entries(stored)) {
    const text = textOf(value);
    if (text !== undefined) options[name] = text;
  }
  return {
    vmId: vm.vmId,
    host: vm.host,
    digest: textOf(digest) ?? '',
    name: options['name'],
    description: options['description']?.replace(/\s+$/, ''),
    tags: tagsOf(options['tags']),
    smbiosUuid: smbiosUuidOf(options['smbios1']),
    lock: options['lock'],
    isTemplate: flagOf(stored['template']),
    cpus: cpusOf(options),
    memoryBytes: memoryMiBOf(options['memory']) * MEBIBYTE,
    addresses: addressesOf(options),
    options,
  };
}

function smbiosUuidOf(smbios1: string | undefined): string | undefined {
  return parseProperties(smbios1 ?? '', 'uuid')
    .get('uuid')
    ?.toLowerCase();
}

/** With `vcpus`, so many of the cores are plugged in; more than there are means all of them. */
function cpusOf(options: Readonly<Record<string, string>>): number {
  const cores = (numberOf(options['cores']) ?? 1) * (numberOf(options['sockets']) ?? 1);
  return Math.min(cores, numberOf(options['vcpus']) ?? cores);
}

/** `2048`, or since 8.1 `current=2048`. */
function memoryMiBOf(memory: string | undefined): number {
  return numberOf(parseProperties(memory ?? '', 'current').get('current')) ?? DEFAULT_MEMORY_MIB;
}

function addressesOf(options: Readonly<Record<string, string>>): readonly string[] {
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
