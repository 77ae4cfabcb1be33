// SPDX-License-Identifier: Apache-2.0
// When proxmox-autoscaler adds and removes machines.

import type { ImportContext } from '../context.ts';
import type { DraftPath } from '../output/draft.ts';
import type { SourceSection } from '../source/tree.ts';
import { countAddresses } from './network.ts';
import { readNumberSetting, setFromSetting, setNumber, setSeconds } from './shipped-defaults.ts';

const NO_EFFECT_NOTE = 'has no effect there (it is a plan of the program) and takes effect here';

interface SecondsKey {
  readonly key: string;
  /** Below the pool, or from the top of the file. */
  readonly pool?: readonly string[];
  readonly top?: readonly string[];
  readonly note?: string;
}

const SECONDS_KEYS: readonly SecondsKey[] = [
  { key: 'scan_interval', top: ['intervals', 'scan'] },
  { key: 'pxe_vm_lost_cleanup_delay', top: ['cleanup', 'lostAfter'] },
  { key: 'max_node_provision_time', pool: ['provisionTimeout'], note: NO_EFFECT_NOTE },
  { key: 'scale_up_delay_after_add', pool: ['scaleUp', 'delayAfterAdd'] },
  { key: 'scale_down_unneeded_time', pool: ['scaleDown', 'unneededTime'] },
  { key: 'scale_down_delay_after_add', pool: ['scaleDown', 'delayAfterAdd'] },
  { key: 'scale_down_delay', pool: ['scaleDown', 'delayAfterDelete'] },
  {
    key: 'scale_down_delay_after_error',
    pool: ['scaleDown', 'delayAfterFailure'],
    note: 'stops the whole loop there, scale-up too; here it holds back scale-down of the pool only',
  },
];

export function mapScaling(context: ImportContext, settings: SourceSection, pool: DraftPath): void {
  mapLimits(context, settings, pool);
  for (const { key, top, pool: below = [], note } of SECONDS_KEYS) {
    if (note === NO_EFFECT_NOTE && settings.find(key) === undefined) continue;
    const setting = setSeconds(context, settings, { key, path: top ?? [...pool, ...below] });
    if (note !== undefined) context.writer.note(setting.where, 'carried-differently', note);
  }
  mapThreshold(context, settings, pool);
  mapGuards(context, settings);
}

function mapLimits(context: ImportContext, settings: SourceSection, pool: DraftPath): void {
  const { writer } = context;
  const addresses = countAddresses(context, settings) ?? Number.POSITIVE_INFINITY;
  const min = readNumberSetting(context, settings, 'min_size');
  const max = readNumberSetting(context, settings, 'max_size');
  const least = Math.min(min.value, addresses);
  const most = Math.min(Math.max(min.value, max.value), addresses);
  setFromSetting(context, [...pool, 'limits', 'min'], { setting: min, value: least });
  setFromSetting(context, [...pool, 'limits', 'max'], { setting: max, value: most });
  if (max.value < min.value) {
    writer.note(
      max.where,
      'needs-you',
      `is less than min_size: ${most} was written, decide what you want`,
    );
  } else if (max.value > addresses) {
    writer.note(
      max.where,
      'needs-you',
      `is more than the range has addresses: ${most} was written; widen the range to have more`,
    );
  }
}

function mapThreshold(context: ImportContext, settings: SourceSection, pool: DraftPath): void {
  const percent = readNumberSetting(context, settings, 'scale_down_utilization_threshold');
  const path = [...pool, 'scaleDown', 'utilizationThreshold'];
  setFromSetting(context, path, { setting: percent, value: percent.value / 100 });
  context.writer.note(
    percent.where,
    'carried-differently',
    'is percent of momentary use there, the lowest of all nodes; here it is a share of what the pods of one node request',
  );
}

function mapGuards(context: ImportContext, settings: SourceSection): void {
  const keys = [
    { key: 'max_total_unready_percentage', path: ['guards', 'maxTotalUnreadyPercentage'] },
    { key: 'ok_total_unready_count', path: ['guards', 'okTotalUnreadyCount'] },
  ];
  for (const entry of keys.filter(({ key }) => settings.find(key) !== undefined)) {
    const setting = setNumber(context, settings, entry);
    context.writer.note(setting.where, 'carried-differently', NO_EFFECT_NOTE);
  }
}
