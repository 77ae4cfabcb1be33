// SPDX-License-Identifier: Apache-2.0
// Finds the label groups that a selector may match, without checking all of them, for groups that exist and for
// those that are created later.

import type { Selector } from '../../model/selector.ts';
import type { LabelGroup } from './label-group.ts';

type Visit = (group: LabelGroup) => void;

export class LabelIndex {
  readonly #groups: LabelGroup[] = [];
  readonly #groupsByLabel = new Map<string, LabelGroup[]>();
  readonly #watchers: Visit[] = [];
  readonly #watchersByLabel = new Map<string, Visit[]>();

  add(group: LabelGroup): void {
    this.#groups.push(group);
    for (const visit of this.#watchers) visit(group);
    for (const [key, value] of Object.entries(group.labels)) {
      const label = labelKey(key, value);
      append(this.#groupsByLabel, label, group);
      for (const visit of this.#watchersByLabel.get(label) ?? []) visit(group);
    }
  }

  /** Visits each group that these selectors may all match, now and in future. */
  watch(selectors: readonly Selector[], visit: Visit): void {
    const labels = requiredLabels(selectors);
    if (labels === undefined) {
      this.#watchers.push(visit);
      for (const group of this.#groups) visit(group);
      return;
    }
    // A group has one value per key, so it is visited once.
    for (const label of labels) {
      append(this.#watchersByLabel, label, visit);
      for (const group of this.#groupsByLabel.get(label) ?? []) visit(group);
    }
  }
}

function append<T>(lists: Map<string, T[]>, key: string, item: T): void {
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [item]);
  else list.push(item);
}

function labelKey(key: string, value: string): string {
  return `${key}=${value}`;
}

/** Labels of which every match has exactly one. Undefined if the selectors require none. */
function requiredLabels(selectors: readonly Selector[]): ReadonlySet<string> | undefined {
  for (const selector of selectors) {
    if (selector.selects === 'nothing') return new Set();
    const required = selector.requirements.find(({ operator }) => operator === 'In');
    if (required !== undefined)
      return new Set(required.values.map((value) => labelKey(required.key, value)));
  }
  return undefined;
}
