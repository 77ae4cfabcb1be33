// SPDX-License-Identifier: Apache-2.0
// Settings that hold for the whole cluster: guards, the standalone autoscaler, prices, GPUs.
import * as z from 'zod';
import { duration, percentage, wholeNumber } from './amount-leaves.ts';
import { key, section } from './key.ts';
import { labelKey, labelValue } from './name-leaves.ts';

export const guardsSchema = section({
  maxTotalUnreadyPercentage: key(
    percentage().prefault(45),
    'No scaling while more than this share of all nodes is not ready …',
    {
      replaces: { 'proxmox-autoscaler': 'max_total_unready_percentage' },
      note: 'documented but without effect there',
    },
  ),
  okTotalUnreadyCount: key(
    wholeNumber(0, 100_000).prefault(3),
    '… unless no more than this many nodes are not ready.',
    {
      replaces: { 'proxmox-autoscaler': 'ok_total_unready_count' },
      note: 'documented but without effect there',
    },
  ),
  backoff: key(
    section({
      initial: key(
        duration({ min: '1s' }).prefault('1m'),
        'How long a pool rests after a machine of it failed.',
      ),
      max: key(
        duration({ min: '1s' }).prefault('30m'),
        'The longest rest; each failure in a row doubles it up to here.',
      ),
    }),
    'Rest of a pool whose new machines fail.',
  ),
});

export const autoscalerSchema = section({
  expendablePriority: key(
    wholeNumber(-2_147_483_648, 1_000_000_000).prefault(-10),
    'Pods with a priority below this cause no scale-up and do not keep a node from being removed.',
  ),
  newPodDelay: key(duration().prefault('0s'), 'A pod younger than this causes no scale-up yet.'),
  poolChoice: key(
    z.enum(['priority', 'least-waste', 'cheapest', 'random']).prefault('least-waste'),
    'Which pool grows when several could hold the pods: by `priority` of the pool, by what is left unused, by price, or by chance. Pool priority always comes first.',
  ),
});

export const pricingSchema = section({
  vcpuHour: key(
    z.number().min(0).prefault(0.01),
    'Price of one vCPU for an hour, in any currency.',
  ),
  memoryGiBHour: key(z.number().min(0).prefault(0.002), 'Price of one GiB of memory for an hour.'),
});

export const gpuSchema = section({
  label: key(
    labelKey().prefault('autoscaler.proxmox/gpu'),
    'Label that tells the kind of GPU of a node; the Cluster Autoscaler asks for it.',
  ),
  types: key(z.array(labelValue()).prefault([]), 'Kinds of GPU beyond those that pools name.'),
});
