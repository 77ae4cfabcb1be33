// SPDX-License-Identifier: Apache-2.0
// `node_groups` of ca-proxmox-externalgrpc: each becomes a pool.

import type { ConfigPath } from '../../config-path.ts';
import type { ImportContext } from '../context.ts';
import { formatMiB, formatSeconds, parseProxmoxSizeMiB } from '../output/amounts.ts';
import { PoolNameAllocator } from '../output/naming.ts';
import { isNull } from '../source/reader.ts';
import { type ScalarTree, SourceSection, type SourceTree } from '../source/tree.ts';
import { mapGroupLabels, mapGroupTaints } from './labels-and-taints.ts';
import { IMAGE, REGION } from './proxmox.ts';

/** Settings that apply to all groups. */
export interface GroupSettings {
  readonly bridge: SourceTree | undefined;
  readonly bridgeWhere: ScalarTree | { readonly path: string };
  readonly pendingSeconds: { readonly seconds: number; readonly where: ScalarTree } | undefined;
}

interface NodeGroup {
  readonly context: ImportContext;
  readonly section: SourceSection;
  readonly root: ConfigPath;
  readonly settings: GroupSettings;
}

export function mapNodeGroups(
  context: ImportContext,
  root: SourceSection,
  settings: GroupSettings,
): void {
  const names = new PoolNameAllocator(context.writer);
  context.reader.expectKind(root.find('node_groups'), 'list');
  const groups = keepLastOfEachId(context, root.items('node_groups'));
  for (const [index, { section, id, tree }] of groups.entries()) {
    const pool: ConfigPath = ['pools', index];
    context.writer.set([...pool, 'name'], names.allocate(id, tree), tree);
    mapGroup({ context, section, root: pool, settings }, id);
  }
  if (groups.length > 0) return;
  context.writer.note(
    root.refTo('node_groups'),
    'action-required',
    'contains no node group, which is an error in the source system; add a pool',
  );
}

interface IdentifiedGroup {
  readonly id: string;
  readonly tree: SourceTree;
  readonly section: SourceSection;
}

/** The source system stores groups in a mapping by id, so the last of two groups with the same id is used. */
function keepLastOfEachId(
  { writer, reader }: ImportContext,
  items: readonly SourceTree[],
): readonly IdentifiedGroup[] {
  const groups = new Map<string, IdentifiedGroup>();
  for (const item of items) {
    const section = new SourceSection(item.path, item);
    const tree = section.find('id');
    const id = reader.readNonNullText(tree);
    if (tree === undefined || id === undefined) {
      writer.note(item, 'not-imported', 'has no id, which is an error in the source system');
      continue;
    }
    const earlier = groups.get(id);
    if (earlier !== undefined) {
      const message = `a later group has the same id '${id}', and the source system uses the later one`;
      writer.note({ ...earlier.tree, path: earlier.section.path }, 'ignored-by-source', message);
    }
    groups.set(id, { id, tree, section });
  }
  return [...groups.values()];
}

function mapGroup(group: NodeGroup, id: string): void {
  const { context, section, root } = group;
  const { writer } = context;
  writer.setOwn([...root, 'regions'], [REGION], '');
  writer.setOwn([...root, 'from', 'image'], IMAGE, '');
  writer.setOwn([...root, 'join'], 'k3s', '');
  mapSize(group);
  mapBalloon(group);
  mapPrefix(group, id);
  mapLimits(group);
  mapNetwork(group);
  mapGroupLabels(context, section, root);
  mapGroupTaints(context, section, root);
  mapPendingTimeout(group);
  context.reader.noteUnreadKeys(
    section,
    'ignored-by-source',
    'is an unknown key, which the source system ignores',
  );
}

interface GroupNumber {
  readonly value: number;
  /** Undefined when the default of the source system was used. */
  readonly tree: SourceTree | undefined;
}

function readNumber({ context, section }: NodeGroup, key: string, fallback: number): GroupNumber {
  const tree = section.find(key);
  const value = context.reader.readInteger(tree);
  return value === undefined ? { value: fallback, tree: undefined } : { value, tree };
}

function setGroupNumber(
  { context, section, root }: NodeGroup,
  at: readonly string[],
  entry: { key: string; amount: GroupNumber; text?: string | number },
): void {
  const { key, amount, text } = entry;
  const value = text ?? amount.value;
  if (amount.tree === undefined)
    context.writer.setSourceDefault([...root, ...at], value, section.refTo(key));
  else context.writer.set([...root, ...at], value, amount.tree);
}

function mapSize(group: NodeGroup): void {
  setGroupNumber(group, ['size', 'cpu'], { key: 'cores', amount: readNumber(group, 'cores', 2) });
  const memory = readNumber(group, 'memory_mb', 2048);
  setGroupNumber(group, ['size', 'memory'], {
    key: 'memory_mb',
    amount: memory,
    text: formatMiB(memory.value),
  });
  mapDisk(group);
}

function mapDisk({ context, section, root }: NodeGroup): void {
  const { writer, reader } = context;
  const tree = section.find('disk_size');
  const path = [...root, 'size', 'disk'];
  if (tree === undefined) {
    writer.setSourceDefault(path, formatMiB(20 * 1024), section.refTo('disk_size'));
    return;
  }
  const text = isNull(tree) ? '' : (reader.readText(tree) ?? '');
  if (text === '') {
    writer.note(
      tree,
      'imported-differently',
      'is empty; in the source system the disk keeps the size of the image, in pvescaler it gets the default disk size',
    );
    return;
  }
  const size = parseProxmoxSizeMiB(text);
  if (size.ok) writer.set(path, formatMiB(size.value), tree);
  else writer.note(tree, 'action-required', `${size.problem}; set the disk size`);
}

function mapBalloon(group: NodeGroup): void {
  const balloon = readNumber(group, 'balloon_mb', 0);
  const mib = Math.max(balloon.value, 0);
  setGroupNumber(group, ['balloon'], { key: 'balloon_mb', amount: balloon, text: formatMiB(mib) });
  if (balloon.value < 0 && balloon.tree !== undefined) {
    group.context.writer.note(
      balloon.tree,
      'imported-differently',
      'a negative value disables ballooning in the source system; the equivalent value in pvescaler is 0',
    );
  }
}

function mapPrefix({ context, section, root }: NodeGroup, id: string): void {
  const { writer, reader } = context;
  const tree = section.find('vm_name_prefix');
  const prefix = reader.readNonNullText(tree) ?? '';
  const path = [...root, 'names', 'prefix'];
  const where = tree ?? section.refTo('vm_name_prefix');
  const stem = (prefix === '' ? `ca-${id}` : prefix).toLowerCase().replaceAll(/[^a-z0-9.-]+/g, '-');
  if (prefix === '') writer.setSourceDefault(path, stem, where);
  else writer.set(path, stem, where);
  writer.note(
    where,
    'imported-differently',
    'machine names ended in the VM id, which is reused; now they end in a part of the machine id',
  );
}

function mapLimits(group: NodeGroup): void {
  const min = readNumber(group, 'min_size', 0);
  const max = readNumber(group, 'max_size', 10);
  setGroupNumber(group, ['limits', 'min'], { key: 'min_size', amount: min });
  const isUpsideDown = max.value < min.value;
  setGroupNumber(group, ['limits', 'max'], {
    key: 'max_size',
    amount: { ...max, value: Math.max(max.value, min.value) },
  });
  if (!isUpsideDown) return;
  const where = max.tree ?? group.section.refTo('max_size');
  group.context.writer.note(
    where,
    'action-required',
    `is less than min_size, which the source system does not check; ${min.value} was set, check the value`,
  );
}

function mapNetwork({ context, root, settings }: NodeGroup): void {
  const path = [...root, 'network', 'interfaces', 0];
  const { writer, reader } = context;
  writer.setFixedBehavior([...path, 'model'], 'virtio', 'the model of the network card is fixed');
  const bridge = reader.readText(settings.bridge);
  if (settings.bridge === undefined || bridge === undefined) {
    writer.setSourceDefault([...path, 'bridge'], 'vmbr0', settings.bridgeWhere);
  } else writer.set([...path, 'bridge'], bridge, settings.bridge);
  writer.setFixedBehavior([...root, 'network', 'ip'], 'dhcp', 'machines use DHCP');
}

function mapPendingTimeout({ context, root, settings }: NodeGroup): void {
  if (settings.pendingSeconds === undefined) return;
  const { seconds, where } = settings.pendingSeconds;
  context.writer.set([...root, 'provisionTimeout'], formatSeconds(seconds), where);
}
