// SPDX-License-Identifier: Apache-2.0
import type { CreateVmOrder, NetworkInterface, VmHardware } from '../ports/hypervisor.ts';
import { formatProperties, parseProperties } from './vm-config.ts';
import { encodeSshKeys, type Parameters } from './wire-values.ts';

const MEBIBYTE = 2 ** 20;
const GIBIBYTE = 2 ** 30;

/**
 * Defaults for a new VM: a serial console (cloud images log to it, and some hang without it), the guest agent, and a
 * SCSI controller that supports one I/O thread per disk.
 */
const DEFAULT_OPTIONS: Readonly<Record<string, string>> = {
  ostype: 'l26',
  sockets: '1',
  agent: '1',
  scsihw: 'virtio-scsi-single',
  serial0: 'socket',
  vga: 'serial0',
};

/** The form of `POST /nodes/{node}/qemu`. Identity comes last, so that no option of a pool overrides it. */
export function formatCreateParameters(order: CreateVmOrder): Parameters {
  const { hardware, identity } = order;
  const options = { ...DEFAULT_OPTIONS, ...hardware.options };
  return {
    ...encodeOptions(options),
    cores: coresPerSocket(hardware),
    memory: toMebibytes(hardware.memoryBytes),
    balloon: toMebibytes(hardware.balloonBytes),
    ...formatNetworks(hardware.networks),
    scsi0: formatNewDisk(order, options['scsihw'] === 'virtio-scsi-single'),
    // By default Proxmox also tries CD and network.
    boot: hardware.bootFrom === 'disk' ? 'order=scsi0' : 'order=net0',
    vmid: order.vmId,
    name: identity.name,
    description: identity.description,
    tags: formatTags(identity.tags),
    smbios1: formatSmbios(hardware.options['smbios1'], identity.smbiosUuid),
    pool: order.resourcePool,
  };
}

/** Options to set and to remove. */
export interface OptionChange {
  readonly set?: Readonly<Record<string, string>>;
  readonly remove?: readonly string[];
}

/** The form of `PUT …/config`. */
export function formatChangeParameters({ set = {}, remove = [] }: OptionChange): Parameters {
  return {
    ...encodeOptions(set),
    delete: remove.length === 0 ? undefined : remove.join(','),
  };
}

/** Proxmox counts cores per socket. */
export function coresPerSocket({ cpus, options }: VmHardware): number {
  const sockets = Math.max(1, Number(options['sockets'] ?? 1));
  return Math.max(1, Math.ceil(cpus / sockets));
}

export function formatNetwork(network: NetworkInterface): string {
  const { model, mac } = network;
  return formatProperties(mac === undefined ? model : `${model}=${mac}`, {
    bridge: network.bridge,
    tag: network.vlan,
    mtu: network.mtu,
    queues: network.queues,
    firewall: network.firewall === true ? true : undefined,
  });
}

export function formatNetworks(list: readonly NetworkInterface[]): Record<string, string> {
  return Object.fromEntries(list.map((network, index) => [`net${index}`, formatNetwork(network)]));
}

function formatNewDisk(order: CreateVmOrder, supportsIoThread: boolean): string {
  const { disk } = order;
  // With `import-from` the size must be 0: the disk gets the size of the image and is grown later.
  const size = disk.importFrom === undefined ? Math.ceil(disk.bytes / GIBIBYTE) : 0;
  return formatProperties(`${disk.storage}:${size}`, {
    'import-from': disk.importFrom,
    discard: disk.discard === false ? undefined : 'on',
    // On other controllers the start task ends with a warning.
    iothread: supportsIoThread && disk.iothread !== false ? true : undefined,
    ssd: disk.ssd === true ? true : undefined,
    // `none` is the default of Proxmox.
    cache: disk.cache === 'none' ? undefined : disk.cache,
  });
}

/** A pool may set manufacturer or serial; the UUID is always the machine id. */
function formatSmbios(configured: string | undefined, uuid: string): string {
  const rest = Object.fromEntries(parseProperties(configured ?? '', 'uuid'));
  return formatProperties(undefined, { ...rest, uuid: uuid.toLowerCase() });
}

function formatTags(tags: readonly string[]): string | undefined {
  return tags.length === 0 ? undefined : [...new Set(tags)].sort().join(';');
}

function encodeOptions(options: Readonly<Record<string, string>>): Record<string, string> {
  const { sshkeys, ...rest } = options;
  return sshkeys === undefined ? rest : { ...rest, sshkeys: encodeSshKeys(sshkeys) };
}

export function toMebibytes(bytes: number): number {
  return Math.ceil(bytes / MEBIBYTE);
}
