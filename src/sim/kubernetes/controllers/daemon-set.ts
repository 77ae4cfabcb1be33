// SPDX-License-Identifier: Apache-2.0
// One pod per node that matches a DaemonSet. The pods are bound by the scheduler: their affinity names the node.
import type { Node } from '../../../model/node.ts';
import { tolerates } from '../../../model/taints.ts';
import {
  isTerminating,
  type JsonObject,
  labelsOf,
  listField,
  objectField,
  type SimObject,
  specOf,
  textField,
} from '../storage/objects.ts';
import { DAEMON_SETS, NODES, PODS } from '../storage/resources.ts';
import {
  type Controller,
  type ControllerContext,
  isFinished,
  isReady,
  podFromTemplate,
  podsByController,
  resolvePercentage,
  templateHash,
} from './controller.ts';
import { matchesNodeRules, toNode, toPod } from './kubernetes-model.ts';

const HASH_LABEL = 'controller-revision-hash';
const ALWAYS_TOLERATED = [
  ['not-ready', 'NoExecute'],
  ['unreachable', 'NoExecute'],
  ['disk-pressure', 'NoSchedule'],
  ['memory-pressure', 'NoSchedule'],
  ['pid-pressure', 'NoSchedule'],
  ['unschedulable', 'NoSchedule'],
] as const;

export const daemonSetController: Controller = {
  name: 'daemonset-controller',
  watches: [DAEMON_SETS, NODES, PODS],
  sync(cluster) {
    const pods = podsByController(cluster);
    cluster.forEach(
      cluster.list(DAEMON_SETS).filter((one) => !isTerminating(one)),
      (set) => syncDaemonSet(cluster, set, pods.get(set.metadata.uid) ?? []),
    );
    return undefined;
  },
};

function syncDaemonSet(
  cluster: ControllerContext,
  set: SimObject,
  owned: readonly SimObject[],
): void {
  const template = objectField(specOf(set), 'template');
  const hash = templateHash(template);
  const live = owned.filter((pod) => !isTerminating(pod));
  const byNode = Map.groupBy(live, targetNode);
  const wanted = cluster
    .list(NODES)
    .map(toNode)
    .filter((node) => node !== undefined)
    .map((node) => ({ node, fit: judgeNode(set, node) }));
  for (const { node, fit } of wanted) {
    const [pod, ...others] = byNode.get(node.name) ?? [];
    for (const other of others) cluster.delete(PODS, other);
    if (pod === undefined) {
      if (fit === 'run') createPod(cluster, set, { nodeName: node.name, hash });
    } else if (fit === 'neither' || isFinished(pod)) cluster.delete(PODS, pod);
  }
  replaceOutdated(cluster, set, { live, hash });
  reportStatus(cluster, set, { live, hash, desired: wanted.filter(isWanted).length });
}

function isWanted({ fit }: { readonly fit: NodeFit }): boolean {
  return fit === 'run';
}

/** `run`: a pod belongs there. `keep`: none is created, an existing one stays. */
type NodeFit = 'run' | 'keep' | 'neither';

function judgeNode(set: SimObject, node: Node): NodeFit {
  const template = objectField(specOf(set), 'template');
  const pod = toPod({ ...set, ...template, metadata: set.metadata, spec: daemonSpec(template) });
  if (pod === undefined || !matchesNodeRules(pod, node)) return 'neither';
  const repelling = node.taints.filter(
    (taint) =>
      taint.effect !== 'PreferNoSchedule' && !pod.tolerations.some((one) => tolerates(one, taint)),
  );
  if (repelling.some(({ effect }) => effect === 'NoExecute')) return 'neither';
  return repelling.length === 0 ? 'run' : 'keep';
}

function daemonSpec(template: JsonObject): JsonObject {
  const spec = objectField(template, 'spec');
  const network =
    spec['hostNetwork'] === true ? ([['network-unavailable', 'NoSchedule']] as const) : [];
  const added = [...ALWAYS_TOLERATED, ...network].map(([key, effect]) => ({
    key: `node.kubernetes.io/${key}`,
    operator: 'Exists',
    effect,
  }));
  return { ...spec, tolerations: [...listField(spec, 'tolerations'), ...added] };
}

function createPod(
  cluster: ControllerContext,
  set: SimObject,
  { nodeName, hash }: { readonly nodeName: string; readonly hash: string },
): void {
  const template = objectField(specOf(set), 'template');
  const { name, namespace = '' } = set.metadata;
  const metadata = { generateName: `${name}-`, labels: { [HASH_LABEL]: hash } };
  const spec = withNodeName(daemonSpec(template), nodeName);
  cluster.create(PODS, podFromTemplate(set, template, { metadata, spec }), namespace);
}

const REQUIRED = 'requiredDuringSchedulingIgnoredDuringExecution';

function withNodeName(spec: JsonObject, nodeName: string): JsonObject {
  const affinity = objectField(spec, 'affinity');
  const matchFields = [{ key: 'metadata.name', operator: 'In', values: [nodeName] }];
  const own = objectField(affinity, 'nodeAffinity');
  const nodeAffinity = { ...own, [REQUIRED]: { nodeSelectorTerms: [{ matchFields }] } };
  return { ...spec, affinity: { ...affinity, nodeAffinity } };
}

/** The node that the pod runs on or is meant for. */
function targetNode(pod: SimObject): string {
  const spec = specOf(pod);
  const bound = textField(spec, 'nodeName');
  if (bound !== '') return bound;
  const required = objectField(
    objectField(objectField(spec, 'affinity'), 'nodeAffinity'),
    REQUIRED,
  );
  const [term] = listField(required, 'nodeSelectorTerms');
  const [requirement] = listField(term, 'matchFields');
  const values = requirement?.['values'];
  const [name] = Array.isArray(values) ? values : [];
  return typeof name === 'string' ? name : '';
}

interface DaemonPods {
  readonly live: readonly SimObject[];
  readonly hash: string;
}

/** A rolling update deletes pods of an older template, at most `maxUnavailable` at a time. */
function replaceOutdated(
  cluster: ControllerContext,
  set: SimObject,
  { live, hash }: DaemonPods,
): void {
  const strategy = objectField(specOf(set), 'updateStrategy');
  if (strategy['type'] !== 'RollingUpdate') return;
  const { maxUnavailable = 1 } = objectField(strategy, 'rollingUpdate');
  const limit = Math.max(1, resolvePercentage(maxUnavailable, live.length, 'up'));
  const outdated = live.filter((pod) => labelsOf(pod)[HASH_LABEL] !== hash);
  const unready = live.filter((pod) => !isReady(pod)).length;
  for (const pod of outdated.slice(0, Math.max(0, limit - unready))) cluster.delete(PODS, pod);
}

function reportStatus(
  cluster: ControllerContext,
  set: SimObject,
  { live, hash, desired }: DaemonPods & { readonly desired: number },
): void {
  const ready = live.filter(isReady).length;
  cluster.updateStatus(DAEMON_SETS, set, {
    observedGeneration: set.metadata['generation'] ?? 1,
    desiredNumberScheduled: desired,
    currentNumberScheduled: live.length,
    updatedNumberScheduled: live.filter((pod) => labelsOf(pod)[HASH_LABEL] === hash).length,
    numberReady: ready,
    numberAvailable: ready,
    numberUnavailable: Math.max(0, desired - ready),
    numberMisscheduled: 0,
  });
}
