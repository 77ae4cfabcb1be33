// SPDX-License-Identifier: Apache-2.0
import { expect, it } from 'vitest';
import { decide } from './decide.ts';
import { mergeHosts } from './merged-hosts.ts';
import { aHost, anInput, aScalingPool, GIB, pods } from './testing/builders.ts';

const capacity = { cpus: 40, memoryBytes: 100 * GIB, diskBytes: 1_000 * GIB };

it('hosts of the same pools are one domain, each with less than it has by the largest machine', () => {
  const pools = [
    aScalingPool({ name: 'a', size: 'small', memoryOverhead: '1Gi' }),
    aScalingPool({ name: 'b', size: 'large' }),
  ];
  const strict = { ...capacity, memoryBytes: 90 * GIB };
  const { limits, domainsOf } = mergeHosts(
    anInput({
      pools,
      hosts: [
        { region: 'lab', name: 'h1', pools: { a: capacity, b: strict } },
        aHost('h2', ['a', 'b'], capacity),
        aHost('h3', ['a'], capacity),
        aHost('h4', ['b'], { ...capacity, maxCpus: 7 }),
        aHost('h5', ['b'], { ...capacity, refusal: { code: 'HostOffline', message: '' } }),
      ],
    }),
  );
  expect(Object.fromEntries(limits)).toEqual({
    '* a b': { cpuMilli: 64_000, memoryBytes: (74 + 84) * GIB, diskBytes: 1_840 * GIB },
    '* a': { cpuMilli: 38_000, memoryBytes: 95 * GIB, diskBytes: 960 * GIB },
  });
  expect([domainsOf('a'), domainsOf('b')]).toEqual([['* a b', '* a'], ['* a b']]);
});

it('hosts that are nearly full are told apart, so that each is filled', () => {
  const hosts = ['h1', 'h2'].map((name) => aHost(name, ['workers'], { cpus: 8 }));
  const { plan } = decide(anInput({ hosts, pods: pods(6, { cpu: '3' }) }));
  expect(plan.counts).toMatchObject({ fitNew: 4, unplaced: 2 });
  const named = plan.steps.flatMap((step) => (step.kind === 'create' ? step.host : []));
  expect(named.toSorted()).toEqual(['h1', 'h2']);
});
