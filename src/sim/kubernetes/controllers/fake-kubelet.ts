// SPDX-License-Identifier: Apache-2.0
// The kubelet of nodes without a machine. A Node with the annotation of KWOK is ready at once, and its pods run without
// containers.
import {
  formatTime,
  isTerminating,
  type JsonObject,
  listField,
  numberField,
  type SimObject,
  specOf,
  statusOf,
  textField,
  textMap,
} from '../storage/objects.ts';
import { NODES, PODS } from '../storage/resources.ts';
import {
  addressOf,
  type Controller,
  type ControllerContext,
  isFinished,
  isReady,
  podPhase,
} from './controller.ts';

export const FAKE_NODE_ANNOTATION = 'kwok.x-k8s.io/node';
/** After this many seconds the containers of the pod end successfully, or fail with the second annotation. */
export const RUN_SECONDS_ANNOTATION = 'sim.pvescaler.dev/run-seconds';
export const FAILS_ANNOTATION = 'sim.pvescaler.dev/fails';

export interface FakeKubeletTimes {
  /** From the binding until the containers run and are ready. */
  readonly startMs: number;
  /** From the deletion until the containers have ended; at most the grace period. */
  readonly stopMs: number;
}

interface PodTimes {
  readonly boundAt: number;
  stopAt?: number;
}

export function createFakeKubelet({ startMs, stopMs }: FakeKubeletTimes): Controller {
  const times = new Map<string, PodTimes>();
  return {
    name: 'kwok',
    watches: [NODES, PODS],
    sync(cluster) {
      const nodes = cluster.list(NODES).filter(isFakeNode);
      cluster.forEach(nodes, (node) => makeReady(cluster, node));
      const names = new Set(nodes.map(({ metadata }) => metadata.name));
      const pods = cluster
        .list(PODS)
        .filter((pod) => names.has(textField(specOf(pod), 'nodeName')));
      let next = Number.POSITIVE_INFINITY;
      cluster.forEach(pods, (pod) => {
        const known = times.get(pod.metadata.uid) ?? { boundAt: cluster.clock.monotonic() };
        times.set(pod.metadata.uid, known);
        next = Math.min(next, runPod(cluster, pod, { times: known, startMs, stopMs }));
      });
      return Number.isFinite(next) ? next : undefined;
    },
  };
}

function isFakeNode({ metadata }: SimObject): boolean {
  return textMap(metadata, 'annotations')[FAKE_NODE_ANNOTATION] !== undefined;
}

function makeReady(cluster: ControllerContext, node: SimObject): void {
  if (isReady(node)) return;
  const now = formatTime(cluster.clock.now());
  const capacity = { cpu: '4', memory: '16Gi', pods: '110', 'ephemeral-storage': '100Gi' };
  const status = statusOf(node);
  cluster.updateStatus(NODES, node, {
    capacity: status['capacity'] ?? status['allocatable'] ?? capacity,
    allocatable: status['allocatable'] ?? status['capacity'] ?? capacity,
    nodeInfo: { kubeletVersion: 'fake', operatingSystem: 'linux', architecture: 'amd64' },
    conditions: [
      {
        type: 'Ready',
        status: 'True',
        reason: 'KubeletReady',
        message: 'kubelet is posting ready status',
        lastHeartbeatTime: now,
        lastTransitionTime: now,
      },
    ],
  });
}

interface PodRun extends FakeKubeletTimes {
  readonly times: PodTimes;
}

/** Returns when the pod changes next, on the monotonic clock. */
function runPod(cluster: ControllerContext, pod: SimObject, run: PodRun): number {
  if (isTerminating(pod)) return stopPod(cluster, pod, run);
  if (isFinished(pod)) return Number.POSITIVE_INFINITY;
  const { times, startMs } = run;
  const now = cluster.clock.monotonic();
  const readyAt = times.boundAt + startMs;
  if (now < readyAt) return readyAt;
  if (podPhase(pod) === 'Pending') reportPod(cluster, pod, 'Running');
  const annotations = textMap(pod.metadata, 'annotations');
  const seconds = annotations[RUN_SECONDS_ANNOTATION];
  if (seconds === undefined) return Number.POSITIVE_INFINITY;
  const endAt = readyAt + Number(seconds) * 1_000;
  if (now < endAt) return endAt;
  const hasFailed = annotations[FAILS_ANNOTATION] === 'true';
  reportPod(cluster, pod, hasFailed ? 'Failed' : 'Succeeded');
  return Number.POSITIVE_INFINITY;
}

function stopPod(cluster: ControllerContext, pod: SimObject, { times, stopMs }: PodRun): number {
  const now = cluster.clock.monotonic();
  const graceMs = numberField(pod.metadata, 'deletionGracePeriodSeconds') * 1_000;
  times.stopAt ??= now + Math.min(stopMs, graceMs);
  if (now < times.stopAt) return times.stopAt;
  cluster.storage.delete(addressOf(PODS, pod), { gracePeriodSeconds: 0 });
  return Number.POSITIVE_INFINITY;
}

function reportPod(
  cluster: ControllerContext,
  pod: SimObject,
  phase: 'Running' | 'Succeeded' | 'Failed',
): void {
  const now = formatTime(cluster.clock.now());
  const isRunning = phase === 'Running';
  const condition = (type: string, isTrue: boolean): JsonObject => ({
    type,
    status: isTrue ? 'True' : 'False',
    lastTransitionTime: now,
  });
  const others = listField(statusOf(pod), 'conditions').filter(
    ({ type }) => type === 'PodScheduled' || type === 'DisruptionTarget',
  );
  const terminated = { exitCode: phase === 'Failed' ? 1 : 0, finishedAt: now };
  cluster.updateStatus(PODS, pod, {
    phase,
    startTime: statusOf(pod)['startTime'] ?? now,
    conditions: [
      ...others,
      condition('Initialized', true),
      condition('ContainersReady', isRunning),
      condition('Ready', isRunning),
    ],
    containerStatuses: listField(specOf(pod), 'containers').map((container) => ({
      name: textField(container, 'name'),
      image: textField(container, 'image'),
      ready: isRunning,
      restartCount: 0,
      state: isRunning ? { running: { startedAt: now } } : { terminated },
    })),
  });
}
