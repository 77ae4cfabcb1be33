// SPDX-License-Identifier: Apache-2.0
// Labels of a pool's nodes, and the label that marks its members.

import { parseLabelKey, parseLabelValue } from '../../../model/labels.ts';
import { isNull } from '../source/reader.ts';
import { SourceSection, type SourceTree } from '../source/tree.ts';
import type { NodePool } from './pool.ts';

const DEFAULT_KEY = 'topology.kubenodesmith.io/pool';

export function mapPoolLabels(pool: NodePool): void {
  const { context, section, root } = pool;
  const { writer, reader } = context;
  const tree = section.find('poolLabelKey');
  const key =
    (tree === undefined || isNull(tree) ? undefined : reader.readText(tree)) || DEFAULT_KEY;
  const path = [...root, 'groupLabel'];
  if (tree === undefined || isNull(tree))
    writer.setSourceDefault(path, key, section.refTo('poolLabelKey'));
  else writer.set(path, key, tree);

  const labels = section.section('machineTemplate').find('labels');
  reader.expectKind(labels, 'map');
  const given = new SourceSection(labels?.path ?? '', labels);
  for (const name of given.keys()) mapLabel(pool, { name, tree: given.find(name), groupKey: key });
}

interface Label {
  readonly name: string;
  readonly tree: SourceTree | undefined;
  readonly groupKey: string;
}

function mapLabel({ context, root }: NodePool, { name, tree, groupKey }: Label): void {
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
