// SPDX-License-Identifier: Apache-2.0
// The results of the oracle and of the simulation for a case, in the same form.

import { podFromKubernetes } from '../../src/model/pod-from-kubernetes.ts';
import { checkFit, snapshotFromKubernetes } from '../../src/scheduling/index.ts';
import type { Case } from './objects.ts';
import type { OracleProcesses } from './oracle-processes.ts';

/** The rejecting plugins by pending pod and node, in order. */
export type Rejections = readonly (readonly (readonly string[])[])[];

export interface OracleResult {
  readonly rejections: Rejections;
  /** Statuses that are scheduler errors rather than rejections. */
  readonly errors: readonly string[];
}

export async function runOracle(
  oracle: OracleProcesses,
  { cluster, pending, featureGates }: Case,
): Promise<OracleResult> {
  const response = await oracle.request({ kind: 'filter', cluster, pending, featureGates });
  return {
    rejections: (response['rejections'] ?? []) as Rejections,
    errors: (response['errors'] ?? []) as readonly string[],
  };
}

export function runSimulation({ cluster, pending, featureGates }: Case): Rejections {
  const snapshot = snapshotFromKubernetes({ ...cluster, featureGates });
  if (!snapshot.ok) throw new Error(`invalid cluster: ${snapshot.problem}`);
  return pending.map((source) => {
    const pod = podFromKubernetes(source);
    if (!pod.ok) throw new Error(`invalid pod: ${pod.problem}`);
    return cluster.nodes.map(({ metadata }) => {
      const result = checkFit(snapshot.value, pod.value, metadata.name);
      return result.fits ? [] : [...new Set(result.reasons.map((reason) => reason.filter))];
    });
  });
}

export interface Difference {
  readonly pod: string;
  readonly node: string;
  readonly oracle: readonly string[];
  readonly ours: readonly string[];
}

export function findDifferences(of: Case, oracle: Rejections, ours: Rejections): Difference[] {
  return of.pending.flatMap((pod, p) =>
    of.cluster.nodes.flatMap((node, n) => {
      const one = [...(oracle[p]?.[n] ?? [])].sort();
      const other = [...(ours[p]?.[n] ?? [])].sort();
      if (one.join() === other.join()) return [];
      return [{ pod: pod.metadata.name, node: node.metadata.name, oracle: one, ours: other }];
    }),
  );
}
