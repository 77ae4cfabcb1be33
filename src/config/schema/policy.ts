// SPDX-License-Identifier: Apache-2.0
// Settings for the whole cluster: guards, the standalone autoscaler, prices, GPUs.
import * as z from 'zod';
import { duration, percentage, wholeNumber } from './amount-leaves.ts';
import { key, section } from './key.ts';
import { labelKey, labelValue } from './name-leaves.ts';

export const guardsSchema = section({
  maxTotalUnreadyPercentage: key(
    percentage().prefault(45),
    'Delete no machine of a pool as lost while more than this percentage of its machines seem lost, because their VM or Node is missing. In standalone mode, also remove no machine while more than this percentage of all Nodes are not Ready.',
    {
      replaces: { 'proxmox-autoscaler': 'max_total_unready_percentage' },
      note: 'documented but without effect in proxmox-autoscaler',
    },
  ),
  okTotalUnreadyCount: key(
    wholeNumber(0, 100_000).prefault(3),
    'Number of machines or Nodes up to which `maxTotalUnreadyPercentage` does not apply. `pvescaler pool confirm-lost` deletes lost machines all the same.',
    {
      replaces: { 'proxmox-autoscaler': 'ok_total_unready_count' },
      note: 'documented but without effect in proxmox-autoscaler',
    },
  ),
  backoff: key(
    section({
      initial: key(
        duration({ min: '1s' }).prefault('1m'),
        'Back-off of a pool after one of its machines failed.',
      ),
      max: key(
        duration({ min: '1s' }).prefault('30m'),
        'Maximum back-off; each consecutive failure doubles the back-off up to this value.',
      ),
    }),
    'Back-off of a pool whose new machines fail.',
  ),
  breaker: key(
    section({
      machines: key(
        wholeNumber(1, 1000).prefault(3),
        'Pause a pool after this many new machines in a row that never joined or that no pod was scheduled to (standalone mode).',
      ),
      pause: key(
        duration({ min: '1s' }).prefault('30m'),
        'Duration of the pause. `pvescaler pool resume` ends it.',
      ),
    }),
    'Circuit breaker of a pool whose new machines help no pod.',
  ),
});

export const autoscalerSchema = section({
  expendablePriority: key(
    wholeNumber(-2_147_483_648, 1_000_000_000).prefault(-10),
    'Pods with a lower priority do not trigger a scale-up and do not block the removal of a node.',
  ),
  newPodDelay: key(
    duration().prefault('0s'),
    'Minimum age of a pending pod before it triggers a scale-up.',
  ),
  poolChoice: key(
    z.enum(['priority', 'least-waste', 'cheapest', 'balance', 'random']).prefault('least-waste'),
    'Which pool grows when several fit the pods: by pool `priority` and then by order, least unused capacity, lowest price, fewest machines, or at random. Pool priority is always compared first.',
  ),
});

export const pricingSchema = section({
  vcpuHour: key(z.number().min(0).prefault(0.01), 'Price of one vCPU per hour, in any currency.'),
  memoryGiBHour: key(z.number().min(0).prefault(0.002), 'Price of one GiB of memory per hour.'),
});

export const gpuSchema = section({
  label: key(
    labelKey().prefault('autoscaler.proxmox/gpu'),
    'Node label whose value is the GPU type; reported to the Cluster Autoscaler.',
  ),
  types: key(z.array(labelValue()).prefault([]), 'Additional GPU types that no pool uses.'),
});
