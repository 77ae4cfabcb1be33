// SPDX-License-Identifier: Apache-2.0
// Labels and taints of a node group: lists of text that the source system passes to the k3s agent
// unchanged.

import { parseLabelKey, parseLabelValue } from '../../../model/labels.ts';
import { formatTaint, parseLenientTaint, parseTaint } from '../../../model/taints.ts';
import type { ConfigPath } from '../../config-path.ts';
import type { ImportContext } from '../context.ts';
import type { SourceSection, SourceTree } from '../source/tree.ts';

/** Labels that both systems set on every node themselves. */
const BUILT_IN_LABELS: ReadonlySet<string> = new Set([
  'autoscaler.proxmox/group',
  'autoscaler.proxmox/vmid',
]);

export function mapGroupLabels(
  context: ImportContext,
  section: SourceSection,
  root: ConfigPath,
): void {
  const { writer, reader } = context;
  const labels = new Map<string, { readonly value: string; readonly tree: SourceTree }>();
  const list = section.find('labels');
  for (const { tree, text } of reader.readTextList(list)) {
    const at = text.indexOf('=');
    const key = text.slice(0, Math.max(at, 0));
    const value = text.slice(at + 1);
    const problem = findLabelProblem(at, key, value);
    if (problem === undefined) labels.set(key, { value, tree });
    else writer.note(tree, 'not-imported', problem);
  }
  for (const [key, { value, tree }] of labels) writer.set([...root, 'labels', key], value, tree);
  if (list !== undefined && labels.size === 0) writer.set([...root, 'labels'], {}, list);
  if (labels.get('autoscaled')?.value === 'true') return;
  writer.note(
    section.refTo('labels'),
    'imported-differently',
    'the source system always reports a label autoscaled=true to the Cluster Autoscaler, even when nodes do not have it; pvescaler reports only the labels that nodes have',
  );
}

function findLabelProblem(at: number, key: string, value: string): string | undefined {
  if (at < 0) return 'must have the form key=value';
  if (BUILT_IN_LABELS.has(key)) return 'is set on every node automatically';
  const checked = parseLabelKey(key);
  if (!checked.ok) return checked.problem;
  const valued = parseLabelValue(value);
  return valued.ok ? undefined : valued.problem;
}

const MISSING_EFFECT_NOTE =
  'has no taint effect; the source system reports NoSchedule to the Cluster Autoscaler, so NoSchedule is set';

export function mapGroupTaints(
  context: ImportContext,
  section: SourceSection,
  root: ConfigPath,
): void {
  const { writer, reader } = context;
  const list = section.find('taints');
  const taints = reader.readTextList(list).flatMap(({ tree, text }) => {
    const taint = parseLenientTaint(text);
    if (!taint.ok) {
      writer.note(tree, 'not-imported', taint.problem);
      return [];
    }
    if (!parseTaint(text).ok) writer.note(tree, 'imported-differently', MISSING_EFFECT_NOTE);
    return [formatTaint(taint.value)];
  });
  if (list !== undefined) writer.set([...root, 'taints'], taints, list);
}
