// SPDX-License-Identifier: Apache-2.0
// Runs the pods of a Job until enough have succeeded or too many have failed.
import {
  conditionOf,
  formatTime,
  isTerminating,
  type JsonObject,
  numberField,
  objectField,
  type SimObject,
  specOf,
  statusOf,
  textField,
} from '../storage/objects.ts';
import { JOBS, PODS } from '../storage/resources.ts';
import {
  type Controller,
  type ControllerContext,
  isFinished,
  isReady,
  podFromTemplate,
  podPhase,
  podsByController,
  withCondition,
} from './controller.ts';

/** Uids of finished pods by Job. A finished pod counts although it was deleted since. */
interface FinishedPods {
  readonly succeeded: Set<string>;
  readonly failed: Set<string>;
}

export function createJobController(): Controller {
  const finished = new Map<string, FinishedPods>();
  return {
    name: 'job-controller',
    watches: [JOBS, PODS],
    sync(cluster) {
      const pods = podsByController(cluster);
      let next: number | undefined;
      cluster.forEach(
        cluster.list(JOBS).filter((job) => !isTerminating(job)),
        (job) => {
          const { uid } = job.metadata;
          const counted = finished.get(uid) ?? { succeeded: new Set(), failed: new Set() };
          finished.set(uid, counted);
          const due = syncJob(cluster, job, { pods: pods.get(uid) ?? [], counted });
          if (due !== undefined) next = Math.min(next ?? due, due);
        },
      );
      return next;
    },
  };
}

interface JobState {
  readonly pods: readonly SimObject[];
  readonly counted: FinishedPods;
}

function syncJob(
  cluster: ControllerContext,
  job: SimObject,
  { pods, counted }: JobState,
): number | undefined {
  for (const pod of pods) {
    if (podPhase(pod) === 'Succeeded') counted.succeeded.add(pod.metadata.uid);
    if (podPhase(pod) === 'Failed') counted.failed.add(pod.metadata.uid);
  }
  if (isEnded(job)) return deleteAfterTtl(cluster, job);
  const active = pods.filter((pod) => !isTerminating(pod) && !isFinished(pod));
  const terminating = pods.filter((pod) => isTerminating(pod) && !isFinished(pod));
  const [succeeded, failed] = [counted.succeeded.size, counted.failed.size];
  const spec = specOf(job);
  const completions = numberField(spec, 'completions', 1);
  const isComplete = succeeded >= completions;
  const isFailed = failed > numberField(spec, 'backoffLimit', 6);
  const isSuspended = spec['suspend'] === true;
  if (isComplete || isFailed || isSuspended) {
    for (const pod of active) cluster.delete(PODS, pod);
  } else {
    const parallelism = numberField(spec, 'parallelism', 1);
    const wanted = Math.min(parallelism, completions - succeeded) - active.length;
    for (let count = 0; count < wanted - terminating.length; count += 1) createPod(cluster, job);
  }
  reportStatus(cluster, job, { succeeded, failed, active, outcome: { isComplete, isFailed } });
  return undefined;
}

function isEnded(job: SimObject): boolean {
  return ['Complete', 'Failed'].some((type) => conditionOf(job, type)?.['status'] === 'True');
}

function createPod(cluster: ControllerContext, job: SimObject): void {
  const { name, namespace = '', uid } = job.metadata;
  const labels = {
    'batch.kubernetes.io/job-name': name,
    'batch.kubernetes.io/controller-uid': uid,
    'job-name': name,
    'controller-uid': uid,
  };
  const metadata = { generateName: `${name}-`, labels };
  const template = objectField(specOf(job), 'template');
  cluster.create(PODS, podFromTemplate(job, template, { metadata }), namespace);
}

interface JobCounts {
  readonly succeeded: number;
  readonly failed: number;
  readonly active: readonly SimObject[];
  readonly outcome: { readonly isComplete: boolean; readonly isFailed: boolean };
}

function reportStatus(
  cluster: ControllerContext,
  job: SimObject,
  { succeeded, failed, active, outcome: { isComplete, isFailed } }: JobCounts,
): void {
  const now = cluster.clock.now();
  const isOver = isComplete || isFailed;
  const condition = isComplete
    ? { type: 'Complete', isTrue: true, reason: 'CompletionsReached', message: '' }
    : { type: 'Failed', isTrue: true, reason: 'BackoffLimitExceeded', message: '' };
  const fields: JsonObject = {
    startTime: textField(statusOf(job), 'startTime') || formatTime(now),
    succeeded,
    failed,
    active: isOver ? 0 : active.length,
    ready: isOver ? 0 : active.filter(isReady).length,
    ...(isComplete && { completionTime: formatTime(now) }),
    ...(isOver && { conditions: withCondition(job, condition, now) }),
  };
  cluster.updateStatus(JOBS, job, fields);
}

/** Returns when the Job is deleted, on the monotonic clock. */
function deleteAfterTtl(cluster: ControllerContext, job: SimObject): number | undefined {
  const seconds = specOf(job)['ttlSecondsAfterFinished'];
  if (typeof seconds !== 'number') return undefined;
  const { clock } = cluster;
  const last = conditionOf(job, 'Complete') ?? conditionOf(job, 'Failed');
  const endedAt = Date.parse(textField(last ?? {}, 'lastTransitionTime'));
  const leftMs = endedAt + seconds * 1_000 - clock.now();
  if (leftMs > 0) return clock.monotonic() + leftMs;
  cluster.delete(JOBS, job);
  return undefined;
}
