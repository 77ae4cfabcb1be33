// SPDX-License-Identifier: Apache-2.0
// Pool settings that describe a machine: capacity, names, placement, disk, GPUs.
import * as z from 'zod';
import { bytes, cpuAmount, wholeNumber } from './amount-leaves.ts';
import { key, section } from './key.ts';
import { dnsName, extendedResource, labelValue, proxmoxHost, storageId } from './name-leaves.ts';

const reserveSchema = section({
  cpu: key(cpuAmount().prefault(0), 'CPU.'),
  memory: key(bytes().prefault(0), 'Memory.'),
  disk: key(bytes().prefault(0), 'Disk.'),
});

export const capacitySchema = section({
  maxPods: key(wholeNumber(1, 10_000).prefault(110), 'Maximum number of pods per machine.'),
  kubeReserved: key(
    reserveSchema,
    'Resources reserved for the kubelet and the container runtime; must match the kubelet setting `kubeReserved`.',
  ),
  systemReserved: key(
    reserveSchema,
    'Resources reserved for the operating system; must match the kubelet setting `systemReserved`.',
  ),
  evictionThreshold: key(
    section({
      memory: key(
        bytes().prefault('100Mi'),
        'The kubelet evicts pods when less memory than this is available.',
      ),
      diskPercentage: key(
        z.number().min(0).max(100).prefault(10),
        'The kubelet evicts pods when less than this percentage of the disk is free.',
      ),
    }),
    'Hard eviction thresholds of the kubelet.',
  ),
});

export const namesSchema = section({
  prefix: key(dnsName().optional(), 'Prefix of machine names.', {
    defaultText: 'the name of the pool',
    replaces: {
      externalgrpc: 'node_groups[].vm_name_prefix',
      'proxmox-autoscaler': 'pxe_autoscaled_node_name',
      kubenodesmith: 'nodePools[].machineTemplate.kubeNodeNamePrefix',
    },
  }),
  role: key(dnsName().optional(), 'Role that follows the prefix, as in `k8s-worker-2`.', {
    defaultText: 'none',
    replaces: { 'vm-plan': '--role' },
  }),
  suffix: key(
    z.enum(['id', 'ordinal']).prefault('id'),
    'End of the name: a part of the machine id, or the lowest free number. k3s may refuse a node with a reused name.',
    { note: 'ca-proxmox-externalgrpc and KubeNodeSmith end names in the VM id, which is reused' },
  ),
});

const STRATEGIES = ['spread', 'pack', 'most-free', 'least-vms'] as const;

export const placementSchema = placementSchemaWith('spread');

export function placementSchemaWith(strategy: (typeof STRATEGIES)[number]) {
  return section({
    strategy: key(
      z.enum(STRATEGIES).prefault(strategy),
      'Which host gets the next machine: the host with the fewest machines of this pool, the fullest host that fits, the host with the most free memory, or the host with the fewest VMs.',
      { note: 'VM creation plan: fewest VMs; KubeNodeSmith: random' },
    ),
    hosts: key(
      section({
        allow: key(
          z.array(proxmoxHost()).prefault([]),
          'Hosts that this pool may use; empty means all hosts of the region.',
        ),
        deny: key(z.array(proxmoxHost()).prefault([]), 'Hosts that this pool must not use.'),
      }),
      'Restricts the hosts of the region for this pool.',
    ),
    cpuOvercommit: key(
      z.number().min(0.1).max(100).prefault(2),
      'Maximum vCPUs allocated per CPU of the host.',
    ),
    memoryOvercommit: key(
      z.number().min(0.1).max(10).prefault(1),
      'Maximum memory allocated, as a multiple of the memory of the host.',
    ),
    memoryReserve: key(
      bytes().prefault('2Gi'),
      'Memory of each host that is never allocated to machines.',
    ),
    zoneOnMigration: key(
      z.enum(['update', 'report']).prefault('report'),
      "What happens to a Node's zone label, which is the host, when Proxmox has moved its VM: it is changed, or only reported in the journal. No effect if the pool sets the label itself. A kubelet restores the old zone when it restarts; it is then changed again.",
    ),
  });
}

export const diskSchema = section({
  storage: key(storageId().optional(), 'Storage for the disks of this pool.', {
    defaultText: '`storage.disks` of the region',
  }),
  discard: key(z.boolean().prefault(true), 'Return freed blocks to the storage (TRIM).'),
  ssd: key(z.boolean().prefault(false), 'Present the disk to the guest as an SSD.'),
  iothread: key(z.boolean().prefault(true), 'Use a dedicated I/O thread for the disk.'),
  cache: key(
    z.enum(['none', 'writethrough', 'writeback', 'directsync', 'unsafe']).prefault('none'),
    'Host cache mode of the disk.',
  ),
});

export const poolGpuSchema = z
  .strictObject({
    type: key(labelValue(), 'GPU type; the value of the node label `gpu.label`.'),
    count: key(wholeNumber(1, 64).prefault(1), 'GPUs per machine.'),
    resource: key(
      extendedResource().prefault('nvidia.com/gpu'),
      'Extended resource that pods request.',
    ),
  })
  .optional();
