// SPDX-License-Identifier: Apache-2.0
// Capacity and allocatable of a Node, computed from the VM's size and the kubelet's reservations.
import { milliValue, parseQuantity, wholeValue } from '../../../../model/quantity.ts';
import { type KubeletSettings, kubeletArgument } from './settings.ts';

export interface GuestSize {
  readonly cpus: number;
  readonly memoryBytes: number;
  readonly diskBytes: number;
}

export type ResourceList = Readonly<Record<string, string>>;

const KIB = 1024;
const MIB = 1024 * KIB;

/**
 * The kernel and the firmware reserve a part of the memory; the partition table, boot partition and file system
 * reserve a part of the disk. The values approximate a cloud image.
 */
const KERNEL_RESERVED_BYTES = 64 * MIB;
const KERNEL_RESERVED_FRACTION = 0.022;
const FILE_SYSTEM_FRACTION = 0.05;
const DEFAULT_MAX_PODS = '110';

/** k3s and RKE2 set thresholds for disks only, so they reserve no memory for eviction. */
const DEFAULT_EVICTION_HARD = {
  kubeadm: 'memory.available<100Mi,nodefs.available<10%',
  k3s: 'nodefs.available<5%',
  rke2: 'nodefs.available<5%',
} as const;

export function computeCapacity(size: GuestSize, settings: KubeletSettings): ResourceList {
  const memory = size.memoryBytes * (1 - KERNEL_RESERVED_FRACTION) - KERNEL_RESERVED_BYTES;
  return {
    cpu: String(size.cpus),
    memory: formatKibibytes(memory),
    'ephemeral-storage': formatKibibytes(size.diskBytes * (1 - FILE_SYSTEM_FRACTION)),
    pods: kubeletArgument(settings, 'max-pods') ?? DEFAULT_MAX_PODS,
    'hugepages-1Gi': '0',
    'hugepages-2Mi': '0',
  };
}

export function computeAllocatable(
  capacity: ResourceList,
  settings: KubeletSettings,
): ResourceList {
  const reserved = ['kube-reserved', 'system-reserved'].map((name) =>
    parsePairs(kubeletArgument(settings, name) ?? '', '='),
  );
  const eviction = parsePairs(
    kubeletArgument(settings, 'eviction-hard') ?? DEFAULT_EVICTION_HARD[settings.distribution],
    '<',
  );
  const reservedBytes = (resource: string) =>
    reserved.reduce((sum, each) => sum + parseBytes(each.get(resource) ?? '0'), 0);
  const availableBytes = (resource: string, signal: string) => {
    const totalBytes = parseBytes(capacity[resource] ?? '0');
    return (
      totalBytes - reservedBytes(resource) - parseThreshold(eviction.get(signal) ?? '0', totalBytes)
    );
  };
  const reservedMilliCpu = reserved.reduce(
    (sum, each) => sum + parseMilliCpu(each.get('cpu') ?? '0'),
    0,
  );
  const cpu = Math.max(0, parseMilliCpu(capacity['cpu'] ?? '0') - reservedMilliCpu);
  return {
    ...capacity,
    cpu: cpu % 1000 === 0 ? String(cpu / 1000) : `${cpu}m`,
    memory: formatKibibytes(availableBytes('memory', 'memory.available')),
    'ephemeral-storage': String(
      Math.max(0, availableBytes('ephemeral-storage', 'nodefs.available')),
    ),
  };
}

function formatKibibytes(count: number): string {
  return `${Math.max(0, Math.floor(count / KIB))}Ki`;
}

/** Parses `a=1,b=2` with the given separator between name and value. */
function parsePairs(text: string, separator: string): ReadonlyMap<string, string> {
  const entries = text.split(',').filter((each) => each.includes(separator));
  return new Map(
    entries.map((each) => {
      const at = each.indexOf(separator);
      return [each.slice(0, at).trim(), each.slice(at + 1).trim()];
    }),
  );
}

function parseThreshold(text: string, totalBytes: number): number {
  if (text.endsWith('%')) return Math.floor((totalBytes * Number(text.slice(0, -1))) / 100);
  return parseBytes(text);
}

function parseBytes(text: string): number {
  const parsed = parseQuantity(text);
  return parsed.ok ? Number(wholeValue(parsed.value)) : 0;
}

function parseMilliCpu(text: string): number {
  const parsed = parseQuantity(text);
  return parsed.ok ? Number(milliValue(parsed.value)) : 0;
}
