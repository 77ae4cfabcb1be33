// SPDX-License-Identifier: Apache-2.0
// A pool: machines of one kind, and how many of them there may be.
import * as z from 'zod';
import { checkTaint, parseTaint } from '../../model/taints.ts';
import { bytes, countAmount, duration, wholeNumber } from './amount-leaves.ts';
import { JOIN_KINDS } from './join.ts';
import { form, key, section } from './key.ts';
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
import { vmOptionsSchema } from './vm-options.ts';

const fromSchema = z
  .union([
    form(
      z.strictObject({
        image: key(
          nonEmptyText(),
          'An image of `images`, imported into each new VM. Needs Proxmox VE 8.4.',
        ),
      }),
    ),
    form(
      z.strictObject({
        template: key(nonEmptyText(), 'A template of `templates`, cloned for each new VM.'),
        clone: key(
          z.enum(['full', 'linked']).prefault('full'),
          'A copy of its own, or one that rests on the template.',
          {
            note: 'the VM creation plan made full clones, proxmox-autoscaler linked ones',
          },
        ),
      }),
    ),
    form(
      z.strictObject({
        netboot: key(
          z.strictObject({}),
          'An empty disk, booted from the network; what it boots makes it a node.',
          {
            replaces: { kubenodesmith: 'vmOptions boot' },
          },
        ),
      }),
    ),
  ])
  .optional()
  .meta({ 'x-forms': 'a mapping with one of image, template or netboot' });

const taintSchema = z
  .union([
    textLeaf({ type: 'taint', json: { type: 'string', pattern: ':' }, quotes: true }, parseTaint),
    z
      .strictObject({
        key: key(labelKey(), 'Key of the taint.'),
        value: key(labelValue().prefault(''), 'Its value.'),
        effect: key(z.enum(['NoSchedule', 'PreferNoSchedule', 'NoExecute']), 'Its effect.'),
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
    'Lower case, a DNS label: it becomes a tag, a label and the id of the node group.',
    {
      replaces: { externalgrpc: 'node_groups[].id', kubenodesmith: 'nodePools[].name' },
    },
  ),
  regions: key(
    z.array(nonEmptyText()).min(1).optional(),
    'Regions that machines may be made in, in order of preference.',
    {
      defaultText: 'all',
      replaces: { kubenodesmith: 'nodePools[].providerRef' },
    },
  ),
  from: key(fromSchema, 'Where a new VM comes from.', {
    defaultText: 'the only image or template there is',
  }),
  join: key(
    z.enum([...JOIN_KINDS, 'none']).optional(),
    'Recipe of `join` by which machines become nodes; `none` where the image does it itself.',
    {
      defaultText: 'the only recipe there is; `none` with netboot',
    },
  ),
  size: key(
    poolSizeSchema,
    'How large a machine is: the name of a size, `{ cpu, memory, disk }`, a list of those, or `{ min, max, step }` to size it to the demand.',
    {
      replaces: { 'vm-plan': ['--size', '--cpus', '--memory', '--disk'] },
      note: 'KubeNodeSmith sized a machine to the first pending pod; `{ min, max, step }` sizes it to all of them',
    },
  ),
  memoryOverhead: key(bytes().prefault(0), 'Memory given to the VM beyond its size.', {
    replaces: { kubenodesmith: 'providers.NAME.options.vmMemOverheadMiB' },
  }),
  balloon: key(bytes().prefault(0), 'Least memory a balloon may leave the VM; 0: no balloon.', {
    replaces: { externalgrpc: 'node_groups[].balloon_mb' },
  }),
  architecture: key(
    z.enum(['amd64', 'arm64']).prefault('amd64'),
    'CPU architecture of the machines.',
    {
      replaces: { kubenodesmith: 'nodePools[].machineTemplate.architecture' },
      note: 'without effect there',
    },
  ),
  names: key(namesSchema, 'Names of machines: `<prefix>[-<role>]-<suffix>`.'),
  limits: key(limitsSchema, 'How many machines there may be.'),
  priority: key(
    wholeNumber(-1000, 1000).prefault(0),
    'Among pools that could hold a pod, the highest grows first.',
  ),
  network: key(networkSchema, 'Network cards and addresses.'),
  disk: key(diskSchema, 'How the disk is attached.', {
    replaces: { kubenodesmith: 'vmOptions scsi0' },
  }),
  vmOptions: key(
    vmOptionsSchema,
    'Further options of the Proxmox VM, passed on as they are; what we set ourselves and what is dangerous is refused.',
    {
      replaces: { kubenodesmith: 'providers.NAME.options.vmOptions' },
      examples: [{ cpu: 'host', sockets: 1 }],
    },
  ),
  onboot: key(z.boolean().prefault(true), 'Whether machines start with their host.'),
  labels: key(z.record(labelKey(), labelValue()).prefault({}), 'Labels of the nodes.', {
    replaces: {
      externalgrpc: 'node_groups[].labels',
      kubenodesmith: 'nodePools[].machineTemplate.labels',
    },
  }),
  groupLabel: key(
    labelKey().prefault('autoscaler.proxmox/group'),
    'Label whose value is the pool’s name.',
    {
      replaces: {
        'proxmox-autoscaler': 'node_group_label',
        kubenodesmith: 'nodePools[].poolLabelKey',
      },
      note: 'autoscaler.proxmox/group is ca-proxmox-externalgrpc’s; proxmox-autoscaler’s value was always `true`',
    },
  ),
  taints: key(z.array(taintSchema).prefault([]), 'Taints of the nodes.', {
    replaces: { externalgrpc: 'node_groups[].taints' },
    note: 'the effect has to be written',
  }),
  gpu: key(
    poolGpuSchema,
    'GPUs of a machine; the device itself is passed by `vmOptions.hostpci0: mapping=…`.',
  ),
  extendedResources: key(
    z.record(extendedResource(), countAmount()).prefault({}),
    'Other resources that a node of the pool will offer: whole numbers of `example.com/device`.',
  ),
  capacity: key(
    capacitySchema,
    'What of a machine pods may use, told to schedulers before the first node is there. The kubelet must be set alike.',
  ),
  pricePerHour: key(z.number().min(0).optional(), 'Price of a machine for an hour.', {
    defaultText: 'from `pricing`',
  }),
  placement: key(placementSchema, 'Which host a machine goes to.'),
  scaleUp: key(scaleUpSchema, 'How the pool grows.'),
  scaleDown: key(scaleDownSchema, 'How the pool shrinks.'),
  headroom: key(headroomSchema, 'Room kept ready (standalone).'),
  schedules: key(
    schedulesSchema,
    'Windows with other limits, for example office hours (standalone).',
  ),
  provisionTimeout: key(
    duration({ min: '2m' }).prefault('15m'),
    'From order to ready node; then the machine counts as failed and is removed. At least 2 minutes.',
    {
      replaces: {
        externalgrpc: 'PENDING_VM_TIMEOUT_SECONDS',
        'proxmox-autoscaler': 'max_node_provision_time',
      },
      note: 'below 120 s ca-proxmox-externalgrpc silently took 120 s; without effect in proxmox-autoscaler',
    },
  ),
  registrationTimeout: key(
    duration({ min: '30s' }).prefault('5m'),
    'From a booted guest to its Node.',
    {
      note: '5 minutes were fixed in KubeNodeSmith',
    },
  ),
  deletion: key(
    section({
      mode: key(
        z.enum(['shutdown', 'stop']).prefault('shutdown'),
        'Shut the guest down first, or stop it at once.',
        {
          note: 'ca-proxmox-externalgrpc stopped at once',
        },
      ),
      shutdownTimeout: key(
        duration({ min: '1s' }).prefault('1m'),
        'How long a shutdown may take; then the VM is stopped.',
      ),
    }),
    'How a machine is taken away.',
  ),
  clusterAutoscaler: key(
    clusterAutoscalerSchema,
    'What the Cluster Autoscaler is told about this pool.',
  ),
});
