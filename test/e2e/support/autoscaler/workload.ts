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
        containers: [
          {
            name: 'app',
            image: 'example/app',
            resources: { requests: { cpu: '1200m', memory: '500Mi' } },
          },
        ],
      },
    });
  }
  const mine = async () =>
    (await pods(api)).filter(({ metadata }) => names.includes(metadata.name));
  return {
    pods: mine,
    running: async () => {
      const there = await mine();
      return there.filter(({ status }) => status.phase === 'Running').length === count;
    },
    gone: async () => (await mine()).length === 0,
    remove: async () => {
      for (const one of names) await api.delete(`${PODS}/${one}`);
    },
  };
}
