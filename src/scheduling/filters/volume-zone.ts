// SPDX-License-Identifier: Apache-2.0
// Volumes that say in their labels where they are.

import type { Labels } from '../../model/labels.ts';
import type { PersistentVolume } from '../../model/persistent-volume.ts';
import type { Pod } from '../../model/pod.ts';
import type { VolumeClaim } from '../../model/volume-claim.ts';
import type { ClaimProblem, Reason } from '../reasons.ts';
import type { Storage } from '../state/storage.ts';
import type { Filter } from './filter.ts';

const BETA_ZONE = 'failure-domain.beta.kubernetes.io/zone';
const BETA_REGION = 'failure-domain.beta.kubernetes.io/region';
const ZONE = 'topology.kubernetes.io/zone';
const REGION = 'topology.kubernetes.io/region';
const PLACE_LABELS = [BETA_ZONE, BETA_REGION, ZONE, REGION];

// A volume's old label may be met by a node's new one, not the other way round.
const SUCCESSORS: Labels = { [BETA_ZONE]: ZONE, [BETA_REGION]: REGION };

const SEPARATOR = '__';

export const volumeZone: Filter = ({ pod }, { node }, { storage }) => {
  if (pod.volumes.length === 0) return undefined;
  const { volumes, problem } = volumesOf(pod, storage);
  if (problem !== undefined) return problem;
  // A cluster without zones has nothing to say about them.
  if (!PLACE_LABELS.some((key) => Object.hasOwn(node.labels, key))) return undefined;
  for (const volume of volumes) {
    const reason = judge(volume, node.labels);
    if (reason !== undefined) return reason;
  }
  return undefined;
};

function volumesOf(
  pod: Pod,
  storage: Storage,
): { readonly volumes: readonly PersistentVolume[]; readonly problem?: Reason } {
  const volumes: PersistentVolume[] = [];
  for (const one of pod.volumes) {
    if (one.kind !== 'claim') continue;
    const found = volumeOf(storage.claim(pod.namespace, one.claimName), storage);
    if (typeof found === 'string') {
      return { volumes, problem: { filter: 'VolumeZone', problem: found, claim: one.claimName } };
    }
    if (found !== undefined) volumes.push(found);
  }
  return { volumes };
}

/** Undefined: it will be made where its first pod runs. */
function volumeOf(
  claim: VolumeClaim | undefined,
  storage: Storage,
): PersistentVolume | ClaimProblem | undefined {
  if (claim === undefined) return 'claim-not-found';
  if (claim.volumeName !== '') return storage.volume(claim.volumeName) ?? 'volume-not-found';
  if (claim.storageClass === '') return 'claim-without-class';
  const storageClass = storage.storageClass(claim.storageClass);
  if (storageClass === undefined) return 'class-not-found';
  if (storageClass.binding === 'unset') return 'class-without-binding-mode';
  return storageClass.binding === 'first-consumer' ? undefined : 'claim-unbound';
}

function judge(volume: PersistentVolume, labels: Labels): Reason | undefined {
  for (const topologyKey of PLACE_LABELS) {
    const wanted = places(volume.labels, topologyKey);
    if (wanted === undefined) continue;
    const actual = place(labels, topologyKey);
    if (actual === undefined || !wanted.includes(actual)) {
      const where = { volume: volume.name, topologyKey, wanted };
      return { filter: 'VolumeZone', problem: 'other-zone', ...where };
    }
  }
  return undefined;
}

// A list with a gap in it is not understood, and then not heeded.
function places(labels: Labels, key: string): readonly string[] | undefined {
  if (!Object.hasOwn(labels, key)) return undefined;
  const all = (labels[key] ?? '').split(SEPARATOR).map((one) => one.trim());
  return all.includes('') ? undefined : all;
}

function place(labels: Labels, key: string): string | undefined {
  return labels[key] ?? labels[SUCCESSORS[key] ?? key];
}
