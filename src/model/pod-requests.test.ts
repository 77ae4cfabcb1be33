// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest';
import { podHeldResources, podRequests } from './pod-requests.ts';
import type { ContainerSource, PodSource, QuantityMap } from './pod-source.ts';

function asking(requests: QuantityMap, over: ContainerSource = {}): ContainerSource {
  return { resources: { requests }, ...over };
}

function pod(spec: PodSource['spec'], status?: PodSource['status']): PodSource {
  return { metadata: { name: 'p' }, spec: spec ?? {}, ...(status && { status }) };
}

const sidecar = { restartPolicy: 'Always' };

describe('podRequests', () => {
  test('counts a pod without requests as one pod', () => {
    expect(podRequests(pod({}))).toEqual({
      ok: true,
      value: { cpuMilli: 0, memoryBytes: 0, ephemeralStorageBytes: 0, pods: 1, extended: {} },
    });
    expect(podRequests({ metadata: {} })).toMatchObject({ value: { pods: 1 } });
  });

  test.each<[string, NonNullable<PodSource['spec']>, number]>([
    ['containers add up', { containers: [asking({ cpu: '1' }), asking({ cpu: '500m' })] }, 1500],
    [
      'the largest init container counts',
      {
        initContainers: [asking({ cpu: '2' }), asking({ cpu: '3' })],
        containers: [asking({ cpu: '1' })],
      },
      3000,
    ],
    [
      'containers that exceed every init container count',
      { initContainers: [asking({ cpu: '1' })], containers: [asking({ cpu: '2' })] },
      2000,
    ],
    [
      'sidecars add to the containers',
      { initContainers: [asking({ cpu: '1' }, sidecar)], containers: [asking({ cpu: '2' })] },
      3000,
    ],
    [
      'earlier sidecars add to an init container',
      {
        initContainers: [asking({ cpu: '1' }, sidecar), asking({ cpu: '3' })],
        containers: [asking({ cpu: '1' })],
      },
      4000,
    ],
    [
      'later sidecars do not add to an init container',
      {
        initContainers: [asking({ cpu: '3' }), asking({ cpu: '1' }, sidecar)],
        containers: [asking({ cpu: '1' })],
      },
      3000,
    ],
    [
      'sidecars add up',
      {
        initContainers: [
          asking({ cpu: '1' }, sidecar),
          asking({ cpu: '1' }, sidecar),
          asking({ cpu: '1' }),
        ],
      },
      3000,
    ],
    [
      'pod-level requests',
      { containers: [asking({ cpu: '9' })], resources: { requests: { cpu: '1' } } },
      1000,
    ],
    ['overhead is added', { containers: [asking({ cpu: '1' })], overhead: { cpu: '250m' } }, 1250],
    ['overhead without requests', { overhead: { cpu: '250m' } }, 250],
    [
      'fractions are rounded once',
      { containers: [asking({ cpu: '100u' }), asking({ cpu: '900u' })] },
      1,
    ],
  ])('sums requests: %s', (_, spec, cpuMilli) => {
    expect(podRequests(pod(spec))).toMatchObject({ ok: true, value: { cpuMilli } });
  });

  test('applies pod-level requests to cpu, memory and huge pages only', () => {
    const containers = [
      asking({ memory: '2Gi', 'hugepages-2Mi': '4Mi', 'a.b/c': '2', 'ephemeral-storage': '7' }),
    ];
    const requests = {
      memory: '1Gi',
      'hugepages-2Mi': '2Mi',
      'a.b/c': '1',
      'ephemeral-storage': '1',
    };
    expect(podRequests(pod({ containers, resources: { requests } }))).toMatchObject({
      value: {
        memoryBytes: 2 ** 30,
        ephemeralStorageBytes: 7,
        extended: { 'hugepages-2Mi': 2 * 2 ** 20, 'a.b/c': 2 },
      },
    });
  });

  test('keeps only resources that the scheduler checks', () => {
    const all = {
      'a.b/c': '1',
      'requests.a/b': '1',
      'requests.kubernetes.io/b': '1',
      'attachable-volumes-x': '1',
      'hugepages-1Gi': '1',
      storage: '1',
      pods: '5',
      zero: '0',
      'x.y/zero': '0',
    };
    const read = podRequests(pod({ containers: [asking(all)] }));
    expect(read.ok && Object.keys(read.value.extended).sort()).toEqual([
      'a.b/c',
      'attachable-volumes-x',
      'hugepages-1Gi',
      'requests.kubernetes.io/b',
    ]);
    expect(read).toMatchObject({ value: { pods: 1 } });
  });

  test('refuses an invalid quantity', () => {
    expect(podRequests(pod({ containers: [asking({ cpu: 'lots' })] }))).toMatchObject({
      ok: false,
      problem: expect.stringContaining("resource 'cpu'"),
    });
  });
});

describe('podHeldResources', () => {
  const status = (over: object = {}, reason?: string): NonNullable<PodSource['status']> => ({
    containerStatuses: [
      {
        name: 'c',
        allocatedResources: { cpu: '2' },
        resources: { requests: { cpu: '3' } },
        ...over,
      },
    ],
    ...(reason && { conditions: [{ type: 'Ready' }, { type: 'PodResizePending', reason }] }),
  });
  const named = (cpu: string, over: ContainerSource = {}): ContainerSource =>
    asking({ cpu }, { name: 'c', ...over });
  const cpu = (source: PodSource): number | undefined => {
    const held = podHeldResources(source);
    return held.ok ? held.value.cpuMilli : undefined;
  };

  test('returns the maximum of desired, allocated and actual resources', () => {
    expect(cpu(pod({ containers: [named('4')] }, status()))).toBe(4000);
    expect(cpu(pod({ containers: [named('1')] }, status()))).toBe(3000);
    const granted = status({ allocatedResources: { cpu: '5' } });
    expect(cpu(pod({ containers: [named('1')] }, granted))).toBe(5000);
  });

  test('ignores a resize that the node can never grant', () => {
    expect(cpu(pod({ containers: [named('9')] }, status({}, 'Infeasible')))).toBe(3000);
    expect(cpu(pod({ containers: [named('9')] }, status({}, 'Deferred')))).toBe(9000);
  });

  test('returns the spec while the status reports no resources', () => {
    expect(cpu(pod({ containers: [named('1')] }, status({ resources: null })))).toBe(1000);
    expect(cpu(pod({ containers: [asking({ cpu: '1' }, { name: 'other' })] }, status()))).toBe(
      1000,
    );
    expect(cpu(pod({ containers: [named('1')] }))).toBe(1000);
  });

  test('applies resizes to sidecars, but not to init containers', () => {
    const init: NonNullable<PodSource['status']> = {
      initContainerStatuses: status().containerStatuses ?? [],
    };
    expect(cpu(pod({ initContainers: [named('1', sidecar)] }, init))).toBe(3000);
    expect(cpu(pod({ initContainers: [named('1')] }, init))).toBe(1000);
  });

  test('applies a resize of pod-level resources', () => {
    const whole = (desired: string, reason?: string): PodSource =>
      pod(
        { containers: [asking({ cpu: '9' })], resources: { requests: { cpu: desired } } },
        {
          resources: { requests: { cpu: '2' } },
          allocatedResources: { cpu: '3' },
          ...(reason && { conditions: [{ type: 'PodResizePending', reason }] }),
        },
      );
    expect(cpu(whole('1'))).toBe(3000);
    expect(cpu(whole('4'))).toBe(4000);
    expect(cpu(whole('4', 'Infeasible'))).toBe(3000);
  });
});
