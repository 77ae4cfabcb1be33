// SPDX-License-Identifier: Apache-2.0
import { expect, it } from 'vitest';
import { decide } from './decide.ts';
import { mergeHosts } from './merged-hosts.ts';
import { aHost, anInput, aScalingPool, GIB, pods } from './testing/builders.ts';

const capacity = { cpus: 40, memoryBytes: 100 * GIB, diskBytes: 1_000 * GIB };

it('hosts of the same pools are one domain, each with the number of largest machines that it holds', () => {
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
    // 8 vCPUs and 16 GiB; 2 vCPUs and 5 GiB.
    '* a b': { machines: 5 + 5 },
    '* a': { machines: 20 },
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

it('no machine is requested that fits on no host, where one host lacks CPU and another one memory', () => {
  const hosts = [
    aHost('h1', ['workers'], { cpus: 3, memoryBytes: 400 * GIB }),
    aHost('h2', ['workers'], { cpus: 80, memoryBytes: 7 * GIB }),
  ];
  const { plan } = decide(anInput({ hosts, pods: pods(2, { cpu: '3' }) }));
  expect(plan.steps).toEqual([]);
  expect(plan.refusals.map(({ reason }) => reason)).toEqual(
    expect.arrayContaining([
      'pool workers refused: host h1 needs 4 vCPUs, 3 free',
      'pool workers refused: host h2 needs 8 GiB, 7 GiB free after reserve',
    ]),
  );
});

it('a machine that could take the only host of another pool is requested for its own host', () => {
  const pools = ['a', 'b'].map((name) => aScalingPool({ name }));
  const hosts = [aHost('both', ['a', 'b'], { cpus: 8 }), aHost('other', ['a'], { cpus: 100 })];
  const ofPool = (name: string, count: number) =>
    pods(count, {
      name,
      cpu: '3',
      spec: { nodeSelector: { 'autoscaler.proxmox/group': name } },
    });
  const { plan } = decide(anInput({ pools, hosts, pods: [...ofPool('a', 4), ...ofPool('b', 1)] }));
  expect(plan.counts).toMatchObject({ fitNew: 5, unplaced: 0 });
  const named = plan.steps.map((step) => (step.kind === 'create' ? step.host : ''));
  expect(named).not.toContain(undefined);
});
