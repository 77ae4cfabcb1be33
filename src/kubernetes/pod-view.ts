// SPDX-License-Identifier: Apache-2.0
// What is kept of a Pod.
import type { Parsed } from '../model/parsed.ts';
import type { Pod } from '../model/pod.ts';
import { podFromKubernetes } from '../model/pod-from-kubernetes.ts';
import type { PodSource } from '../model/pod-source.ts';
import type { Interner } from './interner.ts';

export function podView(source: PodSource, interner: Interner): Parsed<Pod> {
  const pod = podFromKubernetes(source);
  return pod.ok ? { ...pod, value: shared(pod.value, interner) } : pod;
}

/** Everything but name and uid is what other pods have, too. */
function shared(pod: Pod, interner: Interner): Pod {
  return {
    ...pod,
    namespace: interner.text(pod.namespace),
    nodeName: interner.text(pod.nodeName),
    labels: interner.value(pod.labels),
    ...(pod.controller && { controller: interner.value(pod.controller) }),
    requests: interner.value(pod.requests),
    held: interner.value(pod.held),
    tolerations: interner.value(pod.tolerations),
    nodeSelector: interner.value(pod.nodeSelector),
    preferredNodes: interner.value(pod.preferredNodes),
    spread: interner.value(pod.spread),
    hostPorts: interner.value(pod.hostPorts),
    volumes: interner.value(pod.volumes),
    affinity: interner.value(pod.affinity),
    antiAffinity: interner.value(pod.antiAffinity),
    ...(pod.nodeAffinity && { nodeAffinity: interner.value(pod.nodeAffinity) }),
  };
}
