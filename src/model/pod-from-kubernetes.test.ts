// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest';
import { isDaemonSetPod, podKey } from './pod.ts';
import { podFromKubernetes } from './pod-from-kubernetes.ts';
import type { PodSource } from './pod-source.ts';
import type { PodVolumeSource } from './pod-volume.ts';

function read(
  source: PodSource,
): Extract<ReturnType<typeof podFromKubernetes>, { ok: true }>['value'] {
  const pod = podFromKubernetes(source);
  if (!pod.ok) throw new Error(pod.problem);
  return pod.value;
}

describe('podFromKubernetes', () => {
  test('converts an empty pod with defaults', () => {
    expect(read({ metadata: {} })).toEqual({
      name: '',
      namespace: 'default',
      uid: '',
      labels: {},
      isMirror: false,
      isTerminating: false,
      createdAt: 0,
      nodeName: '',
      nominatedNodeName: '',
      isFinished: false,
      isGated: false,
      priority: 0,
      requests: { cpuMilli: 0, memoryBytes: 0, ephemeralStorageBytes: 0, pods: 1, extended: {} },
      held: { cpuMilli: 0, memoryBytes: 0, ephemeralStorageBytes: 0, pods: 1, extended: {} },
      tolerations: [],
      nodeSelector: {},
      preferredNodes: [],
      affinity: [],
      antiAffinity: [],
      spread: [],
      hostPorts: [],
      volumes: [],
      requiredFeatures: [],
      resourceClaims: [],
    });
  });

  test('reads what speaks against evicting the pod', () => {
    const hints = (annotations: Record<string, string>, volumes: PodVolumeSource[] = []) =>
      read({ metadata: { annotations }, spec: { volumes } }).eviction;
    const prefix = 'cluster-autoscaler.kubernetes.io';
    const disk = { name: 'scratch', emptyDir: {} };
    const memory = { name: 'shm', emptyDir: { medium: 'Memory' } };
    const host = { name: 'run', hostPath: { path: '/run' } };
    expect(hints({})).toBeUndefined();
    expect(hints({ [`${prefix}/safe-to-evict`]: 'true' })).toEqual({ safeToEvict: true });
    expect(hints({ [`${prefix}/safe-to-evict`]: 'false' })).toEqual({ safeToEvict: false });
    expect(hints({ [`${prefix}/safe-to-evict`]: 'maybe' })).toBeUndefined();
    expect(hints({ 'karpenter.sh/do-not-disrupt': 'true' })).toEqual({ doNotDisrupt: true });
    expect(hints({ 'karpenter.sh/do-not-disrupt': 'false' })).toBeUndefined();
    expect(hints({}, [disk, memory, host])).toEqual({ localVolumes: ['scratch', 'run'] });
    const safe = { [`${prefix}/safe-to-evict-local-volumes`]: 'scratch,run' };
    expect(hints(safe, [disk, host])).toBeUndefined();
    expect(hints(safe, [disk, { name: 'data', emptyDir: {} }])).toEqual({ localVolumes: ['data'] });
  });

  test('reads when the pod was created', () => {
    const creationTimestamp = '2026-01-02T03:04:05Z';
    expect(read({ metadata: { creationTimestamp } }).createdAt).toBe(Date.parse(creationTimestamp));
  });

  test('infers the node features that the pod requires', () => {
    const rule = (action: string): object => ({ restartPolicyRules: [{ action }] });
    const features = (spec: object): unknown => read({ metadata: {}, spec }).requiredFeatures;
    const restart = ['RestartAllContainersOnContainerExits'];
    expect(features({ containers: [{}, rule('RestartAllContainers')] })).toEqual(restart);
    expect(features({ initContainers: [rule('RestartAllContainers')] })).toEqual(restart);
    expect(features({ containers: [rule('Restart')] })).toEqual([]);
    expect(features({ hostNetwork: true, hostUsers: false })).toEqual([
      'UserNamespacesHostNetworkSupport',
    ]);
    expect(features({ hostNetwork: true })).toEqual([]);
    expect(features({ hostNetwork: true, hostUsers: true })).toEqual([]);
    expect(features({ hostUsers: false })).toEqual([]);
  });

  test('reads name, namespace, labels, controller and mirror annotation', () => {
    const pod = read({
      metadata: {
        name: 'p',
        namespace: 'n',
        uid: 'u',
        labels: { a: 'b' },
        annotations: { 'kubernetes.io/config.mirror': '' },
        deletionTimestamp: 'now',
        ownerReferences: [
          { kind: 'Job', name: 'no', uid: '1' },
          { kind: 'DaemonSet', name: 'yes', uid: '2', controller: true },
        ],
      },
    });
    expect(pod).toMatchObject({
      isMirror: true,
      isTerminating: true,
      controller: { kind: 'DaemonSet', name: 'yes', uid: '2' },
    });
    expect(podKey(pod)).toBe('n/p');
    expect(isDaemonSetPod(pod)).toBe(true);
    expect(isDaemonSetPod(read({ metadata: {} }))).toBe(false);
  });

  test.each([
    ['Running', false],
    ['Pending', false],
    ['Succeeded', true],
    ['Failed', true],
  ])('reads phase %s as finished: %s', (phase, isFinished) => {
    expect(read({ metadata: {}, status: { phase } }).isFinished).toBe(isFinished);
  });

  test('reads node name, selectors and affinity', () => {
    const pod = read({
      metadata: {},
      spec: {
        nodeName: 'x',
        priority: 7,
        schedulingGates: [{}],
        nodeSelector: { a: 'b' },
        tolerations: [{ key: 'k', operator: 'Exists' }],
        affinity: {
          nodeAffinity: {
            requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{}] },
            preferredDuringSchedulingIgnoredDuringExecution: [
              { weight: 3, preference: { matchExpressions: [{ key: 'a', operator: 'Exists' }] } },
              { weight: 4, preference: { matchExpressions: [{ key: 'a', operator: 'Nonsense' }] } },
            ],
          },
        },
      },
      status: { nominatedNodeName: 'y' },
    });
    expect(pod).toMatchObject({
      nodeName: 'x',
      nominatedNodeName: 'y',
      isGated: true,
      priority: 7,
      nodeSelector: { a: 'b' },
      tolerations: [{ key: 'k', operator: 'Exists', effect: '' }],
    });
    expect(pod.nodeAffinity?.terms).toHaveLength(1);
    expect(pod.preferredNodes.map(({ weight }) => weight)).toEqual([3]);
  });

  test('keeps hard spread constraints only', () => {
    const constraint = { topologyKey: 'z', maxSkew: 2, labelSelector: {} };
    const pod = read({
      metadata: {},
      spec: {
        topologySpreadConstraints: [
          { ...constraint, whenUnsatisfiable: 'ScheduleAnyway' },
          { ...constraint, whenUnsatisfiable: 'DoNotSchedule' },
        ],
      },
    });
    expect(pod.spread).toEqual([
      {
        topologyKey: 'z',
        maxSkew: 2,
        minDomains: 1,
        selector: { selects: 'matching', requirements: [] },
        honorsAffinity: true,
        honorsTaints: false,
      },
    ]);
  });

  test('keeps the volumes that affect scheduling', () => {
    const pod = read({
      metadata: { name: 'p' },
      spec: {
        volumes: [
          { name: 'a', persistentVolumeClaim: { claimName: 'c' } },
          { name: 'b', ephemeral: {} },
          { name: 'c', gcePersistentDisk: { pdName: 'd', readOnly: true } },
          { name: 'd' },
        ],
      },
    });
    expect(pod.volumes).toEqual([
      { kind: 'claim', claimName: 'c' },
      { kind: 'ephemeral', claimName: 'p-b' },
      { kind: 'disk', disk: { kind: 'gce-pd', id: 'd', isReadOnly: true, pool: '', monitors: [] } },
    ]);
  });

  const bad = { matchExpressions: [{ key: 'a', operator: 'Nonsense' }] };
  test.each<[string, NonNullable<PodSource['spec']>]>([
    ['a quantity', { containers: [{ resources: { requests: { cpu: '?' } } }] }],
    ['a toleration', { tolerations: [{ operator: 'Nonsense' }] }],
    [
      'affinity',
      {
        affinity: {
          podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [{ labelSelector: bad }] },
        },
      },
    ],
    [
      'anti-affinity',
      {
        affinity: {
          podAntiAffinity: {
            requiredDuringSchedulingIgnoredDuringExecution: [{ namespaceSelector: bad }],
          },
        },
      },
    ],
    [
      'spread',
      { topologySpreadConstraints: [{ whenUnsatisfiable: 'DoNotSchedule', labelSelector: bad }] },
    ],
  ])('refuses an invalid value in %s and names the pod', (_, spec) => {
    expect(podFromKubernetes({ metadata: { name: 'odd' }, spec })).toMatchObject({
      ok: false,
      problem: expect.stringContaining("pod 'odd'"),
    });
  });

  test('refuses an invalid value in the status', () => {
    const status = { containerStatuses: [{ name: 'c', resources: { requests: { cpu: '?' } } }] };
    expect(
      podFromKubernetes({ metadata: {}, spec: { containers: [{ name: 'c' }] }, status }).ok,
    ).toBe(false);
  });
});
