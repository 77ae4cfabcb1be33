// SPDX-License-Identifier: Apache-2.0
// Properties that hold for every cluster.

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Pod } from '../model/pod.ts';
import type { PodSpecSource } from '../model/pod-source.ts';
import {
  checkFit,
  type Packing,
  type PoolOffer,
  pack,
  type Snapshot,
  simulateDrain,
  withNodes,
  withoutNodes,
  withoutPod,
  withPod,
} from './index.ts';
import {
  aCluster,
  aNode,
  aPod,
  type ClusterOptions,
  HOSTNAME,
  type NodeOptions,
  type PodOptions,
  ZONE,
} from './testing/builders.ts';
import { aPool, aSize, resourcesOf, zones } from './testing/offers.ts';
import { replay } from './testing/replay.ts';

const zone = fc.constantFrom('a', 'b', 'c');
const labels = fc.constantFrom({}, { app: 'x' }, { app: 'y' }, { app: 'x', tier: 'db' });
const selector = fc.constantFrom(
  { matchLabels: { app: 'x' } },
  { matchLabels: { tier: 'db' } },
  { matchExpressions: [{ key: 'app', operator: 'Exists' }] },
  { matchExpressions: [{ key: 'tier', operator: 'NotIn', values: ['db'] }] },
);
const topologyKey = fc.constantFrom(ZONE, HOSTNAME);
const term = fc.record({ topologyKey, labelSelector: selector });
const terms = fc
  .array(term, { maxLength: 2 })
  .map((all) => ({ requiredDuringSchedulingIgnoredDuringExecution: all }));
const spread = fc.record({
  topologyKey,
  labelSelector: selector,
  maxSkew: fc.integer({ min: 1, max: 2 }),
  whenUnsatisfiable: fc.constant('DoNotSchedule'),
  minDomains: fc.constantFrom(1, 1, 3),
  nodeTaintsPolicy: fc.constantFrom('Ignore', 'Honor'),
});

function spec(withSpread: boolean): fc.Arbitrary<PodSpecSource> {
  return fc.record({
    containers: fc
      .record({
        cpu: fc.constantFrom('100m', '500m', '1', '2'),
        memory: fc.constantFrom('64Mi', '1Gi'),
      })
      .map((requests) => [{ resources: { requests } }]),
    affinity: fc.record({ podAffinity: terms, podAntiAffinity: terms }, { requiredKeys: [] }),
    topologySpreadConstraints: fc.array(spread, { maxLength: withSpread ? 2 : 0 }),
    tolerations: fc.constantFrom([], [{ operator: 'Exists' }]),
    nodeSelector: fc.constantFrom({}, {}, {}, { [ZONE]: 'a' }),
  });
}

function pods(withSpread: boolean, maxLength: number): fc.Arbitrary<PodOptions[]> {
  const one = fc.record({ labels, spec: spec(withSpread), priority: fc.constantFrom(0, 0, 5) });
  return fc
    .array(one, { minLength: 1, maxLength })
    .map((all) => all.map((pod, i) => ({ ...pod, name: `pod-${i}` })));
}

const node: fc.Arbitrary<NodeOptions> = fc.record({
  zone,
  taints: fc.constantFrom([], [], [{ key: 'k', effect: 'NoSchedule' }]),
});
const nodes = fc
  .array(node, { minLength: 1, maxLength: 4 })
  .map((all) => all.map((one, i) => ({ ...one, name: `node-${i}` })));

const daemonSets = fc
  .array(fc.record({ labels, spec: spec(true), port: fc.constantFrom(0, 0, 80) }), { maxLength: 3 })
  .map((all) =>
    all.map(({ labels: own, spec: { containers, ...rest }, port }, i) => ({
      metadata: { name: `daemon-${i}`, namespace: 'default' },
      spec: {
        template: {
          metadata: { labels: own },
          spec: {
            ...rest,
            containers: [...(containers ?? []), { ports: port === 0 ? [] : [{ hostPort: port }] }],
          },
        },
      },
    })),
  );

/** A cluster with pods placed on its nodes regardless of the filters. */
function cluster(withSpread: boolean): fc.Arbitrary<ClusterOptions> {
  return fc.record({ nodes, pods: pods(withSpread, 6) }).map(({ nodes: all, pods: running }) => ({
    nodes: all,
    pods: running.map((pod, i) => ({
      ...pod,
      name: `running-${i}`,
      spec: { ...pod.spec, nodeName: all[i % all.length]?.name ?? '' },
    })),
  }));
}

const pools: fc.Arbitrary<readonly PoolOffer[]> = fc.constantFrom(
  [aPool({ domains: zones('a', 'b', 'c') })],
  [aPool({ sizes: [aSize('2x4'), aSize('4x8'), aSize('16x32')], domains: zones('a', 'd') })],
  [
    aPool({ name: 'small', sizes: [aSize('2x4')], limits: { machines: 2 }, domains: zones('a') }),
    aPool({
      name: 'range',
      sizes: {
        min: resourcesOf(1, 1),
        max: resourcesOf(8, 16),
        step: resourcesOf(1, 1),
        reserved: resourcesOf(0, 0, 0),
      },
      domains: zones('b', 'c'),
      taints: [{ key: 'k', value: '', effect: 'NoSchedule' }],
    }),
  ],
);

const LITTLE = { numRuns: 150 };

function allResults(snapshot: Snapshot, pending: readonly Pod[]): readonly boolean[] {
  return pending.flatMap((pod) =>
    snapshot.nodes.map(({ name }) => checkFit(snapshot, pod, name).fits),
  );
}

describe('checkFit, for random clusters', () => {
  test('accepts whatever it accepted before a node was added, except for topology spread', () => {
    fc.assert(
      fc.property(cluster(false), pods(false, 2), zone, (options, pending, newZone) => {
        const before = aCluster(options);
        const after = withNodes(before, [aNode({ name: 'more', zone: newZone })]);
        for (const pod of pending.map(aPod)) {
          for (const { name } of before.nodes) {
            const wasFine = checkFit(before, pod, name).fits;
            expect(checkFit(after, pod, name).fits).toBe(wasFine);
          }
        }
      }),
      LITTLE,
    );
  });

  test('rejects whatever it rejected before a pod was added, except for affinity and topology spread', () => {
    fc.assert(
      fc.property(cluster(false), pods(false, 2), pods(false, 1), (options, pending, [more]) => {
        const before = aCluster(options);
        const drained = before.nodes[0]?.name ?? '';
        const after = withPod(before, aPod({ ...more, name: 'more' }), drained);
        for (const pod of pending.map(aPod)) {
          const apart = { ...pod, affinity: [] };
          for (const { name } of before.nodes) {
            if (!checkFit(before, apart, name).fits)
              expect(checkFit(after, apart, name).fits).toBe(false);
          }
        }
      }),
      LITTLE,
    );
  });

  test('gives the same result after changes were made and undone', () => {
    fc.assert(
      fc.property(cluster(true), pods(true, 3), (options, pending) => {
        const snapshot = aCluster(options);
        const all = pending.map(aPod);
        const before = allResults(snapshot, all);
        let now = snapshot;
        const drained = snapshot.nodes[0]?.name ?? '';
        for (const pod of all) now = withPod(now, pod, drained);
        allResults(now, all);
        for (const pod of all) now = withoutPod(now, pod, drained);
        expect(allResults(now, all)).toEqual(before);
        pack(now, all, { pools: [aPool({ domains: zones('a', 'z') })] });
        simulateDrain(now, [drained]);
        expect(allResults(snapshot, all)).toEqual(before);
        expect(allResults(aCluster(options), all)).toEqual(before);
      }),
      LITTLE,
    );
  });

  test('gives the same result for a derived snapshot and one built at once', () => {
    fc.assert(
      fc.property(cluster(true), pods(true, 2), (options, pending) => {
        const all = pending.map(aPod);
        const whole = aCluster(options);
        let grown = aCluster({ ...options, pods: [] });
        allResults(grown, all);
        for (const pod of options.pods ?? []) {
          grown = withPod(grown, aPod(pod), pod.spec?.nodeName ?? '');
        }
        expect(allResults(grown, all)).toEqual(allResults(whole, all));
      }),
      LITTLE,
    );
  });
});

function allPodNames({ steps, unplaced, skipped }: Packing): readonly string[] {
  return [...steps, ...unplaced, ...skipped].map(({ pod }) => pod.name).sort();
}

function outline({ machines, existing, unplaced }: Packing): unknown {
  return {
    machines: machines.map(({ pool, domain, size, pods: there }) => [
      pool,
      domain,
      size.capacity,
      there.map(({ name }) => name),
    ]),
    existing: existing.map(({ pod, node: where }) => [pod.name, where]),
    unplaced: unplaced.map(({ pod }) => pod.name),
  };
}

describe('pack, for random clusters', () => {
  test('places every pod so that it passes every filter in a replay', () => {
    fc.assert(
      fc.property(cluster(true), pods(true, 12), pools, (options, pending, offer) => {
        const snapshot = aCluster(options);
        const packing = pack(snapshot, pending.map(aPod), { pools: offer });
        expect(replay(snapshot, packing, 'together')).toEqual([]);
        expect(replay(snapshot, packing, 'one by one')).toEqual([]);
        expect(allPodNames(packing)).toEqual(pending.map(({ name }) => name ?? '').sort());
      }),
      { numRuns: 300 },
    );
  });

  test('places pods and daemon pods so that they pass every filter in a replay', () => {
    fc.assert(
      fc.property(
        fc.record({ options: cluster(true), sets: daemonSets }),
        pods(true, 12),
        pools,
        ({ options, sets }, pending, offer) => {
          const snapshot = aCluster({ ...options, daemonSets: sets });
          const packing = pack(snapshot, pending.map(aPod), { pools: offer });
          expect(replay(snapshot, packing, 'one by one')).toEqual([]);
          expect(allPodNames(packing)).toEqual(pending.map(({ name }) => name ?? '').sort());
        },
      ),
      { numRuns: 300 },
    );
  });

  test('does not depend on the order of the pods', () => {
    fc.assert(
      fc.property(cluster(true), pods(true, 10), pools, (options, pending, offer) => {
        const all = pending.map(aPod);
        const one = pack(aCluster(options), all, { pools: offer });
        const other = pack(aCluster(options), all.toReversed(), { pools: offer });
        expect(outline(other)).toEqual(outline(one));
      }),
      LITTLE,
    );
  });

  test('plans no empty machine and no machine that is larger than needed', () => {
    fc.assert(
      fc.property(pods(true, 12), (pending) => {
        const sizes = [aSize('2x4'), aSize('4x8'), aSize('16x32')];
        const offer = [aPool({ sizes, domains: zones('a', 'b') })];
        const { machines } = pack(aCluster({ nodes: [] }), pending.map(aPod), { pools: offer });
        for (const { size, pods: there } of machines) {
          expect(there.length).toBeGreaterThan(0);
          const cpu = there.reduce((sum, pod) => sum + pod.requests.cpuMilli, 0);
          const memory = there.reduce((sum, pod) => sum + pod.requests.memoryBytes, 0);
          const fitting = sizes.find(
            ({ allocatable }) => allocatable.cpuMilli >= cpu && allocatable.memoryBytes >= memory,
          );
          expect(size.name).toBe(fitting?.name);
        }
      }),
      LITTLE,
    );
  });

  test('respects all limits', () => {
    fc.assert(
      fc.property(
        pods(true, 12),
        fc.integer({ min: 0, max: 3 }),
        fc.integer({ min: 0, max: 12 }),
        (pending, machines, cpu) => {
          const offer = aPool({
            sizes: [aSize('2x4'), aSize('4x8')],
            domains: zones('a', 'b'),
            limits: { machines, cpuMilli: cpu * 1000 },
          });
          const packing = pack(aCluster({ nodes: [] }), pending.map(aPod), { pools: [offer] });
          expect(packing.machines.length).toBeLessThanOrEqual(machines);
          const used = packing.machines.reduce((sum, { size }) => sum + size.capacity.cpuMilli, 0);
          expect(used).toBeLessThanOrEqual(cpu * 1000);
        },
      ),
      LITTLE,
    );
  });
});

describe('simulateDrain, for random clusters', () => {
  test('moves every pod so that it passes every filter in a replay', () => {
    fc.assert(
      fc.property(cluster(true), (options) => {
        const snapshot = aCluster(options);
        const drained = snapshot.nodes[0]?.name ?? '';
        const { moves } = simulateDrain(snapshot, [drained], { isAfterDeletion: true });
        const rest = {
          ...options,
          nodes: (options.nodes ?? []).filter(({ name }) => name !== drained),
        };
        let now = aCluster(rest);
        for (const { pod, from, to } of moves) {
          expect(from).toBe(drained);
          expect(checkFit(now, pod, to)).toEqual({ fits: true });
          now = withPod(now, pod, to);
        }
      }),
      LITTLE,
    );
  });

  test.each([true, false])(
    'finds a node for every pod if there is a way to place them all (nodes deleted: %s)',
    (isAfterDeletion) => {
      fc.assert(
        fc.property(drainCase, ({ nodes: all, pods: running }) => {
          const snapshot = aCluster({ nodes: all, pods: running });
          const drained = all[0]?.name ?? '';
          const result = simulateDrain(snapshot, [drained], { isAfterDeletion });
          const moving = snapshot.podsOn(drained).map((pod) => ({ ...pod, nodeName: '' }));
          const after = isAfterDeletion
            ? withoutNodes(snapshot, [drained])
            : withoutPodsOn(snapshot, drained);
          expect(result.isPossible).toBe(canPlaceAll(after, moving, drained));
        }),
        { numRuns: 400 },
      );
    },
  );

  test('moves every pod so that it passes every filter beside the nominated pods', () => {
    fc.assert(
      fc.property(drainCase, nominatedPods, ({ nodes: all, pods: running }, nominated) => {
        const snapshot = aCluster({ nodes: all, pods: [...running, ...nominated] });
        const [first] = all;
        let now = withoutPodsOn(snapshot, first?.name ?? '');
        const { moves } = simulateDrain(snapshot, [first?.name ?? '']);
        for (const { pod, to } of moves) {
          expect(checkFit(now, pod, to)).toEqual({ fits: true });
          now = withPod(now, pod, to);
        }
      }),
      { numRuns: 300 },
    );
  });
});

const requests = (cpu: string): PodSpecSource => ({
  containers: [{ resources: { requests: { cpu } } }],
});

/** Small nodes with little space, and pods with node selectors, affinity and topology spread. */
const drainCase = fc.record({
  nodes: fc
    .array(fc.record({ zone, cpu: fc.constantFrom('1', '2', '3', '4') }), {
      minLength: 3,
      maxLength: 5,
    })
    .map((all) =>
      all.map(({ zone: inZone, cpu }, i) => ({
        name: `node-${i}`,
        zone: inZone,
        allocatable: { cpu },
      })),
    ),
  pods: fc
    .array(
      fc.record({
        labels,
        spec: fc.oneof(
          { arbitrary: fc.constantFrom({}, { nodeSelector: { [ZONE]: 'a' } }), weight: 4 },
          { arbitrary: spec(true), weight: 1 },
        ),
        cpu: fc.constantFrom('500m', '1', '1500m', '2'),
        isMoving: fc.boolean(),
      }),
      { minLength: 2, maxLength: 8 },
    )
    .map((all) => placePods(all)),
});

// At most four pods move, because all ways to place them are tried.
function placePods(
  all: readonly { labels: object; spec: PodSpecSource; cpu: string; isMoving: boolean }[],
): PodOptions[] {
  let moving = 0;
  return all.map(({ labels: own, spec: rules, cpu, isMoving }, i) => {
    const isFirst = isMoving && moving < 4;
    moving += isFirst ? 1 : 0;
    const on = isFirst ? 'node-0' : `node-${1 + (i % 2)}`;
    return {
      name: `pod-${i}`,
      labels: own as Record<string, string>,
      on,
      spec: { ...rules, ...requests(cpu), nodeName: on },
    };
  });
}

const nominatedPods = fc
  .array(fc.record({ labels, spec: spec(true), node: fc.integer({ min: 0, max: 2 }) }), {
    minLength: 1,
    maxLength: 3,
  })
  .map((all) =>
    all.map(({ labels: own, spec: rules, node: at }, i) => ({
      name: `nominated-${i}`,
      labels: own,
      spec: rules,
      status: { nominatedNodeName: `node-${at}` },
    })),
  );

function withoutPodsOn(snapshot: Snapshot, node: string): Snapshot {
  return snapshot.podsOn(node).reduce((rest, pod) => withoutPod(rest, pod, node), snapshot);
}

/** Tries every order and every node but the drained one. */
function canPlaceAll(snapshot: Snapshot, pending: readonly Pod[], drained: string): boolean {
  if (pending.length === 0) return true;
  return pending.some((pod) =>
    snapshot.nodes.some(
      ({ name }) =>
        name !== drained &&
        checkFit(snapshot, pod, name).fits &&
        canPlaceAll(
          withPod(snapshot, pod, name),
          pending.filter((other) => other !== pod),
          drained,
        ),
    ),
  );
}
