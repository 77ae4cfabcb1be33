// SPDX-License-Identifier: Apache-2.0
// Few words, so that random things meet.

import type { LabelSelector, Labels, Namespace, Requirement } from '../objects.ts';
import type { Random } from '../random.ts';

export const HOSTNAME = 'kubernetes.io/hostname';
export const ZONE = 'topology.kubernetes.io/zone';
export const REGION = 'topology.kubernetes.io/region';
export const BETA_ZONE = 'failure-domain.beta.kubernetes.io/zone';
export const RACK = 'rack';

export const ZONES = ['eu-north1-a', 'eu-north1-b', 'eu-north1-c'] as const;
export const HERE = 'eu-north1';
export const RACKS = ['r1', 'r2', 'r3', 'r4'] as const;
export const NAMESPACES = ['default', 'team-a', 'team-b'] as const;
/** A namespace that nobody has heard of yet: its pods are known before it is. */
const UNKNOWN_NAMESPACE = 'ghost';
export const TOPOLOGY_KEYS = [HOSTNAME, ZONE, ZONE, RACK] as const;

const POD_WORDS: Readonly<Record<string, readonly string[]>> = {
  app: ['web', 'db', 'cache'],
  tier: ['front', 'back'],
  rev: ['1', '2'],
};

/** In a crowd almost all pods are of one kind and in one namespace: only then does spreading get tight. */
export function podIdentity(
  random: Random,
  isCrowd: boolean,
): { labels: Labels; namespace: string } {
  const labels: Labels = {};
  for (const [key, values] of Object.entries(POD_WORDS)) {
    if (random.chance(0.85)) labels[key] = random.pick(values);
  }
  if (!isCrowd && random.chance(0.03)) return { labels, namespace: UNKNOWN_NAMESPACE };
  if (!isCrowd) return { labels, namespace: random.pick(NAMESPACES) };
  if (random.chance(0.9)) labels['app'] = 'web';
  return { labels, namespace: random.chance(0.95) ? 'default' : random.pick(NAMESPACES) };
}

export function namespaces(random: Random): Namespace[] {
  return NAMESPACES.map((name) => ({
    metadata: {
      name,
      labels: {
        'kubernetes.io/metadata.name': name,
        env: random.pick(['prod', 'test']),
        ...(random.chance(0.5) ? { team: name.slice(-1) } : {}),
      },
    },
  }));
}

function requirement(random: Random, words: Readonly<Record<string, readonly string[]>>) {
  const key = random.pick(Object.keys(words));
  const values = words[key] ?? [];
  const operator = random.pick(['In', 'In', 'NotIn', 'Exists', 'DoesNotExist']);
  const asked: Requirement = { key, operator };
  if (operator === 'In' || operator === 'NotIn') asked.values = random.some(values, 0.4);
  return asked;
}

/** Mostly one label, so that it matches often; sometimes the empty selector, which means everything. */
export function podSelector(random: Random): LabelSelector {
  if (random.chance(0.04)) return {};
  if (random.chance(0.65)) {
    if (random.chance(0.4)) return { matchLabels: { app: 'web' } };
    const key = random.pick(['app', 'app', 'tier']);
    return { matchLabels: { [key]: random.pick(POD_WORDS[key] ?? []) } };
  }
  return { matchExpressions: random.times(random.int(1, 2), () => requirement(random, POD_WORDS)) };
}

export function namespaceSelector(random: Random): LabelSelector {
  if (random.chance(0.2)) return {};
  if (random.chance(0.4)) return { matchLabels: { env: random.pick(['prod', 'test']) } };
  return {
    matchExpressions: [requirement(random, { env: ['prod', 'test'], team: ['a', 'b', 't'] })],
  };
}
