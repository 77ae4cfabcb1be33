// SPDX-License-Identifier: Apache-2.0
// What kind of VM a pool's machines are, from the provider's `vmOptions` and `networkInterfaces`. The size comes
// from the first pending pod there, so only its bounds can be written here.

import type { DraftValue } from '../ours/draft.ts';
import { fromMiB } from '../ours/units.ts';
import { mapInterfaces } from './interfaces.ts';
import type { Option } from './option.ts';
import type { Pool } from './pool.ts';
import { optionItems } from './providers.ts';
import { noteUnknown } from './strict.ts';
import { type Disk, mapDisk } from './system-disk.ts';
import { mapOption } from './vm-options.ts';

export function mapMachine(pool: Pool): void {
  const options = readOptions(pool);
  const disk = mapDisk(pool, options.get('scsi0'));
  mapSource(pool, options, disk);
  mapSize(pool, disk);
  const cards = mapInterfaces(pool);
  for (const option of options.values()) mapOption(pool, { option, cards });
}

function readOptions({ context, provider }: Pool): ReadonlyMap<string, Option> {
  const { read, work } = context;
  const options = new Map<string, Option>();
  read.expect(provider.options.find('vmOptions'), 'list');
  for (const { item, section } of optionItems(provider.options, 'vmOptions')) {
    const name = read.text(section.find('name'));
    const value = section.find('value');
    const text = read.text(value);
    noteUnknown(context, section, ['name', 'value']);
    if (name === undefined || value === undefined || text === undefined) {
      work.note(item, 'not-carried', 'needs a name and a value');
      continue;
    }
    const earlier = options.get(name);
    if (earlier !== undefined) {
      work.note(
        earlier.tree,
        'ignored-by-them',
        'stands again further down, and the later one wins',
      );
    }
    options.set(name, { name, text, tree: { ...value, path: `${item.path} (${name})` } });
  }
  return options;
}

function mapSource(
  { context, root }: Pool,
  options: ReadonlyMap<string, Option>,
  disk: Disk,
): void {
  const { work } = context;
  work.carryOwn([...root, 'join'], 'none', `${work.them}: what the VM boots makes it a node`);
  const boot = options.get('boot');
  const where = boot?.tree ?? { path: 'vmOptions boot' };
  if (boot !== undefined && /net\d/.test(boot.text) && !disk.isImported) {
    work.carry([...root, 'from', 'netboot'], {}, where);
    work.note(
      where,
      'carried-differently',
      'became from.netboot: an empty disk, and the network next',
    );
    return;
  }
  const message = 'where a new VM comes from (netboot, an image or a template), and how it joins';
  work.placeholder([...root, 'from', 'netboot'], {}, { where, message });
}

function mapSize({ context, section, root }: Pool, disk: Disk): void {
  const limits = section.section('limits');
  const bound = (key: string) => {
    const tree = limits.find(key);
    const value = tree?.kind === 'scalar' ? Number(tree.value) : 0;
    return Number.isSafeInteger(value) && value > 0 ? value : undefined;
  };
  const rest: Readonly<Record<string, DraftValue>> =
    disk.sizeMiB === undefined ? {} : { disk: fromMiB(disk.sizeMiB) };
  const memoryMiB = Math.max(bound('memoryMiB') ?? 16_384, 2048);
  const size: DraftValue = {
    min: { cpu: 1, memory: '2Gi', ...rest },
    max: { cpu: bound('cpuCores') ?? 8, memory: fromMiB(memoryMiB), ...rest },
  };
  const where = { path: 'size of a VM' };
  const message =
    'a VM was as large as the first pending pod asked for; here sizes lie between these two';
  context.work.placeholder([...root, 'size'], size, { where, message });
}
