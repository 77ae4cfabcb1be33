// SPDX-License-Identifier: Apache-2.0
// Converts a Pod object to the fields that the engine uses.
import type { Parsed } from '../model/parsed.ts';
import type { Pod } from '../model/pod.ts';
import { podFromKubernetes } from '../model/pod-from-kubernetes.ts';
import type { PodSource } from '../model/pod-source.ts';
import type { Interner } from './interner.ts';

export function parsePod(source: PodSource, interner: Interner): Parsed<Pod> {
  const pod = podFromKubernetes(source);
  return pod.ok ? { ...pod, value: internFields(pod.value, interner) } : pod;
}

/** Other pods have equal values in every field except name and uid. */
function internFields(pod: Pod, interner: Interner): Pod {
  return {
    ...pod,
    namespace: interner.internText(pod.namespace),
    nodeName: interner.internText(pod.nodeName),
    labels: interner.intern(pod.labels),
    ...(pod.controller && { controller: interner.intern(pod.controller) }),
    ...(pod.eviction && { eviction: interner.intern(pod.eviction) }),
    requests: interner.intern(pod.requests),
    held: interner.intern(pod.held),
    tolerations: interner.intern(pod.tolerations),
    nodeSelector: interner.intern(pod.nodeSelector),
    preferredNodes: interner.intern(pod.preferredNodes),
    spread: interner.intern(pod.spread),
    hostPorts: interner.intern(pod.hostPorts),
    volumes: interner.intern(pod.volumes),
    affinity: interner.intern(pod.affinity),
    antiAffinity: interner.intern(pod.antiAffinity),
    ...(pod.softSpread && { softSpread: interner.intern(pod.softSpread) }),
    ...(pod.nodeAffinity && { nodeAffinity: interner.intern(pod.nodeAffinity) }),
  };
}
