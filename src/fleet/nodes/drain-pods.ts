// SPDX-License-Identifier: Apache-2.0
// The pods of a Node that is being drained: which of them must leave, and one round of evictions.
import { type DrainBlocker, terminatingPod } from '../../model/drain.ts';
import { isDaemonSetPod, type Pod, podKey, sortForEviction } from '../../model/pod.ts';
import { NO_RESOURCES, parseResources } from '../../model/resources.ts';
import type { ClaimRef, Cluster, ClusterNode } from '../../ports/cluster.ts';
import { type PvescalerError, TimedOut, Unreachable } from '../../ports/errors.ts';
import { isMachineError } from '../context/machine-error.ts';
import type { ReconcileContext } from '../context/reconcile-context.ts';

/** A kubelet that is only restarting reports within this time. */
const KUBELET_DEAD_MS = 2 * 60_000;

/**
 * Not finished ones, nor those that end with the node and need no other: mirror pods of static pods, and pods of
 * DaemonSets. Terminating pods too: their containers may still run.
 */
export function mustLeave(pod: Pod): boolean {
  return !pod.isMirror && !pod.isFinished && !isDaemonSetPod(pod);
}

/** Claims of the pods that stay: their volumes stay attached. */
export function claimsOfStaying(pods: readonly Pod[]): readonly ClaimRef[] {
  return pods
    .filter((pod) => !pod.isFinished && !mustLeave(pod))
    .flatMap(({ namespace, volumes }) =>
      volumes.flatMap((volume) =>
        volume.kind === 'disk' ? [] : [{ namespace, name: volume.claimName }],
      ),
    );
}

export function inEvictionOrder(
  pods: readonly Pod[],
  { allocatable }: Pick<ClusterNode, 'allocatable'>,
): readonly Pod[] {
  const parsed = parseResources(allocatable);
  return sortForEviction(pods, parsed.ok ? parsed.value : NO_RESOURCES, (pod) => pod);
}

/** Evicts the pods that are not terminating yet. Returns those that are still there, with the reason. */
export async function evictPods(
  context: ReconcileContext,
  cluster: Cluster,
  pods: readonly Pod[],
): Promise<readonly DrainBlocker[]> {
  const refused: DrainBlocker[] = [];
  const terminating: DrainBlocker[] = [];
  for (const pod of pods) {
    const result = pod.isTerminating ? 'evicted' : await evictPod(context, cluster, pod);
    if (result === 'evicted') terminating.push(terminatingPod(podKey(pod)));
    else if (result !== 'already-gone')
      refused.push({ object: podKey(pod), reason: result.reason });
  }
  return [...refused, ...terminating];
}

async function evictPod(
  context: ReconcileContext,
  cluster: Cluster,
  { namespace, name, uid }: Pod,
): Promise<'evicted' | 'already-gone' | { readonly reason: string }> {
  try {
    const result = await cluster.evict({ namespace, name, uid }, context.writeOptions());
    return result.outcome === 'blocked' ? result : result.outcome;
  } catch (error) {
    if (!isMachineError(error) || isServerError(error)) throw error;
    return { reason: error.message };
  }
}

/** The other pods could not be evicted either. */
function isServerError(error: PvescalerError): boolean {
  return error instanceof Unreachable || error instanceof TimedOut;
}

/**
 * Its kubelet confirms neither the end of pods nor that volumes are unmounted. The deletion of the VM ends both, so they
 * are not waited for.
 */
export function isKubeletDead({ ready, readyChangedAt }: ClusterNode, now: number): boolean {
  return !ready && readyChangedAt !== undefined && now - readyChangedAt >= KUBELET_DEAD_MS;
}
