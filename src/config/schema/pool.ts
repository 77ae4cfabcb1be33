// SPDX-License-Identifier: Apache-2.0
// A pool: machines of one kind, and limits on their number.
import * as z from 'zod';
import { checkTaint, parseTaint } from '../../model/taints.ts';
import { bytes, countAmount, duration, wholeNumber } from './amount-leaves.ts';
import { JOIN_KINDS } from './join.ts';
import { key, section } from './key.ts';
import { textLeaf } from './leaf.ts';
import { extendedResource, labelKey, labelValue, nonEmptyText, poolName } from './name-leaves.ts';
import { networkSchema } from './network.ts';
import {
  capacitySchema,
  diskSchema,
  namesSchema,
  placementSchema,
  poolGpuSchema,
} from './pool-machine.ts';
import {
  clusterAutoscalerSchema,
  headroomSchema,
  limitsSchema,
  scaleDownSchema,
  scaleUpSchema,
  schedulesSchema,
} from './pool-scaling.ts';
import { poolSizeSchema } from './pool-size.ts';
import { fromSchema } from './source-choice.ts';
import { vmOptionsSchema } from './vm-options.ts';

const taintSchema = z
  .union([
    textLeaf({ type: 'taint', json: { type: 'string', pattern: ':' }, quotes: true }, parseTaint),
    z
      .strictObject({
        key: key(labelKey(), 'Taint key.'),
        value: key(labelValue().prefault(''), 'Taint value.'),
        effect: key(z.enum(['NoSchedule', 'PreferNoSchedule', 'NoExecute']), 'Taint effect.'),
      })
      .superRefine((taint, context) => {
        const checked = checkTaint(taint);
        if (!checked.ok) context.addIssue({ code: 'custom', message: checked.problem });
      }),
  ])
  .meta({
    'x-forms': "text such as 'key=value:NoSchedule', or a mapping with key, value and effect",
  });

export const poolSchema = z.strictObject({
  name: key(
    poolName(),
    'Name of the pool, a lower-case DNS label. Used as VM tag, node label and node group id.',
    {
      replaces: { externalgrpc: 'node_groups[].id', kubenodesmith: 'nodePools[].name' },
    },
  ),
  regions: key(
    z.array(nonEmptyText()).min(1).optional(),
    'Regions in which machines may be created, in order of preference.',
    {
      defaultText: 'all',
      replaces: { kubenodesmith: 'nodePools[].providerRef' },
    },
  ),
  from: key(fromSchema, 'Where a new VM comes from.', {
    defaultText: 'the image or template, when there is exactly one',
  }),
  join: key(
    z.enum([...JOIN_KINDS, 'none']).optional(),
    'Recipe in `join` that machines use to join the cluster; `none` when the image joins by itself.',
    {
      defaultText: 'the recipe, when there is exactly one; `none` with netboot',
    },
  ),
  size: key(
    poolSizeSchema,
    'Size of a machine: the name of a size, `{ cpu, memory, disk }`, a list of those, or `{ min, max, step }` to choose a size by demand. In mode externalgrpc each size of a list must have a name and is a node group of its own, `POOL-SIZE`; `{ min, max, step }` is refused.',
    {
      replaces: { 'vm-plan': ['--size', '--cpus', '--memory', '--disk'] },
      note: 'KubeNodeSmith sized a machine for the first pending pod; `{ min, max, step }` sizes it for all pending pods',
    },
  ),
  memoryOverhead: key(bytes().prefault(0), 'Memory added to the VM on top of its size.', {
    replaces: { kubenodesmith: 'providers.NAME.options.vmMemOverheadMiB' },
  }),
  balloon: key(
    bytes().prefault(0),
    'Minimum memory that ballooning leaves to the VM; 0 disables ballooning.',
    {
      replaces: { externalgrpc: 'node_groups[].balloon_mb' },
    },
  ),
  architecture: key(
    z.enum(['amd64', 'arm64']).prefault('amd64'),
    'CPU architecture of the machines.',
    {
      replaces: { kubenodesmith: 'nodePools[].machineTemplate.architecture' },
      note: 'without effect in KubeNodeSmith',
    },
  ),
  names: key(namesSchema, 'Machine names: `<prefix>[-<role>]-<suffix>`.'),
  limits: key(limitsSchema, 'Limits on the number and total size of machines.'),
  priority: key(
    wholeNumber(-1000, 1000).prefault(0),
    'When several pools fit a pod, the pool with the highest priority grows first.',
  ),
  network: key(networkSchema, 'Network cards and addresses.'),
  disk: key(diskSchema, 'Disk options.', {
    replaces: { kubenodesmith: 'vmOptions scsi0' },
  }),
  vmOptions: key(
    vmOptionsSchema,
    'Additional Proxmox VM options, passed through unchanged. Options that pvescaler sets itself and dangerous options are refused.',
    {
      replaces: { kubenodesmith: 'providers.NAME.options.vmOptions' },
      examples: [{ cpu: 'host', sockets: 1 }],
    },
  ),
  onboot: key(z.boolean().prefault(true), 'Start machines when their host boots.'),
  onStopped: key(
    z.enum(['restart', 'replace', 'ignore']).prefault('restart'),
    'What to do with a ready machine whose VM is stopped while its host is online: start it again, delete it once it has been stopped for `cleanup.lostAfter`, or only report it. A locked VM is left until its lock is removed.',
  ),
  labels: key(z.record(labelKey(), labelValue()).prefault({}), 'Node labels.', {
    replaces: {
      externalgrpc: 'node_groups[].labels',
      kubenodesmith: 'nodePools[].machineTemplate.labels',
    },
  }),
  groupLabel: key(
    labelKey().prefault('autoscaler.proxmox/group'),
    'Node label whose value is the pool name.',
    {
      replaces: {
        'proxmox-autoscaler': 'node_group_label',
        kubenodesmith: 'nodePools[].poolLabelKey',
      },
      note: 'ca-proxmox-externalgrpc uses autoscaler.proxmox/group; in proxmox-autoscaler the value was always `true`',
    },
  ),
  taints: key(z.array(taintSchema).prefault([]), 'Node taints.', {
    replaces: { externalgrpc: 'node_groups[].taints' },
    note: 'the effect is required',
  }),
  gpu: key(
    poolGpuSchema,
    'GPUs of a machine. Pass the device itself with `vmOptions.hostpci0: mapping=…`.',
  ),
  extendedResources: key(
    z.record(extendedResource(), countAmount()).prefault({}),
    'Other extended resources of a node, such as `example.com/device`, as whole numbers.',
  ),
  capacity: key(
    capacitySchema,
    'Capacity that pods can use, assumed for scheduling before the first node exists. Must match the kubelet configuration.',
  ),
  pricePerHour: key(z.number().min(0).optional(), 'Price of a machine per hour.', {
    defaultText: 'computed from `pricing`',
  }),
  placement: key(placementSchema, 'How the host of a new machine is chosen.'),
  scaleUp: key(scaleUpSchema, 'Scale-up settings.'),
  scaleDown: key(scaleDownSchema, 'Scale-down settings.'),
  headroom: key(headroomSchema, 'Capacity kept free (standalone mode).'),
  schedules: key(
    schedulesSchema,
    'Time windows with different limits, such as office hours (standalone mode).',
  ),
  provisionTimeout: key(
    duration({ min: '2m' }).prefault('15m'),
    'Maximum time from the choice of a host to a ready node. After that the machine counts as failed and is removed. At least 2 minutes.',
    {
      replaces: {
        externalgrpc: 'PENDING_VM_TIMEOUT_SECONDS',
        'proxmox-autoscaler': 'max_node_provision_time',
      },
      note: 'ca-proxmox-externalgrpc silently raised values below 120 s; without effect in proxmox-autoscaler',
    },
  ),
  registrationTimeout: key(
    duration({ min: '30s' }).prefault('5m'),
    'Maximum time from a booted guest to its registered Node.',
    {
      note: 'fixed at 5 minutes in KubeNodeSmith',
    },
  ),
  keepFailed: key(
    wholeNumber(0, 100).prefault(0),
    'How many machines that failed to boot or join are kept: stopped, outside the target size, without seed and token. They hold their VM id, addresses and share of the host; older ones are deleted.',
  ),
  deletion: key(
    section({
      mode: key(
        z.enum(['shutdown', 'stop']).prefault('shutdown'),
        'Shut down the guest first, or stop the VM immediately.',
        {
          note: 'ca-proxmox-externalgrpc stopped the VM immediately',
        },
      ),
      shutdownTimeout: key(
        duration({ min: '1s' }).prefault('1m'),
        'Maximum duration of a shutdown. After that the VM is stopped.',
      ),
    }),
    'How a machine is deleted.',
  ),
  clusterAutoscaler: key(
    clusterAutoscalerSchema,
    'Settings reported to the Cluster Autoscaler for this pool.',
  ),
});
