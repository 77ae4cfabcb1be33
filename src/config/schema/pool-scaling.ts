// SPDX-License-Identifier: Apache-2.0
// How a pool grows and shrinks.
import * as z from 'zod';
import { accepted, refused } from '../../model/parsed.ts';
import { parseCron } from '../values/cron.ts';
import { bytes, duration, ratio, wholeNumber } from './amount-leaves.ts';
import { key, section } from './key.ts';
import { textLeaf } from './leaf.ts';
import { nonEmptyText } from './name-leaves.ts';

export const MACHINES_MAX = 10_000;

export const limitsSchema = section({
  min: key(wholeNumber(0, MACHINES_MAX).prefault(0), 'Machines that are always there.', {
    replaces: {
      externalgrpc: 'node_groups[].min_size',
      'proxmox-autoscaler': 'min_size',
      kubenodesmith: 'nodePools[].limits.minNodes',
    },
    note: 'KubeNodeSmith never grew to it',
  }),
  max: key(
    wholeNumber(0, MACHINES_MAX).prefault(10),
    'The most machines; 0 switches the pool off.',
    {
      replaces: {
        externalgrpc: 'node_groups[].max_size',
        'proxmox-autoscaler': 'max_size',
        kubenodesmith: 'nodePools[].limits.maxNodes',
      },
      note: '10 (ca-proxmox-externalgrpc) won over 5 (proxmox-autoscaler); 0 meant no limit in KubeNodeSmith',
    },
  ),
  cpu: key(
    wholeNumber(0, 1_000_000).prefault(0),
    'The most vCPUs of all machines together; 0: no limit.',
    {
      replaces: { kubenodesmith: 'nodePools[].limits.cpuCores' },
    },
  ),
  memory: key(bytes().prefault(0), 'The most memory of all machines together; 0: no limit.', {
    replaces: { kubenodesmith: 'nodePools[].limits.memoryMiB' },
  }),
});

export const scaleUpSchema = section({
  batchSize: key(wholeNumber(1, 1000).prefault(10), 'The most machines ordered in one round.', {
    replaces: { kubenodesmith: 'nodePools[].scaleUp.batchSize' },
    note: 'without effect there',
  }),
  stabilizationWindow: key(
    duration().prefault('10s'),
    'How long pods must have been pending without a change before machines are ordered.',
    {
      replaces: { kubenodesmith: 'nodePools[].scaleUp.stabilizationWindow' },
      note: 'without effect there',
    },
  ),
  delayAfterAdd: key(duration().prefault('0s'), 'No further scale-up this long after one.', {
    replaces: { 'proxmox-autoscaler': 'scale_up_delay_after_add' },
    note: '300 s there; machines on their way are counted here, so no wait is needed',
  }),
});

export const scaleDownSchema = section({
  when: key(
    z.enum(['underutilized', 'empty', 'never']).prefault('underutilized'),
    'Which machines go: those whose pods fit elsewhere, only those without pods, or none.',
  ),
  utilizationThreshold: key(
    ratio().prefault(0.5),
    'Below this share of requested CPU and memory a machine may go.',
    {
      replaces: { 'proxmox-autoscaler': 'scale_down_utilization_threshold' },
      note: 'requests of pods, not momentary use; a share, not percent',
    },
  ),
  unneededTime: key(duration().prefault('10m'), 'How long it must have been unneeded.', {
    replaces: { 'proxmox-autoscaler': 'scale_down_unneeded_time' },
  }),
  maxConcurrent: key(wholeNumber(1, 1000).prefault(1), 'Machines of the pool drained at once.', {
    replaces: { kubenodesmith: 'nodePools[].scaleDown.maxConcurrent' },
    note: 'without effect there',
  }),
  drainTimeout: key(
    duration({ min: '1s' }).prefault('10m'),
    'How long a drain may take before it is given up and the machine stays.',
    {
      replaces: { kubenodesmith: 'nodePools[].scaleDown.drainTimeout' },
      note: 'without effect there',
    },
  ),
  delayAfterAdd: key(duration().prefault('10m'), 'No scale-down this long after a scale-up.', {
    replaces: { 'proxmox-autoscaler': 'scale_down_delay_after_add' },
  }),
  delayAfterDelete: key(duration().prefault('0s'), 'No scale-down this long after one.', {
    replaces: { 'proxmox-autoscaler': 'scale_down_delay' },
    note: '600 s there',
  }),
  delayAfterFailure: key(duration().prefault('10m'), 'No scale-down this long after one failed.', {
    replaces: { 'proxmox-autoscaler': 'scale_down_delay_after_error' },
    note: 'the pool only; there it stopped everything',
  }),
});

export const headroomSchema = section({
  machines: key(wholeNumber(0, 1000).prefault(0), 'Empty machines kept ready for pods to come.'),
  cpu: key(wholeNumber(0, 100_000).prefault(0), 'vCPUs kept free.'),
  memory: key(bytes().prefault(0), 'Memory kept free.'),
});

function cron() {
  return textLeaf({ type: 'cron expression', json: { type: 'string' } }, parseCron);
}

function timeZone() {
  return textLeaf({ type: 'time zone', json: { type: 'string' } }, (value) =>
    isTimeZone(value) ? accepted(value) : refused("is not a time zone such as 'Europe/Berlin'"),
  );
}

function isTimeZone(name: string): boolean {
  try {
    return new Intl.DateTimeFormat('en', { timeZone: name }).format(0) !== '';
  } catch {
    return false;
  }
}

export const schedulesSchema = z
  .array(
    z.strictObject({
      name: key(nonEmptyText().optional(), 'For people and logs.'),
      start: key(cron(), 'When the window opens, as a cron expression.', {
        examples: ['0 7 * * 1-5'],
      }),
      duration: key(duration({ min: '1m' }), 'How long it stays open.'),
      timeZone: key(timeZone().prefault('UTC'), 'In which the expression is read.'),
      min: key(wholeNumber(0, MACHINES_MAX).optional(), '`limits.min` inside the window.', {
        defaultText: '`limits.min`',
      }),
      max: key(wholeNumber(0, MACHINES_MAX).optional(), '`limits.max` inside the window.', {
        defaultText: '`limits.max`',
      }),
    }),
  )
  .prefault([]);

/** As the Cluster Autoscaler names them; an option left out keeps its flag's value there. */
export const clusterAutoscalerSchema = section({
  options: key(
    section({
      scaleDownUtilizationThreshold: key(ratio().optional(), 'Below this share a node may go.'),
      scaleDownGpuUtilizationThreshold: key(ratio().optional(), 'The same for nodes with GPUs.'),
      scaleDownUnneededTime: key(duration().optional(), 'How long a node must be unneeded.'),
      scaleDownUnreadyTime: key(
        duration().optional(),
        'How long an unready node must be unneeded.',
      ),
      maxNodeProvisionTime: key(duration().optional(), 'How long a node may take to come.'),
      zeroOrMaxNodeScaling: key(z.boolean().optional(), 'Scale the group only from none to all.'),
      ignoreDaemonSetsUtilization: key(z.boolean().optional(), 'Do not count pods of DaemonSets.'),
    }),
    'Answered to the Cluster Autoscaler for this pool only where set.',
  ),
});
