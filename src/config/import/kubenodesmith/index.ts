// SPDX-License-Identifier: Apache-2.0
// KubeNodeSmith, file format of October 2025: providers become regions, node pools become pools.

import { parseDuration } from '../../../model/duration.ts';
import type { ImportContext } from '../context.ts';
import { SourceSection, type SourceTree } from '../source/tree.ts';
import { readDuration } from './duration.ts';
import { mapNodePools } from './node-pools.ts';
import { mapProviders } from './providers.ts';
import { noteUnknownKeys } from './unknown-keys.ts';

const KEYS = ['schemaVersion', 'pollingInterval', 'providers', 'nodePools'] as const;

export function mapKubenodesmith(context: ImportContext, tree: SourceTree): void {
  const { writer, reader } = context;
  const root = new SourceSection('', tree);
  writer.setOwn(['mode'], 'standalone', '');
  mapVersion(context, root);
  mapInterval(context, root);
  reader.expectKind(root.find('providers'), 'map');
  reader.expectKind(root.find('nodePools'), 'list');
  const providers = mapProviders(context, root.section('providers'));
  mapNodePools(context, root.items('nodePools'), providers);
  noteUnknownKeys(context, root, KEYS);
}

function mapVersion({ writer, reader }: ImportContext, root: SourceSection): void {
  const tree = root.find('schemaVersion');
  const version = reader.readText(tree);
  if (version === 'v1alpha1' && tree !== undefined) {
    writer.note(tree, 'imported-differently', 'the file format is set by apiVersion');
    return;
  }
  writer.note(
    root.refTo('schemaVersion'),
    'imported-differently',
    'is not v1alpha1, which is an error in the source system; the file was read as v1alpha1',
  );
}

function mapInterval(context: ImportContext, root: SourceSection): void {
  const tree = root.find('pollingInterval');
  const duration = readDuration(context, tree);
  const path = ['intervals', 'scan'];
  if (tree === undefined || duration === undefined || isZeroDuration(duration)) {
    context.writer.setSourceDefault(path, '30s', root.refTo('pollingInterval'));
  } else context.writer.set(path, duration, tree);
}

function isZeroDuration(duration: string): boolean {
  const parsed = parseDuration(duration);
  return !parsed.ok || parsed.value.nanoseconds <= 0n;
}
