// SPDX-License-Identifier: Apache-2.0
// Pods that ask for a node of their own.
import type { Api } from '../../controlplane/index.ts';
import { pods, type WaitingPod } from './pods.ts';

export interface Workload {
  readonly name: string;
  readonly count: number;
  readonly nodeSelector: Readonly<Record<string, string>>;
}

export interface RunningWorkload {
  running(): Promise<boolean>;
  pods(): Promise<readonly WaitingPod[]>;
  /** Its kubelets have confirmed it. */
  gone(): Promise<boolean>;
  remove(): Promise<void>;
}

const PODS = '/api/v1/namespaces/default/pods';
const REPLICA_SETS = '/apis/apps/v1/namespaces/default/replicasets';

/** Small pods that are made again when they are evicted, spread over the nodes that there are. */
export async function startReplicas(
  api: Api,
  { name, count, nodeSelector }: Workload,
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
          containers: [container({ cpu: '100m', memory: '50Mi' })],
        },
      },
    },
  });
  const mine = async () =>
    (await pods(api)).filter(({ metadata }) => metadata.labels?.['app'] === name);
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

function isRunning(there: readonly WaitingPod[], count: number): boolean {
  return there.filter(({ status }) => status.phase === 'Running').length === count;
}

export async function start(
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
    (await pods(api)).filter(({ metadata }) => names.includes(metadata.name));
  return {
    pods: mine,
    running: async () => isRunning(await mine(), count),
    gone: async () => (await mine()).length === 0,
    remove: async () => {
      for (const one of names) await api.delete(`${PODS}/${one}`);
    },
  };
}
