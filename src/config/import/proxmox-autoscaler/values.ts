// SPDX-License-Identifier: Apache-2.0
// Settings with the value that the system's own settings file has for them. A module without a setting stops
// the program where it is first used, so a value taken from there is always noted.

import type { Context } from '../context.ts';
import type { DraftPath, DraftValue } from '../ours/draft.ts';
import { fromSeconds } from '../ours/units.ts';
import type { Section, Tree, Where } from '../source/tree.ts';

/** Shipped with the program. Its README differs in min_size (0) and in all addresses. */
const SHIPPED: Readonly<Record<string, string | number>> = {
  pxe_autoscaled_node_template_vm: 'autoscaler.tmpl',
  pxe_autoscaled_node_name: 'autoscaler.node',
  pxe_autoscaled_node_network_mode: 'manual',
  node_group_label: 'pxe-autoscaler/autoscaler-managed-node',
  min_size: 2,
  max_size: 5,
  scan_interval: 15,
  max_node_provision_time: 900,
  pxe_vm_lost_cleanup_delay: 300,
  scale_down_unneeded_time: 600,
  scale_down_delay: 600,
  scale_up_delay_after_add: 300,
  scale_down_delay_after_add: 600,
  scale_down_delay_after_error: 600,
  scale_down_utilization_threshold: 50,
  max_total_unready_percentage: 45,
  ok_total_unready_count: 3,
};

const WHEN_ABSENT: Readonly<Record<string, string>> = {
  min_size: 'is absent, which stops the program there (its README promises 0)',
  pxe_vm_lost_cleanup_delay: 'is absent, as in early versions, which do not know it',
};

export interface Chosen<T> {
  readonly value: T;
  readonly where: Where;
  readonly isShipped: boolean;
}

export function textSetting(context: Context, section: Section, key: string): Chosen<string> {
  const tree = given(section, key);
  const value = context.read.text(tree);
  if (tree !== undefined && value !== undefined) return { value, where: tree, isShipped: false };
  return {
    value: String(shipped(context, section, key)),
    where: section.where(key),
    isShipped: true,
  };
}

export function numberSetting(context: Context, section: Section, key: string): Chosen<number> {
  const tree = given(section, key);
  const value = context.read.integer(tree);
  if (tree !== undefined && value !== undefined) return { value, where: tree, isShipped: false };
  return {
    value: Number(shipped(context, section, key)),
    where: section.where(key),
    isShipped: true,
  };
}

function given(section: Section, key: string): Tree | undefined {
  return section.find(key);
}

function shipped({ work }: Context, section: Section, key: string): string | number {
  const value = SHIPPED[key] ?? '';
  work.note(
    section.where(key),
    'carried-differently',
    `${WHEN_ABSENT[key] ?? 'is absent, which stops the program there'}; the value of the settings that it ships with was taken: ${value}`,
  );
  return value;
}

export function carryChosen(
  { work }: Context,
  path: DraftPath,
  entry: { chosen: Chosen<unknown>; value: DraftValue },
): void {
  const { chosen, value } = entry;
  if (chosen.isShipped) work.carryDefault(path, value, chosen.where);
  else work.carry(path, value, chosen.where);
}

export function carryNumber(
  context: Context,
  section: Section,
  { key, path }: { key: string; path: DraftPath },
): Chosen<number> {
  const chosen = numberSetting(context, section, key);
  carryChosen(context, path, { chosen, value: chosen.value });
  return chosen;
}

export function carrySeconds(
  context: Context,
  section: Section,
  { key, path }: { key: string; path: DraftPath },
): Chosen<number> {
  const chosen = numberSetting(context, section, key);
  carryChosen(context, path, { chosen, value: fromSeconds(chosen.value) });
  return chosen;
}
