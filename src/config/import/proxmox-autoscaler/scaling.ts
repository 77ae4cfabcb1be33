// SPDX-License-Identifier: Apache-2.0
// When proxmox-autoscaler adds and removes machines.

import type { Context } from '../context.ts';
import type { DraftPath } from '../ours/draft.ts';
import type { Section } from '../source/tree.ts';
import { addressCount } from './network.ts';
import { carryChosen, carryNumber, carrySeconds, numberSetting } from './values.ts';

const WITHOUT_EFFECT = 'has no effect there (it is a plan of the program) and takes effect here';

interface SecondsKey {
  readonly key: string;
  /** Below the pool, or from the top of the file. */
  readonly pool?: readonly string[];
  readonly top?: readonly string[];
  readonly note?: string;
}

const SECONDS: readonly SecondsKey[] = [
  { key: 'scan_interval', top: ['intervals', 'scan'] },
  { key: 'pxe_vm_lost_cleanup_delay', top: ['cleanup', 'lostAfter'] },
  { key: 'max_node_provision_time', pool: ['provisionTimeout'], note: WITHOUT_EFFECT },
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

export function mapScaling(context: Context, settings: Section, pool: DraftPath): void {
  mapLimits(context, settings, pool);
  for (const { key, top, pool: below = [], note } of SECONDS) {
    if (note === WITHOUT_EFFECT && settings.find(key) === undefined) continue;
    const chosen = carrySeconds(context, settings, { key, path: top ?? [...pool, ...below] });
    if (note !== undefined) context.work.note(chosen.where, 'carried-differently', note);
  }
  mapThreshold(context, settings, pool);
  mapGuards(context, settings);
}

function mapLimits(context: Context, settings: Section, pool: DraftPath): void {
  const { work } = context;
  const addresses = addressCount(context, settings) ?? Number.POSITIVE_INFINITY;
  const min = numberSetting(context, settings, 'min_size');
  const max = numberSetting(context, settings, 'max_size');
  const least = Math.min(min.value, addresses);
  const most = Math.min(Math.max(min.value, max.value), addresses);
  carryChosen(context, [...pool, 'limits', 'min'], { chosen: min, value: least });
  carryChosen(context, [...pool, 'limits', 'max'], { chosen: max, value: most });
  if (max.value < min.value) {
    work.note(
      max.where,
      'needs-you',
      `is less than min_size: ${most} was written, decide what you want`,
    );
  } else if (max.value > addresses) {
    work.note(
      max.where,
      'needs-you',
      `is more than the range has addresses: ${most} was written; widen the range to have more`,
    );
  }
}

function mapThreshold(context: Context, settings: Section, pool: DraftPath): void {
  const percent = numberSetting(context, settings, 'scale_down_utilization_threshold');
  const path = [...pool, 'scaleDown', 'utilizationThreshold'];
  carryChosen(context, path, { chosen: percent, value: percent.value / 100 });
  context.work.note(
    percent.where,
    'carried-differently',
    'is percent of momentary use there, the lowest of all nodes; here it is a share of what the pods of one node request',
  );
}

function mapGuards(context: Context, settings: Section): void {
  const keys = [
    { key: 'max_total_unready_percentage', path: ['guards', 'maxTotalUnreadyPercentage'] },
    { key: 'ok_total_unready_count', path: ['guards', 'okTotalUnreadyCount'] },
  ];
  for (const entry of keys.filter(({ key }) => settings.find(key) !== undefined)) {
    const chosen = carryNumber(context, settings, entry);
    context.work.note(chosen.where, 'carried-differently', WITHOUT_EFFECT);
  }
}
