// SPDX-License-Identifier: Apache-2.0
// What a pool says of each of its machines: capacity, names, placement, disk, GPUs.
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
  maxPods: key(wholeNumber(1, 10_000).prefault(110), 'Pods that a machine takes.'),
  kubeReserved: key(
    reserveSchema,
    'Kept for the kubelet and the container runtime, as the kubelet is told.',
  ),
  systemReserved: key(reserveSchema, 'Kept for the system, as the kubelet is told.'),
  evictionThreshold: key(
    section({
      memory: key(bytes().prefault('100Mi'), 'Below this much free memory the kubelet evicts.'),
      diskPercentage: key(
        z.number().min(0).max(100).prefault(10),
        'Below this share of free disk it evicts.',
      ),
    }),
    'What the kubelet keeps free by evicting pods.',
  ),
});

export const namesSchema = section({
  prefix: key(dnsName().optional(), 'Stem of the names of machines.', {
    defaultText: 'the name of the pool',
    replaces: {
      externalgrpc: 'node_groups[].vm_name_prefix',
      'proxmox-autoscaler': 'pxe_autoscaled_node_name',
      kubenodesmith: 'nodePools[].machineTemplate.kubeNodeNamePrefix',
    },
  }),
  role: key(dnsName().optional(), 'Follows the prefix, as in `k8s-worker-2`.', {
    defaultText: 'none',
    replaces: { 'vm-plan': '--role' },
  }),
  suffix: key(
    z.enum(['id', 'ordinal']).prefault('id'),
    'A piece of the machine’s id, or the lowest free number. A name that comes back may be refused by k3s.',
    { note: 'ca-proxmox-externalgrpc and KubeNodeSmith end names in the VM id, which is reused' },
  ),
});

export const placementSchema = section({
  strategy: key(
    z.enum(['spread', 'pack', 'most-free', 'least-vms']).prefault('spread'),
    'Which host gets the next machine: the one with fewest of this pool, the fullest that fits, the one with most free memory, or the one with fewest VMs.',
    { note: 'the VM creation plan: fewest VMs; KubeNodeSmith: by chance' },
  ),
  hosts: key(
    section({
      allow: key(
        z.array(proxmoxHost()).prefault([]),
        'The only hosts for this pool; empty: those of the region.',
      ),
      deny: key(z.array(proxmoxHost()).prefault([]), 'Hosts that this pool does not use.'),
    }),
    'Narrows the hosts of the region.',
  ),
  cpuOvercommit: key(
    z.number().min(0.1).max(100).prefault(2),
    'vCPUs given out per CPU of the host.',
  ),
  memoryOvercommit: key(
    z.number().min(0.1).max(10).prefault(1),
    'Memory given out per memory of the host.',
  ),
  memoryReserve: key(bytes().prefault('2Gi'), 'Memory of each host that is never given out.'),
});

export const diskSchema = section({
  storage: key(storageId().optional(), 'Storage of this pool’s disks.', {
    defaultText: '`storage.disks` of the region',
  }),
  discard: key(z.boolean().prefault(true), 'Hand freed blocks back to the storage.'),
  ssd: key(z.boolean().prefault(false), 'Show the disk as an SSD.'),
  iothread: key(z.boolean().prefault(true), 'A thread of its own for the disk.'),
  cache: key(
    z.enum(['none', 'writethrough', 'writeback', 'directsync', 'unsafe']).prefault('none'),
    'Cache of the host.',
  ),
});

export const poolGpuSchema = z
  .strictObject({
    type: key(labelValue(), 'Kind of GPU, the value of the label `gpu.label`.'),
    count: key(wholeNumber(1, 64).prefault(1), 'GPUs per machine.'),
    resource: key(
      extendedResource().prefault('nvidia.com/gpu'),
      'Extended resource that pods ask for.',
    ),
  })
  .optional();
