// SPDX-License-Identifier: Apache-2.0
// `node_groups` of ca-proxmox-externalgrpc: one pool each.

import type { Context } from '../context.ts';
import type { DraftPath } from '../ours/draft.ts';
import { PoolNames } from '../ours/pool-names.ts';
import { fromMiB, fromSeconds, pveSizeMiB } from '../ours/units.ts';
import { isNull } from '../source/reader.ts';
import { type ScalarTree, Section, type Tree } from '../source/tree.ts';
import { mapLabels, mapTaints } from './labels-and-taints.ts';
import { IMAGE, REGION } from './proxmox.ts';

/** What all groups have in common. */
export interface GroupSettings {
  readonly bridge: Tree | undefined;
  readonly bridgeWhere: ScalarTree | { readonly path: string };
  readonly pendingSeconds: { readonly seconds: number; readonly where: ScalarTree } | undefined;
}

interface Group {
  readonly context: Context;
  readonly section: Section;
  readonly root: DraftPath;
  readonly settings: GroupSettings;
}

export function mapNodeGroups(context: Context, root: Section, settings: GroupSettings): void {
  const names = new PoolNames(context.work);
  context.read.expect(root.find('node_groups'), 'list');
  const groups = lastOfEachId(context, root.items('node_groups'));
  for (const [index, { section, id, tree }] of groups.entries()) {
    const pool: DraftPath = ['pools', index];
    context.work.carry([...pool, 'name'], names.take(id, tree), tree);
    mapGroup({ context, section, root: pool, settings }, id);
  }
  if (groups.length > 0) return;
  context.work.note(
    root.where('node_groups'),
    'needs-you',
    'no node group is given, which stops the program there: add a pool',
  );
}

interface IdentifiedGroup {
  readonly id: string;
  readonly tree: Tree;
  readonly section: Section;
}

/** Groups are kept in a mapping by id there: of two with one id the later is the one that counts. */
function lastOfEachId({ work, read }: Context, items: readonly Tree[]): readonly IdentifiedGroup[] {
  const groups = new Map<string, IdentifiedGroup>();
  for (const item of items) {
    const section = new Section(item.path, item);
    const tree = section.find('id');
    const id = tree === undefined || isNull(tree) ? undefined : read.text(tree);
    if (tree === undefined || id === undefined) {
      work.note(item, 'not-carried', 'has no id, which stops the program there');
      continue;
    }
    const earlier = groups.get(id);
    if (earlier !== undefined) {
      const message = `another group with id '${id}' follows, and the later one wins there`;
      work.note({ ...earlier.tree, path: earlier.section.path }, 'ignored-by-them', message);
    }
    groups.set(id, { id, tree, section });
  }
  return [...groups.values()];
}

function mapGroup(group: Group, id: string): void {
  const { context, section, root } = group;
  const { work } = context;
  work.carryOwn([...root, 'regions'], [REGION], '');
  work.carryOwn([...root, 'from', 'image'], IMAGE, '');
  work.carryOwn([...root, 'join'], 'k3s', '');
  mapSize(group);
  mapBalloon(group);
  mapPrefix(group, id);
  mapLimits(group);
  mapNetwork(group);
  mapLabels(context, section, root);
  mapTaints(context, section, root);
  mapPendingTimeout(group);
  context.read.unknown(section, 'ignored-by-them', 'is unknown there, and ignored');
}

interface Amount {
  readonly value: number;
  /** Absent: the system's default was taken. */
  readonly tree: Tree | undefined;
}

function amount({ context, section }: Group, key: string, otherwise: number): Amount {
  const tree = section.find(key);
  const value = context.read.integer(tree);
  return value === undefined ? { value: otherwise, tree: undefined } : { value, tree };
}

function put(
  { context, section, root }: Group,
  at: readonly string[],
  entry: { key: string; amount: Amount; text?: string | number },
): void {
  const { key, amount, text } = entry;
  const value = text ?? amount.value;
  if (amount.tree === undefined)
    context.work.carryDefault([...root, ...at], value, section.where(key));
  else context.work.carry([...root, ...at], value, amount.tree);
}

function mapSize(group: Group): void {
  put(group, ['size', 'cpu'], { key: 'cores', amount: amount(group, 'cores', 2) });
  const memory = amount(group, 'memory_mb', 2048);
  put(group, ['size', 'memory'], { key: 'memory_mb', amount: memory, text: fromMiB(memory.value) });
  mapDisk(group);
}

function mapDisk({ context, section, root }: Group): void {
  const { work, read } = context;
  const tree = section.find('disk_size');
  const path = [...root, 'size', 'disk'];
  if (tree === undefined) {
    work.carryDefault(path, fromMiB(20 * 1024), section.where('disk_size'));
    return;
  }
  const text = isNull(tree) ? '' : (read.text(tree) ?? '');
  if (text === '') {
    work.note(
      tree,
      'carried-differently',
      "is empty: the disk keeps the image's size there; here it gets the default size of a disk",
    );
    return;
  }
  const size = pveSizeMiB(text);
  if (size.ok) work.carry(path, fromMiB(size.value), tree);
  else work.note(tree, 'needs-you', `${size.problem}: write the size of the disk yourself`);
}

function mapBalloon(group: Group): void {
  const balloon = amount(group, 'balloon_mb', 0);
  const mib = Math.max(balloon.value, 0);
  put(group, ['balloon'], { key: 'balloon_mb', amount: balloon, text: fromMiB(mib) });
  if (balloon.value < 0 && balloon.tree !== undefined) {
    group.context.work.note(
      balloon.tree,
      'carried-differently',
      'a negative balloon means none there, and is written as 0 here',
    );
  }
}

function mapPrefix({ context, section, root }: Group, id: string): void {
  const { work, read } = context;
  const tree = section.find('vm_name_prefix');
  const prefix = (tree === undefined || isNull(tree) ? undefined : read.text(tree)) ?? '';
  const path = [...root, 'names', 'prefix'];
  const where = tree ?? section.where('vm_name_prefix');
  const stem = (prefix === '' ? `ca-${id}` : prefix).toLowerCase().replaceAll(/[^a-z0-9.-]+/g, '-');
  if (prefix === '') work.carryDefault(path, stem, where);
  else work.carry(path, stem, where);
  work.note(
    where,
    'carried-differently',
    'names ended in the VM id, which is used again; here they end in a piece of the machine’s id',
  );
}

function mapLimits(group: Group): void {
  const min = amount(group, 'min_size', 0);
  const max = amount(group, 'max_size', 10);
  put(group, ['limits', 'min'], { key: 'min_size', amount: min });
  const isUpsideDown = max.value < min.value;
  put(group, ['limits', 'max'], {
    key: 'max_size',
    amount: { ...max, value: Math.max(max.value, min.value) },
  });
  if (!isUpsideDown) return;
  const where = max.tree ?? group.section.where('max_size');
  group.context.work.note(
    where,
    'needs-you',
    `is less than min_size, which is not checked there: ${min.value} was written, decide what you want`,
  );
}

function mapNetwork({ context, root, settings }: Group): void {
  const path = [...root, 'network', 'interfaces', 0];
  const { work, read } = context;
  work.carryFixed([...path, 'model'], 'virtio', 'the model of the card is fixed');
  const bridge = read.text(settings.bridge);
  if (settings.bridge === undefined || bridge === undefined) {
    work.carryDefault([...path, 'bridge'], 'vmbr0', settings.bridgeWhere);
  } else work.carry([...path, 'bridge'], bridge, settings.bridge);
  work.carryFixed([...root, 'network', 'ip'], 'dhcp', 'addresses come by DHCP');
}

function mapPendingTimeout({ context, root, settings }: Group): void {
  if (settings.pendingSeconds === undefined) return;
  const { seconds, where } = settings.pendingSeconds;
  context.work.carry([...root, 'provisionTimeout'], fromSeconds(seconds), where);
}
