// SPDX-License-Identifier: Apache-2.0
// How many machines an empty cluster would need for the pods of a plan's input.
import { isDaemonSetPod } from '../../src/model/pod.ts';
import {
  decide,
  EMPTY_MEMORY,
  restoreInput,
  type ScalingInput,
  type StoredInput,
} from '../../src/scaling/index.ts';

const MAX_MACHINES = 1_000;

/** `hosts`: what they have for new machines; absent = as in the input, beside the machines that exist. */
export function countMachinesNeeded(
  stored: StoredInput,
  hosts: ScalingInput['hosts'] = stored.hosts,
): number {
  const pods = (stored.cluster.pods ?? []).filter(
    (pod) => !isDaemonSetPod(pod) && !pod.isFinished && !pod.isTerminating,
  );
  const { plan } = decide({
    ...restoreInput({ ...stored, cluster: { ...stored.cluster, nodes: [], pods: [] } }),
    hosts,
    machines: [],
    unreadyNodes: [],
    memory: EMPTY_MEMORY,
    pending: pods.map((pod) => ({ ...pod, nodeName: '', nominatedNodeName: '' })),
    pools: stored.pools.map(({ config, learned }) => ({
      config: { ...config, scaleUp: { ...config.scaleUp, batchSize: MAX_MACHINES } },
      learned,
    })),
  });
  return plan.steps.reduce(
    (sum, step) => sum + (step.kind === 'create' ? step.machines.length : 0),
    0,
  );
}

/** Whether the number of nodes exceeds what is needed by at most one node or 5 %. */
export function areNodesFew(nodes: number, needed: number): boolean {
  return nodes <= Math.max(needed + 1, Math.floor(needed * 1.05));
}
