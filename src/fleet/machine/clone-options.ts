// SPDX-License-Identifier: Apache-2.0
// A clone has its template's options; this is what must become of them.
import type { Machine } from '../../model/machine.ts';
import type { DiskOptions, NetworkInterface, VmConfig } from '../../ports/hypervisor.ts';
import type { PoolSettings, RegionSettings } from '../context/settings.ts';
import { hardwareOf, tagsOf } from './vm-identity.ts';

const MEBIBYTE = 2 ** 20;

/** Only what differs: an unchanged clone is not written to. */
export function cloneChanges(
  config: VmConfig,
  machine: Machine,
  { pool, region }: { readonly pool: PoolSettings; readonly region: RegionSettings },
): Readonly<Record<string, string>> {
  const hardware = hardwareOf(machine, pool);
  const wanted: Record<string, string> = {
    ...hardware.options,
    agent: hardware.options['agent'] ?? '1',
    cores: String(hardware.cores),
    state: mebibytes(hardware.memoryBytes),
    balloon: mebibytes(hardware.balloonBytes),
    ...Object.fromEntries(hardware.networks.map((card, at) => [`net${at}`, cardText(card)])),
  };
  const slot = bootDiskSlot(config);
  const disk = config.options[slot ?? ''];
  if (slot !== undefined && disk !== undefined) {
    const controller = wanted['scsihw'] ?? config.options['scsihw'];
    wanted[slot] = diskText(disk, pool.disk, threadsOf(slot, controller));
  }
  const changed = Object.entries(wanted).filter(
    ([name, value]) => !isSame(config.options[name], value),
  );
  return {
    ...Object.fromEntries(changed),
    ...(config.smbiosUuid !== machine.id && { smbios1: `uuid=${machine.id}` }),
    ...tagChange(config, tagsOf(machine.pool, region)),
  };
}

/** Its template's tags are not its own. */
function tagChange(config: VmConfig, tags: readonly string[]): Record<string, string> {
  return tags.join() === config.tags.join() ? {} : { tags: tags.join(';') };
}

/** The same volume, attached as the pool wants it. */
function diskText(
  stored: string,
  disk: DiskOptions,
  has: { ssd: boolean; iothread: boolean },
): string {
  const [volume = '', ...parts] = stored.split(',');
  const kept = parts.filter((part) => !/^(discard|ssd|iothread|cache)=/.test(part));
  return [
    volume,
    ...kept,
    ...(disk.discard ? ['discard=on'] : []),
    ...(disk.ssd && has.ssd ? ['ssd=1'] : []),
    ...(disk.iothread && has.iothread ? ['iothread=1'] : []),
    ...(disk.cache === 'none' ? [] : [`cache=${disk.cache}`]),
  ].join(',');
}

/** What a slot can do: threads need a controller per disk, and virtio disks do not pretend to be an SSD. */
function threadsOf(slot: string, controller: string | undefined) {
  const isVirtio = slot.startsWith('virtio');
  const hasOwnController = slot.startsWith('scsi') && controller === 'virtio-scsi-single';
  return { ssd: !isVirtio, iothread: isVirtio || hasOwnController };
}

function cardText(card: NetworkInterface): string {
  return [
    card.mac === undefined ? card.model : `${card.model}=${card.mac}`,
    `bridge=${card.bridge}`,
    ...(card.vlan === undefined ? [] : [`tag=${card.vlan}`]),
    ...(card.mtu === undefined ? [] : [`mtu=${card.mtu}`]),
    ...(card.queues === undefined ? [] : [`queues=${card.queues}`]),
    ...(card.firewall === true ? ['firewall=1'] : []),
  ].join(',');
}

/** Proxmox keeps the parts of a property string, not their order or case. */
function isSame(stored: string | undefined, wanted: string): boolean {
  const parts = (text: string) => text.toLowerCase().split(',').sort().join();
  return stored !== undefined && parts(stored) === parts(wanted);
}

function mebibytes(bytes: number): string {
  return String(Math.ceil(bytes / MEBIBYTE));
}

/** The disk that the VM boots from. */
export function bootDiskSlot(config: Pick<VmConfig, 'options'>): string | undefined {
  const { options } = config;
  const isDisk = (slot: string) =>
    options[slot] !== undefined && !(options[slot] ?? '').includes('media=cdrom');
  const ordered = /order=([^,]+)/.exec(options['boot'] ?? '')?.[1]?.split(';') ?? [];
  return [...ordered, 'scsi0', 'virtio0', 'sata0', 'ide0']
    .filter((slot) => /^(scsi|virtio|sata|ide)\d+$/.test(slot))
    .find(isDisk);
}
