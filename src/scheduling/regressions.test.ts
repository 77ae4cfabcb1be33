// SPDX-License-Identifier: Apache-2.0
// Results of kube-scheduler's own plugins, recorded by the oracle (test/oracle): one small cluster per feature,
// and every counterexample found so far. They are replayed here without the oracle.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { podFromKubernetes } from '../model/pod-from-kubernetes.ts';
import type { PodSource } from '../model/pod-source.ts';
import {
  checkFit,
  type KubernetesObjects,
  type PoolOffer,
  pack,
  snapshotFromKubernetes,
} from './index.ts';
import { replay } from './testing/replay.ts';

interface Stored {
  readonly title: string;
  readonly cluster: KubernetesObjects;
  readonly pending: readonly PodSource[];
  readonly featureGates?: KubernetesObjects['featureGates'];
  /** The rejecting plugins, by pending pod and node. */
  readonly rejections: readonly (readonly (readonly string[])[])[];
}

/** A packing that was once wrong. A correct packing may change, so no result is stored. */
interface StoredPacking extends Pick<Stored, 'cluster' | 'pending' | 'featureGates'> {
  readonly daemonSets: NonNullable<KubernetesObjects['daemonSets']>;
  readonly pools: readonly PoolOffer[];
}

function read(folder: string): readonly { readonly file: string; readonly found: unknown }[] {
  return readdirSync(folder)
    .filter((file) => file.endsWith('.json'))
    .map((file) => ({ file, found: JSON.parse(readFileSync(join(folder, file), 'utf8')) }));
}

const folder = join(import.meta.dirname, '..', '..', 'test', 'oracle', 'regressions');
const stored = read(folder).map(({ file, found }) => ({ file, found: found as Stored }));
const packings = read(join(folder, 'packings')).map(({ file, found }) => ({
  file,
  found: found as StoredPacking,
}));

function rejections({ cluster, pending, featureGates }: Stored): Stored['rejections'] {
  const snapshot = snapshotFromKubernetes({ ...cluster, featureGates });
  if (!snapshot.ok) throw new Error(snapshot.problem);
  return pending.map((source) => {
    const pod = podFromKubernetes(source);
    if (!pod.ok) throw new Error(pod.problem);
    return cluster.nodes.map(({ metadata }) => {
      const verdict = checkFit(snapshot.value, pod.value, metadata.name);
      return verdict.fits ? [] : [...new Set(verdict.reasons.map(({ filter }) => filter))].sort();
    });
  });
}

describe("checkFit agrees with recorded results of kube-scheduler's plugins", () => {
  test('for every feature', () => {
    expect(stored.length).toBeGreaterThan(30);
  });

  test.each(stored)('in $file: $found.title', ({ found }) => {
    const expected = found.rejections.map((nodes) => nodes.map((plugins) => [...plugins].sort()));
    expect(rejections(found)).toEqual(expected);
  });
});

describe('pack on clusters where it was once wrong', () => {
  test.each(packings)('places pods and daemon pods that pass every filter: $file', ({ found }) => {
    const snapshot = snapshotFromKubernetes({
      ...found.cluster,
      daemonSets: found.daemonSets,
      featureGates: found.featureGates,
    });
    if (!snapshot.ok) throw new Error(snapshot.problem);
    const pending = found.pending.map((source) => {
      const pod = podFromKubernetes(source);
      if (!pod.ok) throw new Error(pod.problem);
      return pod.value;
    });
    const packing = pack(snapshot.value, pending, { pools: found.pools });
    expect(packing.machines).not.toEqual([]);
    expect(replay(snapshot.value, packing, 'one by one')).toEqual([]);
  });
});
