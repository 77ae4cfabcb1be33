// SPDX-License-Identifier: Apache-2.0
// Why no new machine would run a pod that is spread over zones.
import { expect, it } from 'vitest';
import { pack, Snapshot } from '../index.ts';
import { aPod, select, ZONE } from '../testing/builders.ts';
import { aPool, aSize } from '../testing/offers.ts';

function zone(name: string, limits?: { readonly cpuMilli?: number; readonly machines?: number }) {
  return { name, labels: { [ZONE]: name }, ...(limits && { limits }) };
}

// No machine may be opened in zone `closed`. In zone `small` one may, but none that holds 3 CPUs.
const POOLS = [
  aPool({
    sizes: [aSize('1x2'), aSize('4x8')],
    domains: [zone('closed', { machines: 0 }), zone('large'), zone('small', { cpuMilli: 1_000 })],
  }),
];

function unplacedOf(cpus: readonly string[]) {
  const pods = cpus.map((cpu, i) =>
    aPod({
      name: `p${i}`,
      labels: { app: 'x' },
      spec: {
        containers: [{ resources: { requests: { cpu } } }],
        topologySpreadConstraints: [
          {
            maxSkew: 1,
            topologyKey: ZONE,
            whenUnsatisfiable: 'DoNotSchedule',
            labelSelector: select({ app: 'x' }),
          },
        ],
      },
    }),
  );
  const { machines, unplaced } = pack(Snapshot.of({ nodes: [] }), pods, { pools: POOLS });
  const refusals = unplaced.map(({ pod, refusals: all }) => [pod.name, ...all.map(textOf)]);
  return { zones: machines.map(({ domain }) => domain), refusals };
}

function textOf({ domain, reasons, limit }: ReturnType<typeof pack>['unplaced'][0]['refusals'][0]) {
  const texts = reasons.map((reason) =>
    reason.filter === 'PodTopologySpread' && reason.problem === 'skew'
      ? `skew ${reason.matching}+${reason.self}-${reason.minimum}`
      : reason.filter,
  );
  return [domain, ...texts, ...(limit === undefined ? [] : [`limit ${limit.limit}`])].join(' ');
}

it('a zone in which a machine could be opened counts for the spread, one that is closed does not', () => {
  expect(unplacedOf(['3', '3'])).toEqual({
    zones: ['large'],
    refusals: [['p1', 'closed limit machines', 'large skew 1+1-0', 'small limit cpu']],
  });
});

it('a pod that is too large for every size is refused for that, beside one that is refused for the spread', () => {
  expect(unplacedOf(['3', '3', '5'])).toEqual({
    zones: ['large'],
    refusals: [
      [
        'p2',
        'closed NodeResourcesFit limit machines',
        'large NodeResourcesFit',
        'small NodeResourcesFit limit cpu',
      ],
      ['p1', 'closed limit machines', 'large skew 1+1-0', 'small limit cpu'],
    ],
  });
});
