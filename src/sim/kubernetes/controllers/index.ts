// SPDX-License-Identifier: Apache-2.0
// The controllers of a simulated cluster, in the order in which they sync.
import { scheduler } from '../scheduler/scheduler.ts';
import { createVolumeController } from '../volumes/binding.ts';
import { bootstrapTokenController } from './bootstrap-tokens.ts';
import { createCertificateController } from './certificates.ts';
import type { ClusterAuthority, Controller } from './controller.ts';
import { daemonSetController } from './daemon-set.ts';
import { deploymentController } from './deployment.ts';
import { disruptionController } from './disruption-budget.ts';
import { createFakeKubelet, type FakeKubeletTimes } from './fake-kubelet.ts';
import { garbageCollector } from './garbage-collector.ts';
import { createJobController } from './job.ts';
import { createNamespaceController } from './namespaces.ts';
import { createNodeLifecycle } from './node-lifecycle.ts';
import { createPodGarbageCollector } from './pod-garbage.ts';
import { replicaSetController } from './replica-set.ts';
import { statefulSetController } from './stateful-set.ts';

export interface ControllerOptions {
  /** Time without a heartbeat until a node is unreachable. Default: 50 s. */
  readonly nodeMonitorGraceMs?: number;
  /** From the end of the last pod that uses a volume until it is detached. Default: 3 s. */
  readonly detachMs?: number;
  /** Times of pods on nodes without a machine. Default: 2 s to start, 1 s to stop. */
  readonly fakeKubelet?: FakeKubeletTimes;
}

const DEFAULT_GRACE_MS = 50_000;
const DEFAULT_DETACH_MS = 3_000;
const DEFAULT_KUBELET: FakeKubeletTimes = { startMs: 2_000, stopMs: 1_000 };

export function createControllers(
  options: ControllerOptions,
  authority: ClusterAuthority | undefined,
): readonly Controller[] {
  return [
    createNamespaceController(authority?.certPem),
    garbageCollector,
    deploymentController,
    replicaSetController,
    statefulSetController,
    daemonSetController,
    createJobController(),
    createNodeLifecycle(options.nodeMonitorGraceMs ?? DEFAULT_GRACE_MS),
    createPodGarbageCollector(),
    disruptionController,
    createVolumeController(options.detachMs ?? DEFAULT_DETACH_MS),
    scheduler,
    createFakeKubelet(options.fakeKubelet ?? DEFAULT_KUBELET),
    bootstrapTokenController,
    ...(authority === undefined ? [] : [createCertificateController(authority)]),
  ];
}
