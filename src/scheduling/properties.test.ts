// SPDX-License-Identifier: Apache-2.0
// What must hold whatever the cluster looks like.

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Pod } from '../model/pod.ts';
import type { PodSpecSource } from '../model/pod-source.ts';
import {
  canEmpty,
  fits,
  type Packing,
  type PoolOffer,
  pack,
  type Snapshot,
  withNodes,
  withoutPod,
  withPod,
} from './index.ts';
import {
  aCluster,
  aNode,
  aPod,
  type ClusterWish,
  HOSTNAME,
  type NodeWish,
  type PodWish,
  ZONE,
} from './testing/builders.ts';
import { aPool, aSize, room, zones } from './testing/offers.ts';
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

function pods(withSpread: boolean, maxLength: number): fc.Arbitrary<PodWish[]> {
  const one = fc.record({ labels, spec: spec(withSpread), priority: fc.constantFrom(0, 0, 5) });
  return fc
    .array(one, { minLength: 1, maxLength })
    .map((all) => all.map((pod, i) => ({ ...pod, name: `pod-${i}` })));
}

const node: fc.Arbitrary<NodeWish> = fc.record({
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

/** A cluster with pods spread over its nodes, whatever the filters say to that. */
function cluster(withSpread: boolean): fc.Arbitrary<ClusterWish> {
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
      sizes: { min: room(1, 1), max: room(8, 16), step: room(1, 1), reserved: room(0, 0, 0) },
      domains: zones('b', 'c'),
      taints: [{ key: 'k', value: '', effect: 'NoSchedule' }],
    }),
  ],
);

const LITTLE = { numRuns: 150 };

function answers(snapshot: Snapshot, asking: readonly Pod[]): readonly boolean[] {
  return asking.flatMap((pod) => snapshot.nodes.map(({ name }) => fits(snapshot, pod, name).fits));
}

describe('fits', () => {
  test('a node more makes no pod unfit, spread aside', () => {
    fc.assert(
      fc.property(cluster(false), pods(false, 2), zone, (wish, asking, newZone) => {
        const before = aCluster(wish);
        const after = withNodes(before, [aNode({ name: 'more', zone: newZone })]);
        for (const pod of asking.map(aPod)) {
          for (const { name } of before.nodes) {
            const wasFine = fits(before, pod, name).fits;
            expect(fits(after, pod, name).fits).toBe(wasFine);
          }
        }
      }),
      LITTLE,
    );
  });

  test('a pod more without affinity to it makes nothing fit that did not, spread and affinity aside', () => {
    fc.assert(
      fc.property(cluster(false), pods(false, 2), pods(false, 1), (wish, asking, [more]) => {
        const before = aCluster(wish);
        const home = before.nodes[0]?.name ?? '';
        const after = withPod(before, aPod({ ...more, name: 'more' }), home);
        for (const pod of asking.map(aPod)) {
          const apart = { ...pod, affinity: [] };
          for (const { name } of before.nodes) {
            if (!fits(before, apart, name).fits) expect(fits(after, apart, name).fits).toBe(false);
          }
        }
      }),
      LITTLE,
    );
  });

  test('what is done and undone leaves no trace', () => {
    fc.assert(
      fc.property(cluster(true), pods(true, 3), (wish, asking) => {
        const snapshot = aCluster(wish);
        const all = asking.map(aPod);
        const before = answers(snapshot, all);
        let now = snapshot;
        const home = snapshot.nodes[0]?.name ?? '';
        for (const pod of all) now = withPod(now, pod, home);
        answers(now, all);
        for (const pod of all) now = withoutPod(now, pod, home);
        expect(answers(now, all)).toEqual(before);
        pack(now, all, { pools: [aPool({ domains: zones('a', 'z') })] });
        canEmpty(now, [home]);
        expect(answers(snapshot, all)).toEqual(before);
        expect(answers(aCluster(wish), all)).toEqual(before);
      }),
      LITTLE,
    );
  });

  test('a snapshot that grew step by step answers like one that was read at once', () => {
    fc.assert(
      fc.property(cluster(true), pods(true, 2), (wish, asking) => {
        const all = asking.map(aPod);
        const whole = aCluster(wish);
        let grown = aCluster({ ...wish, pods: [] });
        answers(grown, all);
        for (const pod of wish.pods ?? []) {
          grown = withPod(grown, aPod(pod), pod.spec?.nodeName ?? '');
        }
        expect(answers(grown, all)).toEqual(answers(whole, all));
      }),
      LITTLE,
    );
  });
});

function everybody({ steps, unplaced, skipped }: Packing): readonly string[] {
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

describe('pack', () => {
  test('every placement passes every filter when it is replayed', () => {
    fc.assert(
      fc.property(cluster(true), pods(true, 12), pools, (wish, asking, offer) => {
        const snapshot = aCluster(wish);
        const packing = pack(snapshot, asking.map(aPod), { pools: offer });
        expect(replay(snapshot, packing, 'together')).toEqual([]);
        expect(replay(snapshot, packing, 'in turn')).toEqual([]);
        expect(everybody(packing)).toEqual(asking.map(({ name }) => name ?? '').sort());
      }),
      { numRuns: 300 },
    );
  });

  test('so it does with daemons, who pass them, too', () => {
    fc.assert(
      fc.property(
        fc.record({ wish: cluster(true), sets: daemonSets }),
        pods(true, 12),
        pools,
        ({ wish, sets }, asking, offer) => {
          const snapshot = aCluster({ ...wish, daemonSets: sets });
          const packing = pack(snapshot, asking.map(aPod), { pools: offer });
          expect(replay(snapshot, packing, 'in turn')).toEqual([]);
          expect(everybody(packing)).toEqual(asking.map(({ name }) => name ?? '').sort());
        },
      ),
      { numRuns: 300 },
    );
  });

  test('the order in which pods come does not matter', () => {
    fc.assert(
      fc.property(cluster(true), pods(true, 10), pools, (wish, asking, offer) => {
        const all = asking.map(aPod);
        const one = pack(aCluster(wish), all, { pools: offer });
        const other = pack(aCluster(wish), all.toReversed(), { pools: offer });
        expect(outline(other)).toEqual(outline(one));
      }),
      LITTLE,
    );
  });

  test('every machine is as small as its pods allow, and none is empty', () => {
    fc.assert(
      fc.property(pods(true, 12), (asking) => {
        const sizes = [aSize('2x4'), aSize('4x8'), aSize('16x32')];
        const offer = [aPool({ sizes, domains: zones('a', 'b') })];
        const { machines } = pack(aCluster({ nodes: [] }), asking.map(aPod), { pools: offer });
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

  test('limits hold', () => {
    fc.assert(
      fc.property(
        pods(true, 12),
        fc.integer({ min: 0, max: 3 }),
        fc.integer({ min: 0, max: 12 }),
        (asking, machines, cpu) => {
          const offer = aPool({
            sizes: [aSize('2x4'), aSize('4x8')],
            domains: zones('a', 'b'),
            limits: { machines, cpuMilli: cpu * 1000 },
          });
          const packing = pack(aCluster({ nodes: [] }), asking.map(aPod), { pools: [offer] });
          expect(packing.machines.length).toBeLessThanOrEqual(machines);
          const used = packing.machines.reduce((sum, { size }) => sum + size.capacity.cpuMilli, 0);
          expect(used).toBeLessThanOrEqual(cpu * 1000);
        },
      ),
      LITTLE,
    );
  });
});

describe('canEmpty', () => {
  test('every move passes every filter when it is replayed without the nodes', () => {
    fc.assert(
      fc.property(cluster(true), (wish) => {
        const snapshot = aCluster(wish);
        const home = snapshot.nodes[0]?.name ?? '';
        const { moves } = canEmpty(snapshot, [home]);
        const rest = { ...wish, nodes: (wish.nodes ?? []).filter(({ name }) => name !== home) };
        let now = aCluster(rest);
        for (const { pod, from, to } of moves) {
          expect(from).toBe(home);
          expect(fits(now, pod, to)).toEqual({ fits: true });
          now = withPod(now, pod, to);
        }
      }),
      LITTLE,
    );
  });
});
