// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { computeAllocatable, computeCapacity } from './capacity.ts';
import type { KubeletSettings } from './settings.ts';

const GIB = 2 ** 30;

function settings(
  distribution: KubeletSettings['distribution'],
  args: readonly string[] = [],
): KubeletSettings {
  return {
    distribution,
    nodeName: 'n',
    labels: [],
    taints: [],
    args,
    providerId: undefined,
    version: 'v1',
  };
}

const SIZE = { cpus: 4, memoryBytes: 8 * GIB, diskBytes: 40 * GIB };
const ki = (text: string | undefined) => Number.parseInt(text ?? '', 10);

describe('computeCapacity', () => {
  it('subtracts the kernel and the file system from the VM size', () => {
    const capacity = computeCapacity(SIZE, settings('kubeadm', ['max-pods=30']));
    expect(capacity).toMatchObject({ cpu: '4', pods: '30' });
    expect(ki(capacity['memory'])).toBeLessThan(8 * 2 ** 20);
    expect(ki(capacity['memory'])).toBeGreaterThan(7.5 * 2 ** 20);
    expect(ki(capacity['ephemeral-storage'])).toBe(38 * 2 ** 20);
  });

  it('returns 0 memory for a VM without memory, not a negative value', () => {
    expect(computeCapacity({ ...SIZE, memoryBytes: 0 }, settings('k3s'))['memory']).toBe('0Ki');
  });
});

describe('computeAllocatable', () => {
  const capacity = {
    cpu: '4',
    memory: '8000000Ki',
    'ephemeral-storage': '1000000Ki',
    pods: '110',
  };

  it.each([
    [
      'kubeadm',
      [],
      { cpu: '4', memory: `${8_000_000 - 102_400}Ki`, 'ephemeral-storage': '921600000' },
    ],
    ['k3s', [], { cpu: '4', memory: '8000000Ki', 'ephemeral-storage': '972800000' }],
    [
      'kubeadm',
      ['kube-reserved=cpu=200m,memory=1Gi', 'system-reserved=cpu=100m,memory=512Mi'],
      { cpu: '3700m', memory: `${8_000_000 - 1_048_576 - 524_288 - 102_400}Ki` },
    ],
    ['rke2', ['eviction-hard=memory.available<10%,nodefs.available<1Gi'], { memory: '7200000Ki' }],
    ['k3s', ['kube-reserved=cpu=5,memory=100Gi'], { cpu: '0', memory: '0Ki' }],
  ] as const)(
    'subtracts reservations and eviction thresholds: %s with %j',
    (distribution, args, expected) => {
      expect(computeAllocatable(capacity, settings(distribution, args))).toMatchObject(expected);
    },
  );
});
