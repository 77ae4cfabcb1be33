// SPDX-License-Identifier: Apache-2.0
// Labels of a pool's nodes, and the label that marks its members.

import { parseLabelKey, parseLabelValue } from '../../../model/labels.ts';
import { isNull } from '../source/reader.ts';
import { Section, type Tree } from '../source/tree.ts';
import type { Pool } from './pool.ts';

const DEFAULT_KEY = 'topology.kubenodesmith.io/pool';

export function mapLabels(pool: Pool): void {
  const { context, section, root } = pool;
  const { work, read } = context;
  const tree = section.find('poolLabelKey');
  const key = (tree === undefined || isNull(tree) ? undefined : read.text(tree)) || DEFAULT_KEY;
  const path = [...root, 'groupLabel'];
  if (tree === undefined || isNull(tree))
    work.carryDefault(path, key, section.where('poolLabelKey'));
  else work.carry(path, key, tree);

  const labels = section.section('machineTemplate').find('labels');
  read.expect(labels, 'map');
  const given = new Section(labels?.path ?? '', labels);
  for (const name of given.keys()) mapLabel(pool, { name, tree: given.find(name), groupKey: key });
}

interface Label {
  readonly name: string;
  readonly tree: Tree | undefined;
  readonly groupKey: string;
}

function mapLabel({ context, root }: Pool, { name, tree, groupKey }: Label): void {
  const { work, read } = context;
  if (tree === undefined) return;
  if (name === groupKey) {
    work.note(tree, 'carried-differently', 'is set by groupLabel here and need not be listed');
    return;
  }
  const value = isNull(tree) ? '' : read.text(tree);
  if (value === undefined) return;
  const problem = [parseLabelKey(name), parseLabelValue(value)].find((parsed) => !parsed.ok);
  if (problem === undefined || problem.ok) work.carry([...root, 'labels', name], value, tree);
  else work.note(tree, 'not-carried', problem.problem);
}
