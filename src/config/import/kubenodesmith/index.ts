// SPDX-License-Identifier: Apache-2.0
// KubeNodeSmith in the file format of October 2025: providers become regions, node pools become pools.

import { parseDuration } from '../../../model/duration.ts';
import type { Context } from '../context.ts';
import { Section, type Tree } from '../source/tree.ts';
import { durationText } from './duration.ts';
import { mapNodePools } from './node-pools.ts';
import { mapProviders } from './providers.ts';
import { noteUnknown } from './strict.ts';

const KEYS = ['schemaVersion', 'pollingInterval', 'providers', 'nodePools'] as const;

export function mapKubenodesmith(context: Context, tree: Tree): void {
  const { work, read } = context;
  const root = new Section('', tree);
  work.carryOwn(['mode'], 'standalone', '');
  mapVersion(context, root);
  mapInterval(context, root);
  read.expect(root.find('providers'), 'map');
  read.expect(root.find('nodePools'), 'list');
  const providers = mapProviders(context, root.section('providers'));
  mapNodePools(context, root.items('nodePools'), providers);
  noteUnknown(context, root, KEYS);
}

function mapVersion({ work, read }: Context, root: Section): void {
  const tree = root.find('schemaVersion');
  const version = read.text(tree);
  if (version === 'v1alpha1' && tree !== undefined) {
    work.note(tree, 'carried-differently', 'the format of our file is named by apiVersion');
    return;
  }
  work.note(
    root.where('schemaVersion'),
    'carried-differently',
    'is not v1alpha1, which stops the program there; the file was read as v1alpha1',
  );
}

function mapInterval(context: Context, root: Section): void {
  const tree = root.find('pollingInterval');
  const duration = durationText(context, tree);
  const path = ['intervals', 'scan'];
  if (tree === undefined || duration === undefined || isNothing(duration)) {
    context.work.carryDefault(path, '30s', root.where('pollingInterval'));
  } else context.work.carry(path, duration, tree);
}

function isNothing(duration: string): boolean {
  const parsed = parseDuration(duration);
  return !parsed.ok || parsed.value.nanoseconds <= 0n;
}
