// SPDX-License-Identifier: Apache-2.0
// Moves a Deployment to the ReplicaSet of its current template, within maxSurge and maxUnavailable.
import {
  isTerminating,
  type JsonObject,
  numberField,
  objectField,
  type SimObject,
  specOf,
  statusOf,
  textField,
  textMap,
} from '../storage/objects.ts';
import { DEPLOYMENTS, REPLICA_SETS } from '../storage/resources.ts';
import {
  type Controller,
  type ControllerContext,
  controllerReference,
  controllerUid,
  resolvePercentage,
  templateHash,
  withCondition,
} from './controller.ts';

const HASH_LABEL = 'pod-template-hash';
const REVISION = 'deployment.kubernetes.io/revision';

export const deploymentController: Controller = {
  name: 'deployment-controller',
  watches: [DEPLOYMENTS, REPLICA_SETS],
  sync(cluster) {
    const sets = Map.groupBy(cluster.list(REPLICA_SETS), controllerUid);
    cluster.forEach(
      cluster.list(DEPLOYMENTS).filter((one) => !isTerminating(one)),
      (deployment) => syncDeployment(cluster, deployment, sets.get(deployment.metadata.uid) ?? []),
    );
    return undefined;
  },
};

interface Rollout {
  readonly desired: number;
  readonly current: SimObject;
  readonly old: readonly SimObject[];
}

function syncDeployment(
  cluster: ControllerContext,
  deployment: SimObject,
  owned: readonly SimObject[],
): void {
  const template = objectField(specOf(deployment), 'template');
  const hash = templateHash(template);
  const current = owned.find((set) => textMap(set.metadata, 'labels')[HASH_LABEL] === hash);
  const old = owned.filter((set) => set !== current);
  const desired = numberField(specOf(deployment), 'replicas', 1);
  if (current === undefined) {
    createReplicaSet(cluster, deployment, { hash, old });
  } else {
    const rollout = { desired, current, old };
    const isRecreate =
      textField(objectField(specOf(deployment), 'strategy'), 'type') === 'Recreate';
    if (isRecreate) recreate(cluster, rollout);
    else rollOut(cluster, deployment, rollout);
    deleteOldSets(cluster, deployment, old);
  }
  reportStatus(cluster, deployment, { desired, current, owned });
}

function createReplicaSet(
  cluster: ControllerContext,
  deployment: SimObject,
  { hash, old }: { readonly hash: string; readonly old: readonly SimObject[] },
): void {
  const spec = specOf(deployment);
  const template = objectField(spec, 'template');
  const templateMeta = objectField(template, 'metadata');
  const labels = { ...objectField(templateMeta, 'labels'), [HASH_LABEL]: hash };
  const selector = objectField(spec, 'selector');
  const revision = 1 + Math.max(0, ...old.map(revisionOf));
  const { name, namespace = '' } = deployment.metadata;
  const annotations = { [REVISION]: String(revision) };
  cluster.create(
    REPLICA_SETS,
    {
      metadata: {
        name: `${name}-${hash}`,
        labels,
        annotations,
        ownerReferences: [controllerReference(deployment)],
      },
      spec: {
        // The next sync scales it.
        replicas: 0,
        selector: {
          ...selector,
          matchLabels: { ...objectField(selector, 'matchLabels'), [HASH_LABEL]: hash },
        },
        template: { ...template, metadata: { ...templateMeta, labels } },
      },
    },
    namespace,
  );
  cluster.patch(DEPLOYMENTS, deployment, { metadata: { annotations } });
}

function revisionOf(set: SimObject): number {
  return Number(textMap(set.metadata, 'annotations')[REVISION] ?? 0);
}

function replicasOf(set: SimObject): number {
  return numberField(specOf(set), 'replicas');
}

function availableOf(set: SimObject): number {
  return numberField(statusOf(set), 'availableReplicas');
}

function sum(sets: readonly SimObject[], count: (set: SimObject) => number): number {
  return sets.reduce((total, set) => total + count(set), 0);
}

function scaleSet(cluster: ControllerContext, set: SimObject, replicas: number): void {
  if (replicasOf(set) !== replicas) cluster.patch(REPLICA_SETS, set, { spec: { replicas } });
}

function recreate(cluster: ControllerContext, { desired, current, old }: Rollout): void {
  for (const set of old) scaleSet(cluster, set, 0);
  const isEnded = sum(old, (set) => numberField(statusOf(set), 'replicas')) === 0;
  if (isEnded) scaleSet(cluster, current, desired);
}

function rollOut(cluster: ControllerContext, deployment: SimObject, rollout: Rollout): void {
  const { desired, current, old } = rollout;
  const update = objectField(objectField(specOf(deployment), 'strategy'), 'rollingUpdate');
  const surge = resolvePercentage(update['maxSurge'], desired, 'up');
  const given = resolvePercentage(update['maxUnavailable'], desired, 'down');
  const maxUnavailable = surge === 0 && given === 0 ? 1 : given;
  const total = sum([current, ...old], replicasOf);
  const own = replicasOf(current);
  const limit = Math.max(0, desired + surge - total);
  const next = own > desired ? desired : Math.min(desired, own + limit);
  if (next !== own) {
    scaleSet(cluster, current, next);
    return;
  }
  const minAvailable = desired - maxUnavailable;
  const unavailable = Math.max(0, own - availableOf(current));
  let removable = total - minAvailable - unavailable;
  for (const set of old) {
    const unhealthy = replicasOf(set) - availableOf(set);
    const spare = sum([current, ...old], availableOf) - minAvailable;
    const count = Math.min(removable, Math.max(unhealthy, Math.min(replicasOf(set), spare)));
    if (count <= 0) continue;
    scaleSet(cluster, set, Math.max(0, replicasOf(set) - count));
    removable -= count;
    return;
  }
}

function deleteOldSets(
  cluster: ControllerContext,
  deployment: SimObject,
  old: readonly SimObject[],
): void {
  const limit = numberField(specOf(deployment), 'revisionHistoryLimit', 10);
  const empty = old.filter(
    (set) => replicasOf(set) === 0 && numberField(statusOf(set), 'replicas') === 0,
  );
  const byAge = empty.toSorted((one, other) => revisionOf(one) - revisionOf(other));
  for (const set of byAge.slice(0, Math.max(0, empty.length - limit))) {
    cluster.delete(REPLICA_SETS, set);
  }
}

function reportStatus(
  cluster: ControllerContext,
  deployment: SimObject,
  state: {
    readonly desired: number;
    readonly current: SimObject | undefined;
    readonly owned: readonly SimObject[];
  },
): void {
  const { desired, current, owned } = state;
  const now = cluster.clock.now();
  const count = (key: string) => sum(owned, (set) => numberField(statusOf(set), key));
  const available = count('availableReplicas');
  const update = objectField(objectField(specOf(deployment), 'strategy'), 'rollingUpdate');
  const allowed = resolvePercentage(update['maxUnavailable'] ?? 0, desired, 'down');
  const isAvailable = available >= desired - allowed;
  const fields: JsonObject = {
    observedGeneration: deployment.metadata['generation'] ?? 1,
    replicas: count('replicas'),
    updatedReplicas: current === undefined ? 0 : numberField(statusOf(current), 'replicas'),
    readyReplicas: count('readyReplicas'),
    availableReplicas: available,
    unavailableReplicas: Math.max(0, desired - available),
    conditions: withCondition(
      deployment,
      {
        type: 'Available',
        isTrue: isAvailable,
        reason: isAvailable ? 'MinimumReplicasAvailable' : 'MinimumReplicasUnavailable',
        message: `Deployment ${isAvailable ? 'has' : 'does not have'} minimum availability.`,
      },
      now,
    ),
  };
  cluster.updateStatus(DEPLOYMENTS, deployment, fields);
}
