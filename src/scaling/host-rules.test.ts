// SPDX-License-Identifier: Apache-2.0
// Pods whose zone decides where others can run.
import { expect, test } from 'vitest';
import type { Pod } from '../model/pod.ts';
import { decide } from './decide.ts';
import { ZONE_LABEL } from './expected-nodes.ts';
import type { CreateStep, Plan } from './index.ts';
import { aHost, anInput, aWorkerNode, pods } from './testing/builders.ts';

const HOSTS = ['pve1', 'pve2', 'pve3'].map((name) => aHost(name));

function created({ steps }: Plan): readonly CreateStep[] {
  return steps.filter((step) => step.kind === 'create');
}

interface BesideOptions {
  readonly rule: 'podAffinity' | 'podAntiAffinity';
  readonly other: string;
  readonly count?: number;
  readonly nodeSelector?: Readonly<Record<string, string>>;
  readonly on?: string;
}

/** Pods, each of which needs a machine of its own, with a rule about the zone of pods of another workload. */
function beside(
  app: string,
  { rule, other, count = 1, nodeSelector = {}, on }: BesideOptions,
): readonly Pod[] {
  const term = { topologyKey: ZONE_LABEL, labelSelector: { matchLabels: { app: other } } };
  const required = { requiredDuringSchedulingIgnoredDuringExecution: [term] };
  return pods(count, {
    name: app,
    labels: { app },
    cpu: '3',
    ...(on !== undefined && { on }),
    spec: { affinity: { [rule]: required }, nodeSelector },
  });
}

test('the steps name the host of pods beside which others must run, and of those that running ones exclude', () => {
  const leader = pods(1, { name: 'cache', labels: { app: 'cache' }, cpu: '3' });
  const near = anInput({
    hosts: HOSTS,
    pods: [...leader, ...beside('web', { rule: 'podAffinity', other: 'cache', count: 2 })],
  });
  const hosts = created(decide(near).plan).map(({ host }) => host);
  expect(new Set(hosts).size).toBe(1);
  expect(hosts[0]).toBeDefined();
  const running = anInput({
    hosts: HOSTS,
    nodes: [aWorkerNode('w-1', { zone: 'pve1' }), aWorkerNode('w-2', { zone: 'pve2' })],
    pods: [
      ...leader,
      ...beside('loud', { rule: 'podAntiAffinity', other: 'cache', on: 'w-1' }),
      ...beside('noisy', { rule: 'podAntiAffinity', other: 'cache', on: 'w-2' }),
    ],
  });
  expect(created(decide(running).plan)).toMatchObject([{ host: 'pve3' }]);
});

test('pods get machines on a host that others, which must run in the same zone, can use', () => {
  const input = anInput({
    hosts: HOSTS,
    pods: [
      ...pods(1, { name: 'cache', labels: { app: 'cache' }, cpu: '3' }),
      ...beside('web', {
        rule: 'podAffinity',
        other: 'cache',
        count: 2,
        nodeSelector: { [ZONE_LABEL]: 'pve3' },
      }),
    ],
  });
  const { plan } = decide(input);
  expect(plan.counts.unplaced).toBe(0);
  expect(new Set(created(plan).map(({ host }) => host))).toEqual(new Set(['pve3']));
});

test('pods leave a host to others that must not run in the same zone', () => {
  const input = anInput({
    hosts: HOSTS,
    pods: [
      ...beside('loud', { rule: 'podAntiAffinity', other: 'quiet', count: 5 }),
      ...pods(2, { name: 'quiet', labels: { app: 'quiet' }, cpu: '3' }),
    ],
  });
  expect(decide(input).plan.counts.unplaced).toBe(0);
});
