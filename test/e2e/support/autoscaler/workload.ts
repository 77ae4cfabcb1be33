// SPDX-License-Identifier: Apache-2.0
// Pods that need a node each, and replica sets of small pods.
import type { Api } from '../../controlplane/index.ts';
import { type AutoscalerPod, listPods } from './pods.ts';

export interface Workload {
  readonly name: string;
  readonly count: number;
  readonly nodeSelector: Readonly<Record<string, string>>;
}

export interface RunningWorkload {
  running(): Promise<boolean>;
  pods(): Promise<readonly AutoscalerPod[]>;
  /** Whether the kubelets have confirmed the deletion. */
  gone(): Promise<boolean>;
  remove(): Promise<void>;
}

const PODS = '/api/v1/namespaces/default/pods';
const REPLICA_SETS = '/apis/apps/v1/namespaces/default/replicasets';

/** Pods, small by default, that are recreated after an eviction; spread over the existing nodes. */
export async function startReplicas(
  api: Api,
  {
    name,
    count,
    nodeSelector,
    requests = { cpu: '100m', memory: '50Mi' },
  }: Workload & { readonly requests?: Readonly<Record<string, string>> },
): Promise<RunningWorkload> {
  const labels = { app: name };
  await api.create(REPLICA_SETS, {
    metadata: { name },
    spec: {
      replicas: count,
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: {
          nodeSelector,
          terminationGracePeriodSeconds: 1,
          topologySpreadConstraints: [
            {
              maxSkew: 1,
              topologyKey: 'kubernetes.io/hostname',
              whenUnsatisfiable: 'ScheduleAnyway',
              labelSelector: { matchLabels: labels },
            },
          ],
          containers: [container(requests)],
        },
      },
    },
  });
  const mine = async () =>
    (await listPods(api)).filter(({ metadata }) => metadata.labels?.['app'] === name);
  return {
    pods: mine,
    running: async () => isRunning(await mine(), count),
    gone: async () => (await mine()).length === 0,
    remove: async () => {
      await api.patch(`${REPLICA_SETS}/${name}`, { spec: { replicas: 0 } });
    },
  };
}

function container(requests: Readonly<Record<string, string>>) {
  return { name: 'app', image: 'example/app', resources: { requests } };
}

function isRunning(there: readonly AutoscalerPod[], count: number): boolean {
  return there.filter(({ status }) => status.phase === 'Running').length === count;
}

export async function startPods(
  api: Api,
  { name, count, nodeSelector }: Workload,
): Promise<RunningWorkload> {
  const names = Array.from({ length: count }, (_, index) => `${name}-${index}`);
  for (const one of names) {
    await api.create(PODS, {
      metadata: { name: one },
      spec: {
        nodeSelector,
        terminationGracePeriodSeconds: 1,
        containers: [container({ cpu: '1200m', memory: '500Mi' })],
      },
    });
  }
  const mine = async () =>
    (await listPods(api)).filter(({ metadata }) => names.includes(metadata.name));
  return {
    pods: mine,
    running: async () => isRunning(await mine(), count),
    gone: async () => (await mine()).length === 0,
    remove: async () => {
      for (const one of names) await api.delete(`${PODS}/${one}`);
    },
  };
}
