// SPDX-License-Identifier: Apache-2.0
// Checks volumes whose labels name their zone or region.

import type { Labels } from '../../model/labels.ts';
import type { PersistentVolume } from '../../model/persistent-volume.ts';
import type { Pod } from '../../model/pod.ts';
import type { VolumeClaim } from '../../model/volume-claim.ts';
import type { ClaimProblem, FilterReason } from '../reasons.ts';
import type { StorageState } from '../state/storage-state.ts';
import { claimKey } from './claims.ts';
import type { Filter } from './filter.ts';

const BETA_ZONE = 'failure-domain.beta.kubernetes.io/zone';
const BETA_REGION = 'failure-domain.beta.kubernetes.io/region';
const ZONE = 'topology.kubernetes.io/zone';
const REGION = 'topology.kubernetes.io/region';
const TOPOLOGY_LABELS = [BETA_ZONE, BETA_REGION, ZONE, REGION];

// A node's current label satisfies a volume's beta label, but not the reverse.
const CURRENT_LABELS: Labels = { [BETA_ZONE]: ZONE, [BETA_REGION]: REGION };

const SEPARATOR = '__';

export const volumeZone: Filter = ({ pod }, { node }, { storage }) => {
  if (pod.volumes.length === 0) return undefined;
  const { volumes, problem } = boundVolumes(pod, storage);
  if (problem !== undefined) return problem;
  // A node without zone labels accepts every volume.
  if (!TOPOLOGY_LABELS.some((key) => Object.hasOwn(node.labels, key))) return undefined;
  for (const volume of volumes) {
    const reason = checkZone(volume, node.labels);
    if (reason !== undefined) return reason;
  }
  return undefined;
};

function boundVolumes(
  pod: Pod,
  storage: StorageState,
): { readonly volumes: readonly PersistentVolume[]; readonly problem?: FilterReason } {
  const volumes: PersistentVolume[] = [];
  for (const one of pod.volumes) {
    if (one.kind !== 'claim') continue;
    const found = findBoundVolume(storage.claim(pod.namespace, one.claimName), storage);
    if (typeof found === 'string') {
      return {
        volumes,
        problem: { filter: 'VolumeZone', problem: found, claim: claimKey(pod, one) },
      };
    }
    if (found !== undefined) volumes.push(found);
  }
  return { volumes };
}

/** Undefined: the volume will be provisioned where its first pod runs. */
function findBoundVolume(
  claim: VolumeClaim | undefined,
  storage: StorageState,
): PersistentVolume | ClaimProblem | undefined {
  if (claim === undefined) return 'claim-not-found';
  if (claim.volumeName !== '') return storage.volume(claim.volumeName) ?? 'volume-not-found';
  if (claim.storageClass === '') return 'claim-without-class';
  const storageClass = storage.storageClass(claim.storageClass);
  if (storageClass === undefined) return 'class-not-found';
  if (storageClass.binding === 'unset') return 'class-without-binding-mode';
  return storageClass.binding === 'first-consumer' ? undefined : 'claim-unbound';
}

function checkZone(volume: PersistentVolume, labels: Labels): FilterReason | undefined {
  for (const topologyKey of TOPOLOGY_LABELS) {
    const required = volumeZones(volume.labels, topologyKey);
    if (required === undefined) continue;
    const actual = nodeZone(labels, topologyKey);
    if (actual === undefined || !required.includes(actual)) {
      const where = { volume: volume.name, topologyKey, required };
      return { filter: 'VolumeZone', problem: 'other-zone', ...where };
    }
  }
  return undefined;
}

// As in the scheduler, a list with an empty entry is ignored.
function volumeZones(labels: Labels, key: string): readonly string[] | undefined {
  if (!Object.hasOwn(labels, key)) return undefined;
  const all = (labels[key] ?? '').split(SEPARATOR).map((one) => one.trim());
  return all.includes('') ? undefined : all;
}

function nodeZone(labels: Labels, key: string): string | undefined {
  return labels[key] ?? labels[CURRENT_LABELS[key] ?? key];
}
