// SPDX-License-Identifier: Apache-2.0
// What a kubelet says about a pod on its way from bound to gone.
import { isRecord, listOf, type PlainRecord, recordOf, textOf } from '../plain-values.ts';
import { timestamp } from './node-object.ts';

export interface PodFacts {
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
  readonly isTerminating: boolean;
  readonly graceSeconds: number;
  /** Phase Succeeded or Failed: nothing is left to run. */
  readonly isOver: boolean;
  readonly containers: readonly { readonly name: string; readonly image: string }[];
  /** The longest a container waits before its readiness is asked for. */
  readonly readyAfterSeconds: number;
  /** How long its preStop hooks sleep. */
  readonly stopAfterSeconds: number;
}

export function podFacts(pod: PlainRecord): PodFacts {
  const metadata = recordOf(pod['metadata']);
  const containers = listOf(recordOf(pod['spec'])['containers']).filter(isRecord);
  const phase = textOf(recordOf(pod['status'])['phase']);
  const longest = (seconds: (container: PlainRecord) => unknown) =>
    Math.max(0, ...containers.map((each) => Number(seconds(each) ?? 0) || 0));
  return {
    uid: textOf(metadata['uid']) ?? '',
    namespace: textOf(metadata['namespace']) ?? '',
    name: textOf(metadata['name']) ?? '',
    isTerminating: metadata['deletionTimestamp'] !== undefined,
    graceSeconds: Number(metadata['deletionGracePeriodSeconds'] ?? 0),
    isOver: phase === 'Succeeded' || phase === 'Failed',
    containers: containers.map((each) => ({
      name: textOf(each['name']) ?? '',
      image: textOf(each['image']) ?? '',
    })),
    readyAfterSeconds: longest((each) => recordOf(each['readinessProbe'])['initialDelaySeconds']),
    stopAfterSeconds: longest(
      (each) => recordOf(recordOf(recordOf(each['lifecycle'])['preStop'])['sleep'])['seconds'],
    ),
  };
}

export interface PodMoment {
  readonly state: 'running' | 'ready' | 'ended';
  readonly startedAt: number;
  readonly now: number;
  readonly hostIp: string | undefined;
  readonly podIp: string;
}

export function podStatus(pod: PodFacts, moment: PodMoment) {
  const { state, startedAt, now, hostIp, podIp } = moment;
  const isReady = state === 'ready';
  const condition = (type: string, isTrue: boolean) => ({
    type,
    status: isTrue ? 'True' : 'False',
    lastTransitionTime: timestamp(now),
  });
  return {
    phase: state === 'ended' ? 'Succeeded' : 'Running',
    startTime: timestamp(startedAt),
    ...(hostIp !== undefined && { hostIP: hostIp, hostIPs: [{ ip: hostIp }] }),
    podIP: podIp,
    podIPs: [{ ip: podIp }],
    conditions: [
      condition('PodReadyToStartContainers', state !== 'ended'),
      condition('Initialized', true),
      condition('Ready', isReady),
      condition('ContainersReady', isReady),
      condition('PodScheduled', true),
    ],
    containerStatuses: pod.containers.map(({ name, image }) => ({
      name,
      image,
      imageID: `simulated://${image}`,
      containerID: `containerd://${pod.uid}-${name}`,
      ready: isReady,
      started: state !== 'ended',
      restartCount: 0,
      state:
        state === 'ended'
          ? {
              terminated: {
                exitCode: 0,
                reason: 'Completed',
                startedAt: timestamp(startedAt),
                finishedAt: timestamp(now),
              },
            }
          : { running: { startedAt: timestamp(startedAt) } },
    })),
  };
}
