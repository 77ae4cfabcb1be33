// SPDX-License-Identifier: Apache-2.0
// Watches the heartbeats of nodes, taints nodes that are not ready, unreachable or cordoned, and deletes the pods that
// do not tolerate these taints.
import { type Taint, tolerates } from '../../../model/taints.ts';
import {
  conditionOf,
  formatTime,
  isEqualJson,
  isTerminating,
  type JsonObject,
  listField,
  type SimObject,
  specOf,
  statusOf,
  textField,
  textMap,
} from '../storage/objects.ts';
import { LEASES, NODES, PODS } from '../storage/resources.ts';
import { type Controller, type ControllerContext, isFinished, isReady } from './controller.ts';
import { FAKE_NODE_ANNOTATION } from './fake-kubelet.ts';
import { toPod } from './kubernetes-model.ts';

const MONITOR_PERIOD_MS = 5_000;
const NOT_READY = 'node.kubernetes.io/not-ready';
const UNREACHABLE = 'node.kubernetes.io/unreachable';
const UNSCHEDULABLE = 'node.kubernetes.io/unschedulable';
const MANAGED_TAINTS = [NOT_READY, UNREACHABLE, UNSCHEDULABLE];
const EFFECTS = ['NoSchedule', 'NoExecute'] as const;

interface Heartbeat {
  readonly version: string;
  readonly seenAt: number;
}

/** `graceMs`: time without a heartbeat until a node is unreachable. */
export function createNodeLifecycle(graceMs: number): Controller {
  const heartbeats = new Map<string, Heartbeat>();
  return {
    name: 'node-lifecycle-controller',
    watches: [NODES, PODS],
    sync(cluster) {
      cluster.forEach(cluster.list(NODES), (node) => {
        const silentMs = measureSilence(cluster, node, heartbeats);
        const isFake = textMap(node.metadata, 'annotations')[FAKE_NODE_ANNOTATION] !== undefined;
        const seen = silentMs >= graceMs && !isFake ? markUnknown(cluster, node) : node;
        updateTaints(cluster, seen);
      });
      evictPods(cluster);
      return cluster.clock.monotonic() + MONITOR_PERIOD_MS;
    },
  };
}

/** Milliseconds since the lease was renewed, by this controller's own clock: clocks of nodes are not trusted. */
function measureSilence(
  cluster: ControllerContext,
  { metadata: { name, uid } }: SimObject,
  heartbeats: Map<string, Heartbeat>,
): number {
  const lease = cluster.find(LEASES, 'kube-node-lease', name);
  const version = lease?.metadata.resourceVersion ?? '';
  const now = cluster.clock.monotonic();
  const known = heartbeats.get(uid);
  if (known?.version === version) return now - known.seenAt;
  heartbeats.set(uid, { version, seenAt: now });
  return 0;
}

function markUnknown(cluster: ControllerContext, node: SimObject): SimObject {
  const conditions = listField(statusOf(node), 'conditions');
  const ready = conditionOf(node, 'Ready') ?? { type: 'Ready' };
  if (ready['status'] === 'Unknown') return node;
  const known = [...conditions.filter(({ type }) => type !== 'Ready'), ready];
  const changed = known.map((condition) => ({
    ...condition,
    status: 'Unknown',
    reason: 'NodeStatusUnknown',
    message: 'Kubelet stopped posting node status.',
    lastTransitionTime: formatTime(cluster.clock.now()),
  }));
  cluster.emit('node-controller', node, {
    type: 'Normal',
    reason: 'NodeNotReady',
    note: `Node ${node.metadata.name} status is now: NodeNotReady`,
  });
  return cluster.updateStatus(NODES, node, { conditions: changed });
}

function updateTaints(cluster: ControllerContext, node: SimObject): void {
  const ready = conditionOf(node, 'Ready')?.['status'] ?? 'False';
  const before = listField(specOf(node), 'taints');
  const timeAdded = formatTime(cluster.clock.now());
  const wanted = wantedTaints(ready, specOf(node)['unschedulable'] === true).map((taint) => {
    const same = before.find((one) => one['key'] === taint.key && one['effect'] === taint.effect);
    return same ?? (taint.effect === 'NoExecute' ? { ...taint, timeAdded } : taint);
  });
  const others = before.filter((one) => !MANAGED_TAINTS.includes(textField(one, 'key')));
  const isSame =
    before.length === others.length + wanted.length &&
    wanted.every((taint) => before.some((one) => isEqualJson(one, taint)));
  if (!isSame) cluster.patch(NODES, node, { spec: { taints: [...others, ...wanted] } });
}

function wantedTaints(ready: unknown, isCordoned: boolean): readonly (JsonObject & TaintRef)[] {
  const key = ready === 'Unknown' ? UNREACHABLE : NOT_READY;
  const lost = ready === 'True' ? [] : EFFECTS.map((effect) => ({ key, effect }));
  return [...lost, ...(isCordoned ? [{ key: UNSCHEDULABLE, effect: 'NoSchedule' as const }] : [])];
}

interface TaintRef {
  readonly key: string;
  readonly effect: 'NoSchedule' | 'NoExecute';
}

function evictPods(cluster: ControllerContext): void {
  const nodes = new Map(cluster.list(NODES).map((node) => [node.metadata.name, node]));
  const pods = cluster.list(PODS).filter((pod) => !isFinished(pod));
  cluster.forEach(pods, (pod) => {
    const node = nodes.get(textField(specOf(pod), 'nodeName'));
    if (node === undefined) return;
    const isNodeReady = conditionOf(node, 'Ready')?.['status'] === 'True';
    const shown = isNodeReady ? pod : markNotReady(cluster, pod);
    if (!isTerminating(shown) && isEvictionDue(cluster, node, shown)) {
      cluster.emit('taint-eviction-controller', shown, {
        type: 'Normal',
        reason: 'TaintManagerEviction',
        note: `Marking for deletion Pod ${shown.metadata.namespace}/${shown.metadata.name}`,
      });
      cluster.delete(PODS, shown);
    }
  });
}

/** The pod of a lost node is not ready, so that its budget and its controller do not count it. */
function markNotReady(cluster: ControllerContext, pod: SimObject): SimObject {
  if (!isReady(pod)) return pod;
  const now = formatTime(cluster.clock.now());
  const conditions = listField(statusOf(pod), 'conditions').map((one) =>
    one['type'] === 'Ready' ? { ...one, status: 'False', lastTransitionTime: now } : one,
  );
  return cluster.updateStatus(PODS, pod, { conditions });
}

function isEvictionDue(cluster: ControllerContext, node: SimObject, pod: SimObject): boolean {
  const tolerations = toPod(pod)?.tolerations ?? [];
  return listField(specOf(node), 'taints').some((source) => {
    if (source['effect'] !== 'NoExecute') return false;
    const taint: Taint = {
      key: textField(source, 'key'),
      value: textField(source, 'value'),
      effect: 'NoExecute',
    };
    const matching = tolerations.filter((one) => tolerates(one, taint));
    if (matching.length === 0) return true;
    const limits = matching.flatMap(({ seconds }) => seconds ?? []);
    if (limits.length < matching.length) return false;
    const addedAt = Date.parse(textField(source, 'timeAdded'));
    return cluster.clock.now() >= addedAt + Math.min(...limits) * 1_000;
  });
}
