// SPDX-License-Identifier: Apache-2.0
// Shrinks a case as long as it still shows the problem.

import type { Case } from './objects.ts';

/** Fields that may be absent in a valid object. */
const OPTIONAL = new Set(
  [
    'labels annotations taints unschedulable tolerations nodeSelector affinity nodeAffinity podAffinity',
    'podAntiAffinity topologySpreadConstraints initContainers overhead resources ports volumes nodeName',
    'minDomains nodeAffinityPolicy nodeTaintsPolicy namespaces namespaceSelector matchLabels status',
    'matchExpressions matchFields deletionTimestamp phase allowedTopologies restartPolicy conditions',
    'containerStatuses initContainerStatuses allocatedResources allocatable claimRef hostIP protocol',
    'selector nodeTopology capacity maximumVolumeSize volumeMode value effect readOnly matchLabelKeys',
    'mismatchLabelKeys featureGates priority hostNetwork hostUsers restartPolicyRules nominatedNodeName',
    'declaredFeatures limits',
  ]
    .join(' ')
    .split(' '),
);

/** Maps whose entries may be removed one by one. */
const MAPS = new Set(
  'labels annotations nodeSelector matchLabels requests limits overhead featureGates'.split(' '),
);

/** Lists that are invalid or have another meaning when empty. */
const NEVER_EMPTY = new Set(
  'containers values nodeSelectorTerms accessModes drivers monitors sizes domains'.split(' '),
);

/** Lists that may only be removed as a whole. */
const INDIVISIBLE_LISTS = new Set(['matchLabelKeys', 'mismatchLabelKeys']);

type Path = readonly (string | number)[];

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Objects that would be invalid without some of their fields. */
const INDIVISIBLE_OBJECTS = new Set(['persistentVolumes', 'persistentVolumeClaims']);

function canRemove(key: string, path: Path): boolean {
  const parent = lastName(path);
  if (path.length === 0) return key === 'featureGates';
  if (path.length === 1 && path[0] !== 'featureGates') return false;
  if (INDIVISIBLE_OBJECTS.has(`${path[1]}`)) return false;
  if (parent === 'taints' && key === 'effect') return false;
  if (path[1] === 'nodes' && (key === 'status' || key === 'allocatable')) return false;
  return MAPS.has(parent) || OPTIONAL.has(key);
}

function lastName(path: Path): string {
  return `${path.findLast((step) => typeof step === 'string') ?? ''}`;
}

/** All single removals, outermost first, so that large parts are removed early. */
function findRemovals(value: unknown, path: Path = []): Path[] {
  if (Array.isArray(value)) {
    if (INDIVISIBLE_LISTS.has(lastName(path))) return [];
    const own = value.map((_, i) => [...path, i]);
    return [...own.toReversed(), ...value.flatMap((one, i) => findRemovals(one, [...path, i]))];
  }
  if (!isObject(value)) return [];
  const keys = Object.keys(value);
  const own = keys.filter((key) => canRemove(key, path)).map((key) => [...path, key]);
  return [...own, ...keys.flatMap((key) => findRemovals(value[key], [...path, key]))];
}

function removeAt<T>(from: T, path: Path): T | undefined {
  const copy = structuredClone(from);
  let holder: unknown = copy;
  for (const step of path.slice(0, -1)) {
    if (typeof holder !== 'object' || holder === null) return undefined;
    holder = Reflect.get(holder, step);
  }
  const last = path.at(-1);
  return last !== undefined && removeFrom(holder, last, path) ? copy : undefined;
}

function removeFrom(holder: unknown, last: string | number, path: Path): boolean {
  if (typeof holder !== 'object' || holder === null) return false;
  if (!Array.isArray(holder))
    return Reflect.has(holder, last) && Reflect.deleteProperty(holder, last);
  const minLength = NEVER_EMPTY.has(lastName(path)) ? 2 : 1;
  if (Number(last) >= holder.length || holder.length < minLength) return false;
  holder.splice(Number(last), 1);
  return true;
}

// The API server merges label keys into the selector. Without that, the plugin does not read them.
function isAdmitted({ cluster, pending }: Case): boolean {
  return [...cluster.pods, ...pending].every(({ metadata, spec }) =>
    [spec.affinity?.podAffinity, spec.affinity?.podAntiAffinity]
      .flatMap((one) => one?.requiredDuringSchedulingIgnoredDuringExecution ?? [])
      .every(({ labelSelector, matchLabelKeys = [], mismatchLabelKeys = [] }) =>
        [...matchLabelKeys, ...mismatchLabelKeys].every(
          (key) =>
            metadata.labels?.[key] === undefined ||
            (labelSelector?.matchExpressions ?? []).some((expression) => expression.key === key),
        ),
      ),
  );
}

export async function shrink<T extends Case>(
  from: T,
  stillShows: (candidate: T) => Promise<boolean>,
): Promise<T> {
  let smallest = from;
  for (let hasShrunk = true; hasShrunk; ) {
    hasShrunk = false;
    // Later paths stay valid after a removal, because lists are traversed from the end.
    for (const path of findRemovals(smallest)) {
      const candidate = removeAt(smallest, path);
      if (candidate === undefined || !isAdmitted(candidate)) continue;
      if (!(await stillShows(candidate))) continue;
      smallest = candidate;
      hasShrunk = true;
    }
  }
  return smallest;
}
