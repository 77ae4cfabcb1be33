// SPDX-License-Identifier: Apache-2.0
// The storages of a region on each host: content types, free space, and a storage of their own for seeds.
import { formatBytes } from '../model/format-text.ts';
import type { Host } from '../model/host.ts';
import { type Check, failure, type Outcome, ok, skipped, warning } from './check.ts';
import type { RegionReader } from './region-reader.ts';

const GIB = 2 ** 30;
const MIB = 2 ** 20;
/** A seed ISO is smaller than a MiB; the image grows to its virtual size only on the disk's storage. */
const SPACE_FOR_SEEDS = 16 * MIB;
const SPACE_FOR_IMAGE = 2 * GIB;

interface StorageUse {
  readonly key: string;
  readonly name: string;
  readonly content: string;
  /** Free bytes that one more machine needs at most. */
  readonly bytes: number;
}

/** `Datastore.Allocate`, which deleting a seed needs, also allows to delete everything else on the storage. */
export function seedStorageCheck({ region, group }: RegionReader): Check {
  return {
    name: 'seed-storage',
    group,
    run: () => {
      const { seeds, images, disks } = region.storage;
      const others = [
        ...(images === seeds ? ['images'] : []),
        ...(disks.includes(seeds) ? ['disks'] : []),
      ];
      return Promise.resolve(
        others.length === 0
          ? ok(`${seeds} is for seeds only`)
          : warning(
              `storage.seeds and storage.${others.join(' and storage.')} are the same, ${seeds}: the right to delete seeds there covers all files on it`,
              `Create a storage for seeds, and set proxmox.${region.name}.storage.seeds:\npvesm add dir seeds --path /var/lib/pvescaler-seeds --content iso`,
            ),
      );
    },
  };
}

export function storageChecks(reader: RegionReader, host: Host, group: string): readonly Check[] {
  return listUses(reader, host.name).flatMap((use) => {
    const storage = host.storages.find(({ name }) => name === use.name);
    const subject = `${use.key} (${use.name})`;
    const judge = (name: Check['name'], outcome: () => Outcome): Check => ({
      name,
      group,
      subject,
      run: () => Promise.resolve(outcome()),
    });
    return [
      judge('storage', () => judgeStorage(host, use)),
      judge('space', () => {
        if (storage?.active !== true) return skipped('the storage is not there');
        if (storage.freeBytes >= use.bytes) return ok(`${formatBytes(storage.freeBytes)} free`);
        return failure(
          `${use.name} on ${host.name} has ${formatBytes(storage.freeBytes)} free; one machine needs ${formatBytes(use.bytes)}`,
          'Free space on it, or set another storage.',
        );
      }),
    ];
  });
}

function judgeStorage(host: Host, { key, name, content }: StorageUse): Outcome {
  const storage = host.storages.find((one) => one.name === name);
  if (storage === undefined) {
    const names = host.storages.map((one) => one.name).join(', ');
    return failure(
      `${host.name} has no storage ${name} that this account may see; it has ${names || 'none'}`,
      `Correct storage.${key}, enable the storage on ${host.name}, or grant Datastore.Audit on /storage/${name}.`,
    );
  }
  if (!storage.active) {
    return failure(
      `${name} is not active on ${host.name}`,
      `Mount or start the storage: pvesm status --storage ${name}`,
    );
  }
  if (!storage.content.includes(content)) {
    return failure(
      `${name} does not accept content ${content}; it accepts ${storage.content.join(', ')}`,
      `Allow it on a Proxmox host, or set another storage:\npvesm set ${name} --content ${[...storage.content, content].join(',')}`,
    );
  }
  return ok(`accepts ${content}`);
}

function listUses(reader: RegionReader, host: string): readonly StorageUse[] {
  const { images, seeds, disks } = reader.region.storage;
  const sizes = reader.needsOn(host).map(({ size }) => size.diskBytes);
  const largest = Math.max(0, ...sizes);
  return [
    ...(reader.usesImages(host)
      ? [{ key: 'images', name: images, content: 'import', bytes: SPACE_FOR_IMAGE }]
      : []),
    { key: 'seeds', name: seeds, content: 'iso', bytes: SPACE_FOR_SEEDS },
    ...disks.map((name) => ({ key: 'disks', name, content: 'images', bytes: largest })),
  ];
}
