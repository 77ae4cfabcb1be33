// SPDX-License-Identifier: Apache-2.0
// Settings with the defaults of the settings file that proxmox-autoscaler ships. The program fails at the
// first use of a missing setting, so every default that is used gets a note.

import type { ConfigPath } from '../../config-path.ts';
import type { ImportContext } from '../context.ts';
import { formatSeconds } from '../output/amounts.ts';
import type { DraftValue } from '../output/draft.ts';
import type { SourceRef, SourceSection, SourceTree } from '../source/tree.ts';

/** Defaults of the shipped settings file. The README differs in min_size (0) and in all addresses. */
const SHIPPED_DEFAULTS: Readonly<Record<string, string | number>> = {
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

const ABSENT_NOTES: Readonly<Record<string, string>> = {
  min_size: 'is missing, which is an error in the source system (its README documents 0)',
  pxe_vm_lost_cleanup_delay: 'is missing, as in early versions, which do not support it',
};

export interface SettingValue<T> {
  readonly value: T;
  readonly where: SourceRef;
  readonly isShipped: boolean;
}

export function readTextSetting(
  context: ImportContext,
  section: SourceSection,
  key: string,
): SettingValue<string> {
  const tree = given(section, key);
  const value = context.reader.readText(tree);
  if (tree !== undefined && value !== undefined) return { value, where: tree, isShipped: false };
  return {
    value: String(useShippedDefault(context, section, key)),
    where: section.refTo(key),
    isShipped: true,
  };
}

export function readNumberSetting(
  context: ImportContext,
  section: SourceSection,
  key: string,
): SettingValue<number> {
  const tree = given(section, key);
  const value = context.reader.readInteger(tree);
  if (tree !== undefined && value !== undefined) return { value, where: tree, isShipped: false };
  return {
    value: Number(useShippedDefault(context, section, key)),
    where: section.refTo(key),
    isShipped: true,
  };
}

function given(section: SourceSection, key: string): SourceTree | undefined {
  return section.find(key);
}

function useShippedDefault(
  { writer }: ImportContext,
  section: SourceSection,
  key: string,
): string | number {
  const value = SHIPPED_DEFAULTS[key] ?? '';
  writer.note(
    section.refTo(key),
    'imported-differently',
    `${ABSENT_NOTES[key] ?? 'is missing, which is an error in the source system'}; the default of its shipped settings file was used: ${value}`,
  );
  return value;
}

export function setFromSetting(
  { writer }: ImportContext,
  path: ConfigPath,
  entry: { setting: SettingValue<unknown>; value: DraftValue },
): void {
  const { setting, value } = entry;
  if (setting.isShipped) writer.setSourceDefault(path, value, setting.where);
  else writer.set(path, value, setting.where);
}

export function setNumberSetting(
  context: ImportContext,
  section: SourceSection,
  { key, path }: { key: string; path: ConfigPath },
): SettingValue<number> {
  const setting = readNumberSetting(context, section, key);
  setFromSetting(context, path, { setting, value: setting.value });
  return setting;
}

export function setSecondsSetting(
  context: ImportContext,
  section: SourceSection,
  { key, path }: { key: string; path: ConfigPath },
): SettingValue<number> {
  const setting = readNumberSetting(context, section, key);
  setFromSetting(context, path, { setting, value: formatSeconds(setting.value) });
  return setting;
}
