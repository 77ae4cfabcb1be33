// SPDX-License-Identifier: Apache-2.0
// `nodePools`: one pool each, together with what its provider says about VMs.

import type { Context } from '../context.ts';
import { PoolNames } from '../ours/pool-names.ts';
import { fromMiB } from '../ours/units.ts';
import { isNull } from '../source/reader.ts';
import { Section, type Tree } from '../source/tree.ts';
import { mapMachine } from './machine.ts';
import type { Pool } from './pool.ts';
import { mapLabels } from './pool-labels.ts';
import { mapPoolScaling } from './pool-scaling.ts';
import { mapHosts, type Provider } from './providers.ts';
import { noteUnknown } from './strict.ts';

const KEYS = [
  'name',
  'providerRef',
  'poolLabelKey',
  'limits',
  'machineTemplate',
  'scaleUp',
  'scaleDown',
];

export function mapNodePools(
  context: Context,
  items: readonly Tree[],
  providers: ReadonlyMap<string, Provider>,
): void {
  const names = new PoolNames(context.work);
  let index = 0;
  for (const item of items) {
    const section = new Section(item.path, item);
    const provider = providerOf(context, section, providers);
    if (provider === undefined) continue;
    mapPool({ context, section, root: ['pools', index], provider }, names);
    index += 1;
  }
}

function providerOf(
  { work, read }: Context,
  section: Section,
  providers: ReadonlyMap<string, Provider>,
): Provider | undefined {
  const reference = read.text(section.find('providerRef'));
  const provider = providers.get(reference ?? '');
  if (provider === undefined) {
    work.note(section, 'not-carried', 'its providerRef names no provider of type proxmox');
  }
  return provider;
}

function mapPool(pool: Pool, names: PoolNames): void {
  const { context, section, root, provider } = pool;
  const { work, read } = context;
  const nameTree = section.find('name');
  const name = read.text(nameTree);
  const where = nameTree ?? section.where('name');
  if (name === undefined) {
    work.placeholder([...root, 'name'], names.take('pool', where), {
      where,
      message: 'the name of the pool',
    });
  } else work.carry([...root, 'name'], names.take(name, where), where);
  work.carry([...root, 'regions'], [provider.region], section.where('providerRef'));
  if (provider.isShared)
    mapHosts(context, provider.options, [...root, 'placement', 'hosts', 'allow']);
  mapMachine(pool);
  mapOverhead(pool);
  mapTemplate(pool);
  mapLabels(pool);
  mapPoolScaling(pool);
  noteUnknown(context, section, KEYS);
}

function mapOverhead({ context, root, provider }: Pool): void {
  const tree = provider.options.find('vmMemOverheadMiB');
  const mib = tree === undefined || isNull(tree) ? undefined : context.read.integer(tree);
  if (tree === undefined || mib === undefined) return;
  context.work.carry([...root, 'memoryOverhead'], fromMiB(mib), tree);
}

function mapTemplate({ context, section, root }: Pool): void {
  const { work, read } = context;
  const template = section.section('machineTemplate');
  const prefixTree = template.find('kubeNodeNamePrefix');
  const prefix =
    prefixTree === undefined || isNull(prefixTree) ? '' : (read.text(prefixTree) ?? '');
  const where = prefixTree ?? template.where('kubeNodeNamePrefix');
  if (prefix === '') {
    work.note(
      where,
      'carried-differently',
      'is empty, which makes names that begin with a dash there; here the name of the pool is taken',
    );
  } else {
    work.carry([...root, 'names', 'prefix'], prefix.toLowerCase(), where);
    work.note(
      where,
      'carried-differently',
      'names ended in the VM id, which is used again; here they end in a piece of the machine’s id',
    );
  }
  const architecture = template.find('architecture');
  const text =
    architecture === undefined || isNull(architecture) ? undefined : read.text(architecture);
  if (architecture !== undefined && text !== undefined) {
    work.carry([...root, 'architecture'], text, architecture);
    work.note(architecture, 'carried-differently', 'has no effect there and takes effect here');
  }
  noteUnknown(context, template, ['kubeNodeNamePrefix', 'architecture', 'labels']);
}
