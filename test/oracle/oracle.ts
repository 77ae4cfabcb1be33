// SPDX-License-Identifier: Apache-2.0
// What the oracle and the simulation say about a case, in the same form.

import { podFromKubernetes } from '../../src/model/pod-from-kubernetes.ts';
import { fits, snapshotFromKubernetes } from '../../src/scheduling/index.ts';
import type { Judges } from './judges.ts';
import type { Case } from './objects.ts';

/** Per pending pod and node, in their order, the plugins that refuse. */
export type Rejections = readonly (readonly (readonly string[])[])[];

export interface Judged {
  readonly rejections: Rejections;
  /** Statuses that are errors of the scheduler rather than refusals. */
  readonly trouble: readonly string[];
}

export async function judged(judge: Judges, { cluster, pending }: Case): Promise<Judged> {
  const answer = await judge.ask({ kind: 'judge', cluster, pending });
  return {
    rejections: (answer['rejections'] ?? []) as Rejections,
    trouble: (answer['trouble'] ?? []) as readonly string[],
  };
}

export function simulated({ cluster, pending }: Case): Rejections {
  const snapshot = snapshotFromKubernetes(cluster);
  if (!snapshot.ok) throw new Error(`the cluster was refused: ${snapshot.problem}`);
  return pending.map((source) => {
    const pod = podFromKubernetes(source);
    if (!pod.ok) throw new Error(`the pod was refused: ${pod.problem}`);
    return cluster.nodes.map(({ metadata }) => {
      const verdict = fits(snapshot.value, pod.value, metadata.name);
      return verdict.fits ? [] : [...new Set(verdict.reasons.map((reason) => reason.filter))];
    });
  });
}

export interface Difference {
  readonly pod: string;
  readonly node: string;
  readonly oracle: readonly string[];
  readonly ours: readonly string[];
}

export function differences(of: Case, oracle: Rejections, ours: Rejections): Difference[] {
  return of.pending.flatMap((pod, p) =>
    of.cluster.nodes.flatMap((node, n) => {
      const one = [...(oracle[p]?.[n] ?? [])].sort();
      const other = [...(ours[p]?.[n] ?? [])].sort();
      if (one.join() === other.join()) return [];
      return [{ pod: pod.metadata.name, node: node.metadata.name, oracle: one, ours: other }];
    }),
  );
}
