// SPDX-License-Identifier: Apache-2.0
// Labels and taints of a node group: lists of texts that are handed to the k3s agent as they are.

import { parseLabelKey, parseLabelValue } from '../../../model/labels.ts';
import { formatTaint, parseLenientTaint, parseTaint } from '../../../model/taints.ts';
import type { Context } from '../context.ts';
import type { DraftPath } from '../ours/draft.ts';
import type { Section, Tree } from '../source/tree.ts';

/** Labels that both systems put on every node themselves. */
const OWN_LABELS: ReadonlySet<string> = new Set([
  'autoscaler.proxmox/group',
  'autoscaler.proxmox/vmid',
]);

export function mapLabels(context: Context, section: Section, root: DraftPath): void {
  const { work, read } = context;
  const labels = new Map<string, { readonly value: string; readonly tree: Tree }>();
  const list = section.find('labels');
  for (const { tree, text } of read.texts(list)) {
    const at = text.indexOf('=');
    const key = text.slice(0, Math.max(at, 0));
    const value = text.slice(at + 1);
    const problem = labelProblem(at, key, value);
    if (problem === undefined) labels.set(key, { value, tree });
    else work.note(tree, 'not-carried', problem);
  }
  for (const [key, { value, tree }] of labels) work.carry([...root, 'labels', key], value, tree);
  if (list !== undefined && labels.size === 0) work.carry([...root, 'labels'], {}, list);
  if (labels.get('autoscaled')?.value === 'true') return;
  work.note(
    section.where('labels'),
    'carried-differently',
    'the cluster autoscaler is always told of a label autoscaled=true there, which real nodes have only when it is listed; here it is told what nodes really have',
  );
}

function labelProblem(at: number, key: string, value: string): string | undefined {
  if (at < 0) return 'is not of the form key=value';
  if (OWN_LABELS.has(key)) return 'is set on every node anyway';
  const checked = parseLabelKey(key);
  if (!checked.ok) return checked.problem;
  const valued = parseLabelValue(value);
  return valued.ok ? undefined : valued.problem;
}

const WITHOUT_EFFECT =
  'names no effect; there the cluster autoscaler is told NoSchedule, which is written here';

export function mapTaints(context: Context, section: Section, root: DraftPath): void {
  const { work, read } = context;
  const list = section.find('taints');
  const taints = read.texts(list).flatMap(({ tree, text }) => {
    const taint = parseLenientTaint(text);
    if (!taint.ok) {
      work.note(tree, 'not-carried', taint.problem);
      return [];
    }
    if (!parseTaint(text).ok) work.note(tree, 'carried-differently', WITHOUT_EFFECT);
    return [formatTaint(taint.value)];
  });
  if (list !== undefined) work.carry([...root, 'taints'], taints, list);
}
