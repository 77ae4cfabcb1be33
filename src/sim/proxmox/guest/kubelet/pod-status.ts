// SPDX-License-Identifier: Apache-2.0
// The status that the kubelet reports for a pod, from its start to its termination.
import { asList, asRecord, asText, isRecord, type PlainRecord } from '../untyped-values.ts';
import { formatTimestamp } from './node-object.ts';

export interface PodFacts {
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
  readonly isTerminating: boolean;
  readonly graceSeconds: number;
  /** Phase Succeeded or Failed. */
  readonly isTerminated: boolean;
  /** The Ready condition in the API, which the node controller sets to False when it loses the node. */
  readonly isReady: boolean;
  readonly containers: readonly { readonly name: string; readonly image: string }[];
  /** The longest `initialDelaySeconds` of the readiness probes. */
  readonly readyAfterSeconds: number;
  /** The longest sleep of the preStop hooks. */
  readonly stopAfterSeconds: number;
  /** How long its containers run until they end successfully; undefined: until the pod is deleted. */
  readonly runSeconds: number | undefined;
}

/** Annotation with the seconds after which the containers of a pod end. */
const RUN_SECONDS_ANNOTATION = 'sim.pvescaler.dev/run-seconds';

export function readPodFacts(pod: PlainRecord): PodFacts {
  const metadata = asRecord(pod['metadata']);
  const runSeconds = asText(asRecord(metadata['annotations'])[RUN_SECONDS_ANNOTATION]);
  const containers = asList(asRecord(pod['spec'])['containers']).filter(isRecord);
  const status = asRecord(pod['status']);
  const phase = asText(status['phase']);
  const conditions = asList(status['conditions']).filter(isRecord);
  const longest = (seconds: (container: PlainRecord) => unknown) =>
    Math.max(0, ...containers.map((each) => Number(seconds(each) ?? 0) || 0));
  return {
    uid: asText(metadata['uid']) ?? '',
    namespace: asText(metadata['namespace']) ?? '',
    name: asText(metadata['name']) ?? '',
    isTerminating: metadata['deletionTimestamp'] !== undefined,
    graceSeconds: Number(metadata['deletionGracePeriodSeconds'] ?? 0),
    isTerminated: phase === 'Succeeded' || phase === 'Failed',
    isReady: conditions.some(({ type, status: value }) => type === 'Ready' && value === 'True'),
    containers: containers.map((each) => ({
      name: asText(each['name']) ?? '',
      image: asText(each['image']) ?? '',
    })),
    readyAfterSeconds: longest((each) => asRecord(each['readinessProbe'])['initialDelaySeconds']),
    stopAfterSeconds: longest(
      (each) => asRecord(asRecord(asRecord(each['lifecycle'])['preStop'])['sleep'])['seconds'],
    ),
    runSeconds: runSeconds === undefined ? undefined : Number(runSeconds),
  };
}

export interface PodStatusInput {
  readonly state: 'running' | 'ready' | 'terminated';
  readonly startedAt: number;
  readonly now: number;
  readonly hostIp: string | undefined;
  readonly podIp: string;
}

export function buildPodStatus(pod: PodFacts, input: PodStatusInput) {
  const { state, startedAt, now, hostIp, podIp } = input;
  const isReady = state === 'ready';
  const condition = (type: string, isTrue: boolean) => ({
    type,
    status: isTrue ? 'True' : 'False',
    lastTransitionTime: formatTimestamp(now),
  });
  return {
    phase: state === 'terminated' ? 'Succeeded' : 'Running',
    startTime: formatTimestamp(startedAt),
    ...(hostIp !== undefined && { hostIP: hostIp, hostIPs: [{ ip: hostIp }] }),
    podIP: podIp,
    podIPs: [{ ip: podIp }],
    conditions: [
      condition('PodReadyToStartContainers', state !== 'terminated'),
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
      started: state !== 'terminated',
      restartCount: 0,
      state:
        state === 'terminated'
          ? {
              terminated: {
                exitCode: 0,
                reason: 'Completed',
                startedAt: formatTimestamp(startedAt),
                finishedAt: formatTimestamp(now),
              },
            }
          : { running: { startedAt: formatTimestamp(startedAt) } },
    })),
  };
}
