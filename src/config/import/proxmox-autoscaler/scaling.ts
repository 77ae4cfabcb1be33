// SPDX-License-Identifier: Apache-2.0
// Scaling settings of proxmox-autoscaler.

import type { ConfigPath } from '../../config-path.ts';
import type { ImportContext } from '../context.ts';
import type { SourceSection } from '../source/tree.ts';
import { countAddresses } from './network.ts';
import {
  readNumberSetting,
  setFromSetting,
  setNumberSetting,
  setSecondsSetting,
} from './shipped-defaults.ts';

const NO_EFFECT_NOTE =
  'has no effect in the source system (not implemented) but takes effect in pvescaler';

interface SecondsKey {
  readonly key: string;
  /** Path below the pool (`pool`) or from the root of the file (`top`). */
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
    note: 'delays the whole loop of the source system, including scale-up; in pvescaler it delays only scale-down of the pool',
  },
];

export function mapScaling(
  context: ImportContext,
  settings: SourceSection,
  pool: ConfigPath,
): void {
  mapLimits(context, settings, pool);
  for (const { key, top, pool: below = [], note } of SECONDS_KEYS) {
    if (note === NO_EFFECT_NOTE && settings.find(key) === undefined) continue;
    const setting = setSecondsSetting(context, settings, { key, path: top ?? [...pool, ...below] });
    if (note !== undefined) context.writer.note(setting.where, 'imported-differently', note);
  }
  mapThreshold(context, settings, pool);
  mapGuards(context, settings);
}

function mapLimits(context: ImportContext, settings: SourceSection, pool: ConfigPath): void {
  const { writer } = context;
  const addresses = countAddresses(context, settings) ?? Number.POSITIVE_INFINITY;
  const min = readNumberSetting(context, settings, 'min_size');
  const max = readNumberSetting(context, settings, 'max_size');
  const minMachines = Math.min(min.value, addresses);
  const maxMachines = Math.min(Math.max(min.value, max.value), addresses);
  setFromSetting(context, [...pool, 'limits', 'min'], { setting: min, value: minMachines });
  setFromSetting(context, [...pool, 'limits', 'max'], { setting: max, value: maxMachines });
  if (max.value < min.value) {
    writer.note(
      max.where,
      'action-required',
      `is less than min_size; ${maxMachines} was set, check the value`,
    );
  } else if (max.value > addresses) {
    writer.note(
      max.where,
      'action-required',
      `is more than the number of addresses in the range; ${maxMachines} was set, extend the range for more`,
    );
  }
}

function mapThreshold(context: ImportContext, settings: SourceSection, pool: ConfigPath): void {
  const percent = readNumberSetting(context, settings, 'scale_down_utilization_threshold');
  const path = [...pool, 'scaleDown', 'utilizationThreshold'];
  setFromSetting(context, path, { setting: percent, value: percent.value / 100 });
  context.writer.note(
    percent.where,
    'imported-differently',
    'is a percentage of current usage in the source system, for the least used node; in pvescaler it is a ratio of the requests of the pods on a node',
  );
}

function mapGuards(context: ImportContext, settings: SourceSection): void {
  const keys = [
    { key: 'max_total_unready_percentage', path: ['guards', 'maxTotalUnreadyPercentage'] },
    { key: 'ok_total_unready_count', path: ['guards', 'okTotalUnreadyCount'] },
  ];
  for (const entry of keys.filter(({ key }) => settings.find(key) !== undefined)) {
    const setting = setNumberSetting(context, settings, entry);
    context.writer.note(setting.where, 'imported-differently', NO_EFFECT_NOTE);
  }
}
