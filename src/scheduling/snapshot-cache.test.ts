// SPDX-License-Identifier: Apache-2.0
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { daemonSetFromKubernetes } from '../model/daemon-set.ts';
import type { Labels } from '../model/labels.ts';
import type { Node } from '../model/node.ts';
import { persistentVolumeFromKubernetes } from '../model/persistent-volume.ts';
import { type Pod, podKey } from '../model/pod.ts';
import { storageClassFromKubernetes } from '../model/storage-class.ts';
import { NO_STORAGE, type StorageObjects } from '../model/storage-objects.ts';
import { volumeClaimFromKubernetes } from '../model/volume-claim.ts';
import { checkFit } from './check-fit.ts';
import { simulateDrain } from './drain-simulation.ts';
import { pack } from './pack/pack.ts';
import { Snapshot } from './snapshot.ts';
import { SnapshotCache, type SnapshotChanges } from './snapshot-cache.ts';
import {
  aNode,
  aPod,
  HOSTNAME,
  type PodOptions,
  select,
  unwrap,
  ZONE,
} from './testing/builders.ts';
import { aPool, zones } from './testing/offers.ts';
import { aClaim, aClass, aVolume, boundClaim, inZone, using } from './testing/storage.ts';
import { withNodes, withoutNodes, withPod } from './what-if.ts';

/** All objects of a cluster, changed step by step. */
class Objects {
  readonly nodes = new Map<string, Node>();
  readonly pods = new Map<string, Pod>();
  namespaces: ReadonlyMap<string, Labels> = new Map();
  storage: StorageObjects = NO_STORAGE;
  daemonSets: NonNullable<SnapshotChanges['daemonSets']> = [];
  #changedNodes = new Map<string, Node | undefined>();
  #changedPods = new Map<string, Pod | undefined>();
  #changedRest: SnapshotChanges = {};

  putNode(node: Node): void {
    this.nodes.set(node.name, node);
    this.#changedNodes.set(node.name, node);
  }

  removeNode(name: string): void {
    this.nodes.delete(name);
    this.#changedNodes.set(name, undefined);
  }

  putPod(pod: Pod): void {
    this.pods.set(podKey(pod), pod);
    this.#changedPods.set(podKey(pod), pod);
  }

  removePod(key: string): void {
    this.pods.delete(key);
    this.#changedPods.set(key, undefined);
  }

  set(rest: Pick<SnapshotChanges, 'namespaces' | 'storage' | 'daemonSets'>): void {
    Object.assign(this, rest);
    this.#changedRest = { ...this.#changedRest, ...rest };
  }

  takeChanges(): SnapshotChanges {
    const changes = {
      ...this.#changedRest,
      nodes: this.#changedNodes,
      pods: this.#changedPods,
    };
    this.#changedNodes = new Map();
    this.#changedPods = new Map();
    this.#changedRest = {};
    return changes;
  }

  /** Built from scratch, with the nodes in the order of the other snapshot. */
  snapshot(order: readonly Node[]): Snapshot {
    return Snapshot.of({
      nodes: order.map(({ name }) => this.nodes.get(name) ?? expect.unreachable(name)),
      pods: [...this.pods.values()],
      namespaces: this.namespaces,
      storage: this.storage,
      daemonSets: this.daemonSets,
    });
  }
}

const APPS = ['a', 'b', 'c'] as const;
const ZONES = ['z1', 'z2'] as const;
const NODES = ['n1', 'n2', 'n3', 'n4'] as const;
const NAMESPACES = ['default', 'gold', 'tin'] as const;

const SPECS: Readonly<Record<string, (app: string) => NonNullable<PodOptions['spec']>>> = {
  plain: () => ({}),
  apart: (app) => ({
    affinity: {
      podAntiAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: [
          { topologyKey: HOSTNAME, labelSelector: select({ app }) },
        ],
      },
    },
  }),
  together: (app) => ({
    affinity: {
      podAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: [
          { topologyKey: ZONE, labelSelector: select({ app }) },
        ],
      },
    },
  }),
  'apart from gold': (app) => ({
    affinity: {
      podAntiAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: [
          {
            topologyKey: ZONE,
            labelSelector: select({ app }),
            namespaceSelector: select({ tier: 'gold' }),
          },
        ],
      },
    },
  }),
  spread: (app) => ({
    topologySpreadConstraints: [
      {
        topologyKey: ZONE,
        maxSkew: 1,
        whenUnsatisfiable: 'DoNotSchedule',
        labelSelector: select({ app }),
      },
    ],
  }),
  tolerant: () => ({ tolerations: [{ key: 'spot', operator: 'Exists' }] }),
  port: () => ({
    containers: [{ name: 'main', ports: [{ hostPort: 80, containerPort: 80 }] }],
  }),
  claim: () => using('data'),
};

const podOptions = fc.record({
  name: fc.constantFrom('p1', 'p2', 'p3', 'p4', 'p5', 'p6', 'p7', 'p8'),
  namespace: fc.constantFrom(...NAMESPACES),
  app: fc.constantFrom(...APPS),
  spec: fc.constantFrom(...Object.keys(SPECS)),
  cpu: fc.constantFrom('100m', '1', '3'),
  on: fc.constantFrom(undefined, undefined, ...NODES, 'unknown'),
  nominated: fc.constantFrom(undefined, undefined, ...NODES),
  terminating: fc.constantFrom(false, false, false, true),
  finished: fc.constantFrom(false, false, false, true),
  controller: fc.constantFrom('ReplicaSet', 'DaemonSet'),
});

type SomePod = typeof podOptions extends fc.Arbitrary<infer P> ? P : never;

type Op =
  | { readonly op: 'node'; readonly name: string; readonly zone: string; readonly variant: number }
  | { readonly op: 'remove-node'; readonly name: string }
  | { readonly op: 'pod'; readonly pod: SomePod }
  | { readonly op: 'remove-pod'; readonly namespace: string; readonly name: string }
  | { readonly op: 'namespaces'; readonly gold: readonly string[] }
  | { readonly op: 'storage'; readonly zone: string | undefined }
  | { readonly op: 'daemon-set'; readonly cpu: string }
  /** Simulates, so that derived snapshots are left over; then updates. */
  | { readonly op: 'update'; readonly isComplete: boolean };

const op: fc.Arbitrary<Op> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      op: fc.constant('node' as const),
      name: fc.constantFrom(...NODES),
      zone: fc.constantFrom(...ZONES),
      variant: fc.nat(2),
    }),
  },
  fc.record({ op: fc.constant('remove-node' as const), name: fc.constantFrom(...NODES) }),
  {
    weight: 8,
    arbitrary: fc.record({ op: fc.constant('pod' as const), pod: podOptions }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      op: fc.constant('remove-pod' as const),
      namespace: fc.constantFrom(...NAMESPACES),
      name: fc.constantFrom('p1', 'p2', 'p3', 'p4'),
    }),
  },
  fc.record({ op: fc.constant('namespaces' as const), gold: fc.subarray([...NAMESPACES]) }),
  fc.record({
    op: fc.constant('storage' as const),
    zone: fc.constantFrom(undefined, 'unbound', ...ZONES),
  }),
  fc.record({ op: fc.constant('daemon-set' as const), cpu: fc.constantFrom('100m', '1') }),
  {
    weight: 3,
    arbitrary: fc.record({ op: fc.constant('update' as const), isComplete: fc.boolean() }),
  },
);

function apply(objects: Objects, change: Exclude<Op, { op: 'update' }>): void {
  switch (change.op) {
    case 'node': {
      const { name, zone, variant } = change;
      const taints = variant === 1 ? [{ key: 'spot', effect: 'NoSchedule' }] : [];
      const allocatable = { cpu: variant === 2 ? '2' : '4' };
      return objects.putNode(aNode({ name, zone, taints, allocatable }));
    }
    case 'remove-node':
      return objects.removeNode(change.name);
    case 'pod':
      return objects.putPod(podOf(change.pod));
    case 'remove-pod':
      return objects.removePod(podKey(change));
    case 'namespaces':
      return objects.set({
        namespaces: new Map(
          NAMESPACES.map((name) => [name, { tier: change.gold.includes(name) ? 'gold' : 'tin' }]),
        ),
      });
    case 'storage':
      return objects.set({ storage: storageIn(change.zone) });
    case 'daemon-set': {
      const resources = { requests: { cpu: change.cpu } };
      const template = { spec: { containers: [{ name: 'main', resources }] } };
      const source = { metadata: { name: 'logs' }, spec: { template } };
      return objects.set({ daemonSets: [unwrap(daemonSetFromKubernetes(source))] });
    }
  }
}

function podOf({ app, on, nominated, finished, spec, ...rest }: SomePod): Pod {
  return aPod({
    ...rest,
    labels: { app },
    ...(on !== undefined && { on }),
    spec: { ...SPECS[spec]?.(app), ...(on !== undefined && { nodeName: on }) },
    status: {
      phase: finished ? 'Succeeded' : 'Pending',
      ...(nominated !== undefined && { nominatedNodeName: nominated }),
    },
  });
}

function storageIn(zone: string | undefined): StorageObjects {
  if (zone === undefined) return NO_STORAGE;
  const isBound = zone !== 'unbound';
  const claim = isBound ? boundClaim('data', 'disk') : aClaim('data');
  const volume = aVolume('disk', isBound ? inZone(zone) : {}, {
    phase: isBound ? 'Bound' : 'Available',
  });
  return {
    ...NO_STORAGE,
    classes: [storageClassFromKubernetes(aClass('local'))],
    claims: [unwrap(volumeClaimFromKubernetes(claim))],
    volumes: [unwrap(persistentVolumeFromKubernetes(volume))],
  };
}

const POOLS = [aPool({ domains: zones(...ZONES) })];

/** Everything that a front end reads from a snapshot. */
function answers(snapshot: Snapshot, pods: readonly Pod[]): unknown {
  const names = snapshot.nodes.map(({ name }) => name);
  const pending = pods.filter(
    ({ nodeName, isFinished, isTerminating }) => nodeName === '' && !isFinished && !isTerminating,
  );
  return {
    nodes: snapshot.nodes,
    podsOn: names.map((name) => snapshot.podsOn(name).map(podKey).toSorted()),
    nominated: new Map(
      [...snapshot.nominated].map(([node, own]) => [node, own.map(podKey).toSorted()] as const),
    ),
    fits: pods.map((pod) => names.map((name) => checkFit(snapshot, pod, name))),
    packing: pack(snapshot, pending, { pools: POOLS }),
    drains: names.map((name) => {
      const drain = simulateDrain(snapshot, [name]);
      if (drain.isPossible) return drain;
      // In the order of the pods on the node.
      const unmovable = drain.unmovable.map(({ pod, nodes }) => [podKey(pod), nodes] as const);
      return { ...drain, unmovable: new Map(unmovable) };
    }),
  };
}

function leaveDerivedSnapshots(snapshot: Snapshot): void {
  const added = withNodes(snapshot, [aNode({ name: 'new', zone: 'z1' })]);
  withPod(added, aPod({ name: 'extra' }), 'new').activate();
  const [first] = snapshot.nodes;
  if (first !== undefined) withoutNodes(snapshot, [first.name]).activate();
}

function checkAgainstScratch(ops: readonly Op[]): void {
  const objects = new Objects();
  const cache = new SnapshotCache();
  for (const change of [...ops, { op: 'update', isComplete: false } as const]) {
    if (change.op !== 'update') {
      apply(objects, change);
      continue;
    }
    leaveDerivedSnapshots(cache.snapshot);
    const changes = objects.takeChanges();
    const snapshot = change.isComplete ? cache.replace(objects) : cache.update(changes);
    const pods = [...objects.pods.values()];
    expect(answers(snapshot, pods)).toEqual(answers(objects.snapshot(snapshot.nodes), pods));
    expect(cache.pending.map(podKey).toSorted()).toEqual(
      pods
        .filter((pod) => pod.nodeName === '' && !pod.isFinished && !pod.isTerminating)
        .map(podKey)
        .toSorted(),
    );
  }
}

describe('SnapshotCache', () => {
  it('answers after any sequence of changes like a snapshot built from scratch', () => {
    fc.assert(
      fc.property(fc.array(op, { minLength: 5, maxLength: 40 }), (ops) => checkAgainstScratch(ops)),
      { numRuns: 200 },
    );
  });

  it('places pods that were bound to a node before the node was known', () => {
    const cache = new SnapshotCache();
    const pod = aPod({ on: 'n1', cpu: '3' });
    cache.update({ pods: new Map([[podKey(pod), pod]]) });
    const snapshot = cache.update({ nodes: new Map([['n1', aNode({ name: 'n1' })]]) });
    expect(snapshot.podsOn('n1')).toEqual([pod]);
    expect(checkFit(snapshot, aPod({ name: 'q', cpu: '2' }), 'n1').fits).toBe(false);
    expect(cache.pending).toEqual([]);
  });

  it('keeps the pods of a node that is replaced under the same name', () => {
    const cache = new SnapshotCache();
    const pod = aPod({ on: 'n1', cpu: '3' });
    cache.update({
      nodes: new Map([['n1', aNode({ name: 'n1' })]]),
      pods: new Map([[podKey(pod), pod]]),
    });
    const labels = { tier: 'new' };
    const snapshot = cache.update({ nodes: new Map([['n1', aNode({ name: 'n1', labels })]]) });
    expect(snapshot.nodes).toMatchObject([{ labels }]);
    expect(snapshot.podsOn('n1')).toEqual([pod]);
  });

  it('keeps the objects of pods and nodes in which the scheduler sees no difference', () => {
    const cache = new SnapshotCache();
    const pod = aPod({ on: 'n1' });
    const node = aNode({ name: 'n1' });
    cache.update({ nodes: new Map([['n1', node]]), pods: new Map([[podKey(pod), pod]]) });
    const snapshot = cache.update({
      nodes: new Map([['n1', aNode({ name: 'n1' })]]),
      pods: new Map([[podKey(pod), aPod({ on: 'n1' })]]),
    });
    expect(snapshot.nodes[0]).toBe(node);
    expect(snapshot.podsOn('n1')[0]).toBe(pod);
  });

  it('refuses to use a snapshot after the next update', () => {
    const cache = new SnapshotCache();
    const before = cache.update({ nodes: new Map([['n1', aNode({ name: 'n1' })]]) });
    const derived = withNodes(before, [aNode({ name: 'n2' })]);
    cache.update({});
    expect(() => before.nodes).toThrow('has changed since');
    expect(() => derived.nodes).toThrow('has changed since');
  });

  it('does not grow when nodes come and go', () => {
    const cache = new SnapshotCache();
    for (let index = 0; index < 500; index += 1) {
      const name = `n${index}`;
      leaveDerivedSnapshots(cache.update({ nodes: new Map([[name, aNode({ name })]]) }));
      leaveDerivedSnapshots(cache.update({ nodes: new Map([[name, undefined]]) }));
    }
    expect(cache.update({}).activate().nodeInfos.length).toBe(1);
  });
});
