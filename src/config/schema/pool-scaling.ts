// SPDX-License-Identifier: Apache-2.0
// Scaling settings of a pool.
import * as z from 'zod';
import { accepted, refused } from '../../model/parsed.ts';
import { parseCron } from '../values/cron.ts';
import { bytes, duration, ratio, wholeNumber } from './amount-leaves.ts';
import { key, section } from './key.ts';
import { textLeaf } from './leaf.ts';
import { nonEmptyText } from './name-leaves.ts';

export const MACHINES_MAX = 10_000;

export const limitsSchema = section({
  min: key(wholeNumber(0, MACHINES_MAX).prefault(0), 'Minimum number of machines.', {
    replaces: {
      externalgrpc: 'node_groups[].min_size',
      'proxmox-autoscaler': 'min_size',
      kubenodesmith: 'nodePools[].limits.minNodes',
    },
    note: 'KubeNodeSmith never scaled up to this number',
  }),
  max: key(
    wholeNumber(0, MACHINES_MAX).prefault(10),
    'Maximum number of machines; 0 disables the pool.',
    {
      replaces: {
        externalgrpc: 'node_groups[].max_size',
        'proxmox-autoscaler': 'max_size',
        kubenodesmith: 'nodePools[].limits.maxNodes',
      },
      note: 'the default is 10 as in ca-proxmox-externalgrpc, not 5 as in proxmox-autoscaler; 0 meant no limit in KubeNodeSmith',
    },
  ),
  cpu: key(
    wholeNumber(0, 1_000_000).prefault(0),
    'Maximum vCPUs of all machines together; 0 means no limit.',
    {
      replaces: { kubenodesmith: 'nodePools[].limits.cpuCores' },
    },
  ),
  memory: key(bytes().prefault(0), 'Maximum memory of all machines together; 0 means no limit.', {
    replaces: { kubenodesmith: 'nodePools[].limits.memoryMiB' },
  }),
});

export const scaleUpSchema = section({
  batchSize: key(
    wholeNumber(1, 1000).prefault(10),
    'Maximum number of machines requested in one autoscaler pass.',
    {
      replaces: { kubenodesmith: 'nodePools[].scaleUp.batchSize' },
      note: 'without effect in KubeNodeSmith',
    },
  ),
  stabilizationWindow: key(
    duration().prefault('2s'),
    'How long the set of pending pods must be unchanged before machines are requested.',
    {
      replaces: { kubenodesmith: 'nodePools[].scaleUp.stabilizationWindow' },
      note: 'without effect in KubeNodeSmith',
    },
  ),
  delayAfterAdd: key(
    duration().prefault('0s'),
    'Delay after a scale-up before the next scale-up.',
    {
      replaces: { 'proxmox-autoscaler': 'scale_up_delay_after_add' },
      note: '300 s in proxmox-autoscaler; not needed here, because machines being provisioned are counted',
    },
  ),
});

export const scaleDownSchema = section({
  when: key(
    z.enum(['underutilized', 'empty', 'never']).prefault('underutilized'),
    'Which machines are removed: those whose pods fit on other nodes, only those without pods, or none.',
  ),
  utilizationThreshold: key(
    ratio().prefault(0.5),
    'A machine may be removed when the requested share of its CPU and memory is below this value.',
    {
      replaces: { 'proxmox-autoscaler': 'scale_down_utilization_threshold' },
      note: 'compares pod requests, not current usage; a ratio, not a percentage',
    },
  ),
  ignoreDaemonSets: key(
    z.boolean().prefault(false),
    'Leave the pods of DaemonSets out of the utilization, as `--ignore-daemonsets-utilization` of the Cluster Autoscaler.',
  ),
  skipLocalStorage: key(
    z.boolean().prefault(true),
    'Keep machines with pods that store data on the disk of the node (emptyDir, hostPath), as `--skip-nodes-with-local-storage` of the Cluster Autoscaler.',
  ),
  skipSystemPods: key(
    z.boolean().prefault(true),
    'Keep machines with pods in kube-system that have no PodDisruptionBudget, as `--skip-nodes-with-system-pods` of the Cluster Autoscaler.',
  ),
  skipCustomControllers: key(
    z.boolean().prefault(true),
    'Keep machines with pods of controllers that Kubernetes does not provide, as `--skip-nodes-with-custom-controller-pods` of the Cluster Autoscaler.',
  ),
  unneededTime: key(
    duration().prefault('10m'),
    'How long a machine must be unneeded before it is removed.',
    {
      replaces: { 'proxmox-autoscaler': 'scale_down_unneeded_time' },
    },
  ),
  maxConcurrent: key(
    wholeNumber(1, 1000).prefault(1),
    'Maximum number of machines of the pool that are drained at the same time.',
    {
      replaces: { kubenodesmith: 'nodePools[].scaleDown.maxConcurrent' },
      note: 'without effect in KubeNodeSmith',
    },
  ),
  drainTimeout: key(
    duration({ min: '1s' }).prefault('10m'),
    'Maximum duration of a drain. What happens then: `onDrainTimeout`.',
    {
      replaces: { kubenodesmith: 'nodePools[].scaleDown.drainTimeout' },
      note: 'without effect in KubeNodeSmith',
    },
  ),
  onDrainTimeout: key(
    z.enum(['undo', 'force']).prefault('undo'),
    'After `drainTimeout`: undo the drain and keep the machine, or delete the machine with the pods that are left on it.',
  ),
  delayAfterAdd: key(
    duration().prefault('10m'),
    'Delay after a scale-up before the next scale-down.',
    {
      replaces: { 'proxmox-autoscaler': 'scale_down_delay_after_add' },
    },
  ),
  delayAfterDelete: key(
    duration().prefault('0s'),
    'Delay after a scale-down before the next scale-down.',
    {
      replaces: { 'proxmox-autoscaler': 'scale_down_delay' },
      note: '600 s in proxmox-autoscaler',
    },
  ),
  delayAfterFailure: key(
    duration().prefault('10m'),
    'Delay after a failed scale-down before the next scale-down.',
    {
      replaces: { 'proxmox-autoscaler': 'scale_down_delay_after_error' },
      note: 'applies to this pool only; proxmox-autoscaler stopped all scaling',
    },
  ),
});

export const headroomSchema = section({
  machines: key(
    wholeNumber(0, 1000).prefault(0),
    'Number of empty machines kept ready for future pods.',
  ),
  cpu: key(wholeNumber(0, 100_000).prefault(0), 'vCPUs kept free.'),
  memory: key(bytes().prefault(0), 'Memory kept free.'),
});

function cron() {
  return textLeaf({ type: 'cron expression', json: { type: 'string' } }, parseCron);
}

function timeZone() {
  return textLeaf({ type: 'time zone', json: { type: 'string' } }, (value) =>
    isTimeZone(value) ? accepted(value) : refused("must be a time zone such as 'Europe/Berlin'"),
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
      name: key(nonEmptyText().optional(), 'Display name, also used in logs.'),
      start: key(cron(), 'Start of the window, as a cron expression.', {
        examples: ['0 7 * * 1-5'],
      }),
      duration: key(duration({ min: '1m' }), 'Length of the window.'),
      timeZone: key(timeZone().prefault('UTC'), 'Time zone of the cron expression.'),
      min: key(
        wholeNumber(0, MACHINES_MAX).optional(),
        'Value of `limits.min` during the window.',
        {
          defaultText: '`limits.min`',
        },
      ),
      max: key(
        wholeNumber(0, MACHINES_MAX).optional(),
        'Value of `limits.max` during the window.',
        {
          defaultText: '`limits.max`',
        },
      ),
    }),
  )
  .prefault([]);

export const clusterAutoscalerSchema = section({
  minKeptBy: key(
    z.enum(['pvescaler', 'cluster-autoscaler']).prefault('pvescaler'),
    'Which side creates machines up to `limits.min`: pvescaler, or the Cluster Autoscaler, which needs `--enforce-node-group-min-size`.',
  ),
  // With the names of the Cluster Autoscaler.
  options: key(
    section({
      scaleDownUtilizationThreshold: key(
        ratio().optional(),
        'A node may be removed when its utilization is below this ratio.',
      ),
      scaleDownGpuUtilizationThreshold: key(
        ratio().optional(),
        'The same ratio for nodes with GPUs.',
      ),
      scaleDownUnneededTime: key(
        duration().optional(),
        'How long a node must be unneeded before it is removed.',
      ),
      scaleDownUnreadyTime: key(
        duration().optional(),
        'How long an unready node must be unneeded before it is removed.',
      ),
      maxNodeProvisionTime: key(duration().optional(), 'Maximum time to provision a node.'),
      zeroOrMaxNodeScaling: key(
        z.boolean().optional(),
        'Scale the node group only between zero and its maximum.',
      ),
      ignoreDaemonSetsUtilization: key(
        z.boolean().optional(),
        'Ignore DaemonSet pods when computing the utilization.',
      ),
    }),
    'Autoscaling options returned to the Cluster Autoscaler for this pool. Options that are not set keep the values of its flags.',
  ),
});
