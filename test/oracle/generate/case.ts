// SPDX-License-Identifier: Apache-2.0
// Generates a random cluster with pending pods.

import { type Case, type Cluster, emptyCluster, type Pod } from '../objects.ts';
import { Random } from '../random.ts';
import { namespaces, podIdentity } from './labels.ts';
import {
  addComparison,
  addHostPorts,
  addNodeAffinity,
  addNodeFeature,
  addNodeName,
  addNodeSelector,
  addTolerations,
} from './node-rules.ts';
import { makeTiny as makeNodeTiny, nodes } from './nodes.ts';
import { addAffinity, addPreference, addSpread, addSpreadPolicy } from './pod-rules.ts';
import {
  addDevices,
  addEphemeralStorage,
  addInitContainers,
  addOverhead,
  addPodLevelRequests,
  addResize,
  containers,
  makeTiny as makePodTiny,
} from './requests.ts';
import { addStorage } from './storage.ts';
import {
  addAttachedVolumes,
  addBoundVolume,
  addExclusiveClaim,
  addInlineDisk,
  addUnboundClaim,
  addUnusableClaim,
  type PodContext,
} from './volumes.ts';

interface Trait {
  /** Probability for a running pod. */
  readonly running: number;
  /** Weight for pending pods, which get only a few traits: with all of them a pod would fit nowhere. */
  readonly pending: number;
  readonly add: (context: PodContext) => void;
}

const INIT = ['plain', 'plain', 'sidecar'] as const;
const SIDECARS = ['sidecar', 'sidecar', 'plain'] as const;

const TRAITS: readonly Trait[] = [
  { running: 0.03, pending: 5, add: ({ random, pod }) => addInitContainers(random, pod, INIT) },
  { running: 0.04, pending: 5, add: ({ random, pod }) => addInitContainers(random, pod, SIDECARS) },
  { running: 0.03, pending: 6, add: ({ random, pod }) => addOverhead(random, pod) },
  { running: 0.02, pending: 4, add: ({ random, pod }) => addPodLevelRequests(random, pod) },
  { running: 0.2, pending: 5, add: ({ random, pod }) => addEphemeralStorage(random, pod) },
  { running: 0.08, pending: 6, add: ({ random, pod }) => addDevices(random, pod) },
  { running: 0.12, pending: 0, add: ({ random, pod }) => addResize(random, pod) },
  { running: 0, pending: 12, add: ({ random, pod }) => addTolerations(random, pod) },
  { running: 0, pending: 14, add: addComparison },
  { running: 0.05, pending: 8, add: ({ random, pod }) => addNodeFeature(random, pod) },
  { running: 0, pending: 5, add: ({ random, pod }) => addNodeSelector(random, pod) },
  { running: 0, pending: 7, add: ({ random, pod }) => addNodeAffinity(random, pod) },
  { running: 0, pending: 2, add: ({ random, pod }) => addNodeName(random, pod) },
  { running: 0.25, pending: 8, add: ({ random, pod }) => addHostPorts(random, pod) },
  {
    running: 0.02,
    pending: 12,
    add: ({ random, pod }) => addAffinity(random, pod, 'podAffinity'),
  },
  {
    running: 0.05,
    pending: 12,
    add: ({ random, pod }) => addAffinity(random, pod, 'podAntiAffinity'),
  },
  { running: 0.03, pending: 1, add: ({ random, pod }) => addPreference(random, pod) },
  { running: 0, pending: 30, add: ({ random, pod }) => addSpread(random, pod) },
  { running: 0, pending: 40, add: addSpreadPolicy },
  { running: 0.02, pending: 5, add: (context) => addBoundVolume(context, 'nodes') },
  { running: 0.02, pending: 5, add: (context) => addBoundVolume(context, 'zone') },
  { running: 0.15, pending: 8, add: addAttachedVolumes },
  { running: 0.02, pending: 9, add: addUnboundClaim },
  { running: 0.02, pending: 2, add: addUnusableClaim },
  { running: 0, pending: 4, add: addExclusiveClaim },
  { running: 0.3, pending: 12, add: addInlineDisk },
];

function newPod(random: Random, name: string, isCrowd: boolean): Pod {
  const size = random.chance(0.05) ? 'large' : 'small';
  return {
    metadata: { name, uid: `uid-${name}`, ...podIdentity(random, isCrowd) },
    spec: { containers: containers(random, size) },
  };
}

function addRunningTraits(context: PodContext): void {
  for (const trait of TRAITS) if (context.random.chance(trait.running)) trait.add(context);
}

const WEIGHTED = TRAITS.flatMap((trait) => Array.from({ length: trait.pending }, () => trait));

function addPendingTraits(context: PodContext): void {
  const { random } = context;
  const chosen = new Set(
    random.times(random.pick([0, 0, 1, 1, 1, 2, 2, 3]), () => random.pick(WEIGHTED)),
  );
  for (const trait of TRAITS) if (chosen.has(trait)) trait.add(context);
}

// Few pods run on nodes with restrictions, so domains of such nodes have fewer pods.
function pickNode(random: Random, { nodes: all }: Cluster): string {
  const open = all.filter(({ spec }) => spec.taints === undefined && spec.unschedulable !== true);
  return random.pick(open.length > 0 && random.chance(0.9) ? open : all).metadata.name;
}

interface Running {
  readonly name: string;
  readonly isCrowd: boolean;
}

function addRunning(random: Random, cluster: Cluster, { name, isCrowd }: Running): void {
  const pod = newPod(random, name, isCrowd);
  pod.status = { phase: 'Running' };
  cluster.pods.push(pod);
  if (!isCrowd || random.chance(0.2)) addRunningTraits({ random, cluster, pod });
  pod.spec.nodeName = pickNode(random, cluster);
  if (random.chance(0.12)) pod.metadata.deletionTimestamp = '2026-01-01T00:00:00Z';
  if (random.chance(0.08)) pod.status.phase = random.pick(['Succeeded', 'Failed']);
}

function addPriority(random: Random, { spec }: Pod): void {
  if (random.chance(0.6)) spec.priority = random.pick([0, 10, -10]);
}

/** A pod for which the scheduler is preempting others on a node. It is mostly a rival of the pending pods. */
function addNominated(random: Random, cluster: Cluster, { name, isCrowd }: Running): void {
  const pod = newPod(random, name, isCrowd);
  cluster.pods.push(pod);
  addRunningTraits({ random, cluster, pod });
  if (random.chance(0.3)) addAffinity(random, pod, 'podAntiAffinity');
  if (random.chance(0.2)) addHostPorts(random, pod);
  addPriority(random, pod);
  if (random.chance(0.3)) makeLarge(pod);
  if (random.chance(0.15)) pod.metadata.deletionTimestamp = '2026-01-01T00:00:00Z';
  pod.status = { phase: 'Pending', nominatedNodeName: pickNode(random, cluster) };
}

function makeLarge({ spec }: Pod): void {
  const [first] = spec.containers;
  if (first !== undefined) first.resources = { requests: { cpu: '14', memory: '25Gi' } };
}

// Before the pending pods: the scheduler's quirks with nominated pods need constraints on both sides.
function addNominatedPods(random: Random, cluster: Cluster, isCrowd: boolean): void {
  if (!random.chance(0.4)) return;
  const count = random.int(1, 4);
  for (let index = 0; index < count; index += 1)
    addNominated(random, cluster, { name: `nominated${index}`, isCrowd });
}

// One of the pending pods is itself nominated; it does not count against itself.
function nominateOne(random: Random, { cluster, pending }: Case): void {
  const copy = structuredClone(random.pick(pending));
  delete copy.spec.nodeName;
  copy.status = { nominatedNodeName: pickNode(random, cluster) };
  cluster.pods.push(copy);
}

function emptySpreadSelector(random: Random, { spec }: Pod): void {
  for (const constraint of spec.topologySpreadConstraints ?? [])
    if (random.chance(0.5)) {
      constraint.labelSelector = {};
      delete constraint.matchLabelKeys;
    }
}

const GATES: readonly NonNullable<Case['featureGates']>[] = [
  { TaintTolerationComparisonOperators: true },
  { NodeDeclaredFeatures: false },
  { TaintTolerationComparisonOperators: true, NodeDeclaredFeatures: false },
];

export function randomCase(seed: number): Case {
  const random = new Random(seed);
  const cluster = { ...emptyCluster(), nodes: nodes(random), namespaces: namespaces(random) };
  addStorage(random, cluster);
  const isCrowd = random.chance(0.4);
  const running = isCrowd ? random.int(20, 50) : random.int(6, 22);
  for (let index = 0; index < running; index += 1)
    addRunning(random, cluster, { name: `r${index}`, isCrowd });
  addNominatedPods(random, cluster, isCrowd);
  const pending = random.times(4, (index) => {
    const pod = newPod(random, `p${index}`, isCrowd);
    addPendingTraits({ random, cluster, pod });
    addPriority(random, pod);
    if (random.chance(0.1)) emptySpreadSelector(random, pod);
    return pod;
  });
  if (random.chance(0.1)) nominateOne(random, { cluster, pending });
  if (random.chance(0.03)) makeTiny(random, { cluster, pending });
  const featureGates = random.chance(0.45) ? { featureGates: random.pick(GATES) } : {};
  return { cluster, pending, ...featureGates };
}

function makeTiny(random: Random, { cluster, pending }: Case): void {
  for (const one of cluster.nodes) makeNodeTiny(random, one);
  for (const one of [...cluster.pods, ...pending]) makePodTiny(random, one);
}

/** Additional pending pods. */
export function randomPods(random: Random, cluster: Cluster, count: number): Pod[] {
  return random.times(count, (index) => {
    const pod = newPod(random, `q${index}`, false);
    addPendingTraits({ random, cluster, pod });
    return pod;
  });
}
