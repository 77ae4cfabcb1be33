// SPDX-License-Identifier: Apache-2.0
// The VM settings of a pool, from `vmOptions` and `networkInterfaces` of its provider. KubeNodeSmith sizes
// a VM for the first pending pod, so only the bounds of the size can be set.

import { formatMiB } from '../output/amounts.ts';
import type { DraftValue } from '../output/draft.ts';
import { mapInterfaces } from './interfaces.ts';
import type { NodePool, VmOption } from './node-pool.ts';
import { readOptionItems } from './providers.ts';
import { mapSystemDisk, type SystemDisk } from './system-disk.ts';
import { noteUnknownKeys } from './unknown-keys.ts';
import { mapVmOption } from './vm-options.ts';

export function mapMachine(pool: NodePool): void {
  const options = readVmOptions(pool);
  const disk = mapSystemDisk(pool, options.get('scsi0'));
  mapVmSource(pool, options, disk);
  mapSize(pool, disk);
  const cards = mapInterfaces(pool);
  for (const option of options.values()) mapVmOption(pool, { option, cards });
}

function readVmOptions({ context, provider }: NodePool): ReadonlyMap<string, VmOption> {
  const { reader, writer } = context;
  const options = new Map<string, VmOption>();
  reader.expectKind(provider.options.find('vmOptions'), 'list');
  for (const { item, section } of readOptionItems(provider.options, 'vmOptions')) {
    const name = reader.readText(section.find('name'));
    const value = section.find('value');
    const text = reader.readText(value);
    noteUnknownKeys(context, section, ['name', 'value']);
    if (name === undefined || value === undefined || text === undefined) {
      writer.note(item, 'not-imported', 'needs a name and a value');
      continue;
    }
    const earlier = options.get(name);
    if (earlier !== undefined) {
      writer.note(
        earlier.tree,
        'ignored-by-source',
        'is set again further down, and the last one is used',
      );
    }
    options.set(name, { name, text, tree: { ...value, path: `${item.path} (${name})` } });
  }
  return options;
}

function mapVmSource(
  { context, root }: NodePool,
  options: ReadonlyMap<string, VmOption>,
  disk: SystemDisk,
): void {
  const { writer } = context;
  writer.setOwn(
    [...root, 'join'],
    'none',
    `${writer.sourceName}: the booted system joins by itself`,
  );
  const boot = options.get('boot');
  const where = boot?.tree ?? { path: 'vmOptions boot' };
  if (boot !== undefined && /net\d/.test(boot.text) && !disk.isImported) {
    writer.set([...root, 'from', 'netboot'], {}, where);
    writer.note(
      where,
      'imported-differently',
      'became from.netboot: boot from an empty disk, then from the network',
    );
    return;
  }
  const message = 'the source of new VMs (netboot, an image or a template) and how they join';
  writer.setPlaceholder([...root, 'from', 'netboot'], {}, { where, message });
}

function mapSize({ context, section, root }: NodePool, disk: SystemDisk): void {
  const limits = section.section('limits');
  const bound = (key: string) => {
    const tree = limits.find(key);
    const value = tree?.kind === 'scalar' ? Number(tree.value) : 0;
    return Number.isSafeInteger(value) && value > 0 ? value : undefined;
  };
  const rest: Readonly<Record<string, DraftValue>> =
    disk.sizeMiB === undefined ? {} : { disk: formatMiB(disk.sizeMiB) };
  const memoryMiB = Math.max(bound('memoryMiB') ?? 16_384, 2048);
  const size: DraftValue = {
    min: { cpu: 1, memory: '2Gi', ...rest },
    max: { cpu: bound('cpuCores') ?? 8, memory: formatMiB(memoryMiB), ...rest },
  };
  const where = { path: 'size of a VM' };
  const message =
    'the smallest and the largest machine; the source system sized each VM for the first pending pod';
  context.writer.setPlaceholder([...root, 'size'], size, { where, message });
}
