// SPDX-License-Identifier: Apache-2.0
// What a machine of this size offers: capacity as the kernel sees it, allocatable as the kubelet leaves it to pods.
import { milliValue, parseQuantity, wholeValue } from '../../../../model/quantity.ts';
import { argument, type KubeletSettings } from './settings.ts';

export interface MachineSize {
  readonly cpus: number;
  readonly memoryBytes: number;
  readonly diskBytes: number;
}

export type Resources = Readonly<Record<string, string>>;

const KIB = 1024;
const MIB = 1024 * KIB;

/**
 * Of a machine's memory the kernel keeps its image, its page structures and what the firmware holds; of a disk the
 * partition table, the boot partition and the file system. Orders of magnitude of a cloud image.
 */
const KERNEL_BYTES = 64 * MIB;
const KERNEL_SHARE = 0.022;
const DISK_SHARE = 0.05;
const MAX_PODS = '110';

/** k3s and RKE2 pass thresholds for disks only, and with that no memory is held back. */
const EVICTION = {
  kubeadm: 'memory.available<100Mi,nodefs.available<10%',
  k3s: 'nodefs.available<5%',
  rke2: 'nodefs.available<5%',
} as const;

export function capacityOf(size: MachineSize, settings: KubeletSettings): Resources {
  const memory = size.memoryBytes * (1 - KERNEL_SHARE) - KERNEL_BYTES;
  return {
    cpu: String(size.cpus),
    memory: kibibytes(memory),
    'ephemeral-storage': kibibytes(size.diskBytes * (1 - DISK_SHARE)),
    pods: argument(settings, 'max-pods') ?? MAX_PODS,
    'hugepages-1Gi': '0',
    'hugepages-2Mi': '0',
  };
}

export function allocatableOf(capacity: Resources, settings: KubeletSettings): Resources {
  const reserved = ['kube-reserved', 'system-reserved'].map((name) =>
    pairs(argument(settings, name) ?? '', '='),
  );
  const eviction = pairs(
    argument(settings, 'eviction-hard') ?? EVICTION[settings.distribution],
    '<',
  );
  const held = (resource: string) =>
    reserved.reduce((sum, each) => sum + bytes(each.get(resource) ?? '0'), 0);
  const left = (resource: string, signal: string) => {
    const whole = bytes(capacity[resource] ?? '0');
    return whole - held(resource) - threshold(eviction.get(signal) ?? '0', whole);
  };
  const milli = reserved.reduce((sum, each) => sum + millis(each.get('cpu') ?? '0'), 0);
  const cpu = Math.max(0, millis(capacity['cpu'] ?? '0') - milli);
  return {
    ...capacity,
    cpu: cpu % 1000 === 0 ? String(cpu / 1000) : `${cpu}m`,
    memory: kibibytes(left('memory', 'memory.available')),
    'ephemeral-storage': String(Math.max(0, left('ephemeral-storage', 'nodefs.available'))),
  };
}

function kibibytes(count: number): string {
  return `${Math.max(0, Math.floor(count / KIB))}Ki`;
}

/** `a=1,b=2` with any sign between. */
function pairs(text: string, sign: string): ReadonlyMap<string, string> {
  const entries = text.split(',').filter((each) => each.includes(sign));
  return new Map(
    entries.map((each) => {
      const at = each.indexOf(sign);
      return [each.slice(0, at).trim(), each.slice(at + 1).trim()];
    }),
  );
}

function threshold(text: string, whole: number): number {
  if (text.endsWith('%')) return Math.floor((whole * Number(text.slice(0, -1))) / 100);
  return bytes(text);
}

function bytes(text: string): number {
  const parsed = parseQuantity(text);
  return parsed.ok ? Number(wholeValue(parsed.value)) : 0;
}

function millis(text: string): number {
  const parsed = parseQuantity(text);
  return parsed.ok ? Number(milliValue(parsed.value)) : 0;
}
