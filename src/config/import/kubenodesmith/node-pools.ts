// SPDX-License-Identifier: Apache-2.0
// `nodePools`: each becomes a pool, together with the VM settings of its provider.

import { parseLabelKey, parseLabelValue } from '../../../model/labels.ts';
import type { ImportContext } from '../context.ts';
import { formatMiB } from '../output/amounts.ts';
import { PoolNameAllocator } from '../output/naming.ts';
import { isNull } from '../source/reader.ts';
import { SourceSection, type SourceTree } from '../source/tree.ts';
import { mapMachine } from './machine.ts';
import type { NodePool } from './node-pool.ts';
import { mapPoolScaling } from './pool-scaling.ts';
import { mapHosts, type Provider } from './providers.ts';
import { noteUnknownKeys } from './unknown-keys.ts';

const KEYS = [
  'name',
  'providerRef',
  'poolLabelKey',
  'limits',
  'machineTemplate',
  'scaleUp',
  'scaleDown',
];

const DEFAULT_LABEL_KEY = 'topology.kubenodesmith.io/pool';

export function mapNodePools(
  context: ImportContext,
  items: readonly SourceTree[],
  providers: ReadonlyMap<string, Provider>,
): void {
  const names = new PoolNameAllocator(context.writer);
  let index = 0;
  for (const item of items) {
    const section = new SourceSection(item.path, item);
    const provider = providerOf(context, section, providers);
    if (provider === undefined) continue;
    mapPool({ context, section, root: ['pools', index], provider }, names);
    index += 1;
  }
}

function providerOf(
  { writer, reader }: ImportContext,
  section: SourceSection,
  providers: ReadonlyMap<string, Provider>,
): Provider | undefined {
  const reference = reader.readText(section.find('providerRef'));
  const provider = providers.get(reference ?? '');
  if (provider === undefined) {
    writer.note(
      section,
      'not-imported',
      'its providerRef does not name a provider of type proxmox',
    );
  }
  return provider;
}

function mapPool(pool: NodePool, names: PoolNameAllocator): void {
  const { context, section, root, provider } = pool;
  const { writer, reader } = context;
  const nameTree = section.find('name');
  const name = reader.readText(nameTree);
  const where = nameTree ?? section.refTo('name');
  if (name === undefined) {
    writer.setPlaceholder([...root, 'name'], names.allocate('pool', where), {
      where,
      message: 'the name of the pool',
    });
  } else writer.set([...root, 'name'], names.allocate(name, where), where);
  writer.set([...root, 'regions'], [provider.region], section.refTo('providerRef'));
  if (provider.isShared)
    mapHosts(context, provider.options, [...root, 'placement', 'hosts', 'allow']);
  mapMachine(pool);
  mapOverhead(pool);
  mapTemplate(pool);
  mapPoolLabels(pool);
  mapPoolScaling(pool);
  noteUnknownKeys(context, section, KEYS);
}

function mapOverhead({ context, root, provider }: NodePool): void {
  const tree = provider.options.find('vmMemOverheadMiB');
  const mib = context.reader.readNonNullInteger(tree);
  if (tree === undefined || mib === undefined) return;
  context.writer.set([...root, 'memoryOverhead'], formatMiB(mib), tree);
}

function mapTemplate({ context, section, root }: NodePool): void {
  const { writer, reader } = context;
  const template = section.section('machineTemplate');
  const prefixTree = template.find('kubeNodeNamePrefix');
  const prefix = reader.readNonNullText(prefixTree) ?? '';
  const where = prefixTree ?? template.refTo('kubeNodeNamePrefix');
  if (prefix === '') {
    writer.note(
      where,
      'imported-differently',
      'is empty, so names start with a dash in the source system; in pvescaler the pool name is used',
    );
  } else {
    writer.set([...root, 'names', 'prefix'], prefix.toLowerCase(), where);
    writer.note(
      where,
      'imported-differently',
      'machine names ended in the VM id, which is reused; now they end in a part of the machine id',
    );
  }
  const architecture = template.find('architecture');
  const text = reader.readNonNullText(architecture);
  if (architecture !== undefined && text !== undefined) {
    writer.set([...root, 'architecture'], text, architecture);
    writer.note(
      architecture,
      'imported-differently',
      'has no effect in the source system but takes effect in pvescaler',
    );
  }
  noteUnknownKeys(context, template, ['kubeNodeNamePrefix', 'architecture', 'labels']);
}

function mapPoolLabels(pool: NodePool): void {
  const { context, section, root } = pool;
  const { writer, reader } = context;
  const tree = section.find('poolLabelKey');
  const key = reader.readNonNullText(tree) || DEFAULT_LABEL_KEY;
  const path = [...root, 'groupLabel'];
  if (tree === undefined || isNull(tree))
    writer.setSourceDefault(path, key, section.refTo('poolLabelKey'));
  else writer.set(path, key, tree);

  const labels = section.section('machineTemplate').find('labels');
  reader.expectKind(labels, 'map');
  const given = new SourceSection(labels?.path ?? '', labels);
  for (const name of given.keys()) mapLabel(pool, { name, tree: given.find(name), groupKey: key });
}

interface PoolLabel {
  readonly name: string;
  readonly tree: SourceTree | undefined;
  readonly groupKey: string;
}

function mapLabel({ context, root }: NodePool, { name, tree, groupKey }: PoolLabel): void {
  const { writer, reader } = context;
  if (tree === undefined) return;
  if (name === groupKey) {
    writer.note(
      tree,
      'imported-differently',
      'is set by groupLabel and does not need to be listed',
    );
    return;
  }
  const value = isNull(tree) ? '' : reader.readText(tree);
  if (value === undefined) return;
  const problem = [parseLabelKey(name), parseLabelValue(value)].find((parsed) => !parsed.ok);
  if (problem === undefined || problem.ok) writer.set([...root, 'labels', name], value, tree);
  else writer.note(tree, 'not-imported', problem.problem);
}
