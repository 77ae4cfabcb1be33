// SPDX-License-Identifier: Apache-2.0
// Pods with ordinals and their claims: created in order, deleted and updated in reverse order.
import {
  isTerminating,
  type JsonObject,
  labelsOf,
  listField,
  numberField,
  objectField,
  type SimObject,
  specOf,
  textField,
} from '../storage/objects.ts';
import { CLAIMS, PODS, STATEFUL_SETS } from '../storage/resources.ts';
import {
  type Controller,
  type ControllerContext,
  isFinished,
  isReady,
  podFromTemplate,
  podsByController,
  templateHash,
} from './controller.ts';

const HASH_LABEL = 'controller-revision-hash';

export const statefulSetController: Controller = {
  name: 'statefulset-controller',
  watches: [STATEFUL_SETS, PODS],
  sync(cluster) {
    const pods = podsByController(cluster);
    cluster.forEach(
      cluster.list(STATEFUL_SETS).filter((one) => !isTerminating(one)),
      (set) => syncStatefulSet(cluster, set, pods.get(set.metadata.uid) ?? []),
    );
    return undefined;
  },
};

function ordinalOf({ metadata: { name } }: SimObject): number {
  return Number(name.slice(name.lastIndexOf('-') + 1));
}

function syncStatefulSet(
  cluster: ControllerContext,
  set: SimObject,
  owned: readonly SimObject[],
): void {
  const hash = templateHash(objectField(specOf(set), 'template'));
  changeOnePod(cluster, set, { owned, hash });
  const ready = owned.filter((pod) => isReady(pod) && !isTerminating(pod));
  const revision = `${set.metadata.name}-${hash}`;
  const updated = owned.filter((pod) => labelsOf(pod)[HASH_LABEL] === hash).length;
  cluster.updateStatus(STATEFUL_SETS, set, {
    observedGeneration: set.metadata['generation'] ?? 1,
    replicas: owned.length,
    readyReplicas: ready.length,
    availableReplicas: ready.length,
    currentReplicas: updated,
    updatedReplicas: updated,
    currentRevision: revision,
    updateRevision: revision,
  });
}

interface OwnedPods {
  readonly owned: readonly SimObject[];
  readonly hash: string;
}

/** Ordered sets change one pod per step and wait until it is ready; parallel ones do not wait. */
function changeOnePod(
  cluster: ControllerContext,
  set: SimObject,
  { owned, hash }: OwnedPods,
): void {
  const isParallel = specOf(set)['podManagementPolicy'] === 'Parallel';
  const replicas = numberField(specOf(set), 'replicas', 1);
  const byOrdinal = new Map(owned.map((pod) => [ordinalOf(pod), pod]));
  for (let ordinal = 0; ordinal < replicas; ordinal += 1) {
    const pod = byOrdinal.get(ordinal);
    if (pod === undefined) createPod(cluster, set, { ordinal, hash });
    else if (isFinished(pod) && !isTerminating(pod)) cluster.delete(PODS, pod);
    const isSettled = pod !== undefined && isReady(pod) && !isTerminating(pod);
    if (!isSettled && !isParallel) return;
  }
  deleteOnePod(cluster, { owned, hash }, { replicas, isParallel });
}

interface Scale {
  readonly replicas: number;
  readonly isParallel: boolean;
}

function deleteOnePod(
  cluster: ControllerContext,
  { owned, hash }: OwnedPods,
  { replicas, isParallel }: Scale,
): void {
  const live = owned
    .filter((pod) => !isTerminating(pod))
    .toSorted((one, other) => ordinalOf(other) - ordinalOf(one));
  const surplus = live.filter((pod) => ordinalOf(pod) >= replicas);
  for (const pod of isParallel ? surplus : surplus.slice(0, 1)) cluster.delete(PODS, pod);
  if (surplus.length > 0 || live.length < owned.length) return;
  const outdated = live.find((pod) => labelsOf(pod)[HASH_LABEL] !== hash);
  if (outdated !== undefined) cluster.delete(PODS, outdated);
}

function createPod(
  cluster: ControllerContext,
  set: SimObject,
  { ordinal, hash }: { readonly ordinal: number; readonly hash: string },
): void {
  const { name: setName, namespace = '' } = set.metadata;
  const name = `${setName}-${ordinal}`;
  const template = objectField(specOf(set), 'template');
  const claims = createClaims(cluster, set, name);
  const labels = {
    [HASH_LABEL]: hash,
    'statefulset.kubernetes.io/pod-name': name,
    'apps.kubernetes.io/pod-index': String(ordinal),
  };
  const own = listField(objectField(template, 'spec'), 'volumes');
  const volumes = own.filter((one) => !claims.some((claim) => claim.name === one['name']));
  const spec = {
    hostname: name,
    volumes: [
      ...volumes,
      ...claims.map(({ name: volume, claimName }) => ({
        name: volume,
        persistentVolumeClaim: { claimName },
      })),
    ],
  };
  const pod = podFromTemplate(set, template, { metadata: { name, labels }, spec });
  cluster.create(PODS, pod, namespace);
}

interface ClaimOfPod {
  readonly name: string;
  readonly claimName: string;
}

/** Claims outlive their pod: the next pod of the same ordinal uses them again. */
function createClaims(
  cluster: ControllerContext,
  set: SimObject,
  podName: string,
): readonly ClaimOfPod[] {
  const { namespace = '' } = set.metadata;
  return listField(specOf(set), 'volumeClaimTemplates').map((template: JsonObject) => {
    const metadata = objectField(template, 'metadata');
    const name = textField(metadata, 'name');
    const claimName = `${name}-${podName}`;
    if (cluster.find(CLAIMS, namespace, claimName) === undefined) {
      const body = {
        metadata: { ...metadata, name: claimName },
        spec: objectField(template, 'spec'),
      };
      cluster.create(CLAIMS, body, namespace);
    }
    return { name, claimName };
  });
}
