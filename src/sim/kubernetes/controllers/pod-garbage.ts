// SPDX-License-Identifier: Apache-2.0
// Removes pods whose node no longer exists: no kubelet can report their end.
import { type SimObject, specOf, textField } from '../storage/objects.ts';
import { NODES, PODS } from '../storage/resources.ts';
import { addressOf, type Controller, isFinished } from './controller.ts';

const QUARANTINE_MS = 40_000;

export function createPodGarbageCollector(): Controller {
  /** When the node of a pod was first found missing, by node name. */
  const missingSince = new Map<string, number>();
  return {
    name: 'pod-garbage-collector',
    watches: [NODES, PODS],
    sync(cluster) {
      const now = cluster.clock.monotonic();
      const nodes = new Set(cluster.list(NODES).map(({ metadata }) => metadata.name));
      for (const name of missingSince.keys()) if (nodes.has(name)) missingSince.delete(name);
      const orphaned = cluster.list(PODS).filter((pod) => isOrphaned(pod, nodes));
      let next: number | undefined;
      cluster.forEach(orphaned, (pod) => {
        const name = textField(specOf(pod), 'nodeName');
        const since = missingSince.get(name) ?? now;
        missingSince.set(name, since);
        const dueAt = since + QUARANTINE_MS;
        if (now < dueAt) {
          next = Math.min(next ?? dueAt, dueAt);
          return;
        }
        if (!isFinished(pod)) cluster.updateStatus(PODS, pod, { phase: 'Failed' });
        cluster.storage.delete(addressOf(PODS, pod), { gracePeriodSeconds: 0 });
      });
      return next;
    },
  };
}

function isOrphaned(pod: SimObject, nodes: ReadonlySet<string>): boolean {
  const name = textField(specOf(pod), 'nodeName');
  return name !== '' && !nodes.has(name);
}
