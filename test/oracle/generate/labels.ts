// SPDX-License-Identifier: Apache-2.0
// A small set of labels and namespaces, so that random selectors match often.

import type { LabelSelector, Labels, Namespace, Requirement } from '../objects.ts';
import type { Random } from '../random.ts';

export const HOSTNAME = 'kubernetes.io/hostname';
export const ZONE = 'topology.kubernetes.io/zone';
export const REGION = 'topology.kubernetes.io/region';
export const BETA_ZONE = 'failure-domain.beta.kubernetes.io/zone';
export const RACK = 'rack';

export const ZONES = ['eu-north1-a', 'eu-north1-b', 'eu-north1-c'] as const;
export const REGION_NAME = 'eu-north1';
export const RACKS = ['r1', 'r2', 'r3', 'r4'] as const;
export const NAMESPACES = ['default', 'team-a', 'team-b'] as const;
/** A namespace that is not in the cluster, although pods use it. */
const UNKNOWN_NAMESPACE = 'unknown';
export const TOPOLOGY_KEYS = [HOSTNAME, ZONE, ZONE, RACK] as const;

const POD_LABELS: Readonly<Record<string, readonly string[]>> = {
  app: ['web', 'db', 'cache'],
  tier: ['front', 'back'],
  rev: ['1', '2'],
};

/** In a crowd almost all pods have the same labels and namespace, so that topology spread becomes restrictive. */
export function podIdentity(
  random: Random,
  isCrowd: boolean,
): { labels: Labels; namespace: string } {
  const labels: Labels = {};
  for (const [key, values] of Object.entries(POD_LABELS)) {
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

function randomRequirement(
  random: Random,
  valuesByKey: Readonly<Record<string, readonly string[]>>,
) {
  const key = random.pick(Object.keys(valuesByKey));
  const values = valuesByKey[key] ?? [];
  const operator = random.pick(['In', 'In', 'NotIn', 'Exists', 'DoesNotExist']);
  const requirement: Requirement = { key, operator };
  if (operator === 'In' || operator === 'NotIn') requirement.values = random.some(values, 0.4);
  return requirement;
}

/** Mostly one label, so that it matches often; sometimes the empty selector, which selects everything. */
export function podSelector(random: Random): LabelSelector {
  if (random.chance(0.04)) return {};
  if (random.chance(0.65)) {
    if (random.chance(0.4)) return { matchLabels: { app: 'web' } };
    const key = random.pick(['app', 'app', 'tier']);
    return { matchLabels: { [key]: random.pick(POD_LABELS[key] ?? []) } };
  }
  return {
    matchExpressions: random.times(random.int(1, 2), () => randomRequirement(random, POD_LABELS)),
  };
}

export function namespaceSelector(random: Random): LabelSelector {
  if (random.chance(0.2)) return {};
  if (random.chance(0.4)) return { matchLabels: { env: random.pick(['prod', 'test']) } };
  return {
    matchExpressions: [randomRequirement(random, { env: ['prod', 'test'], team: ['a', 'b', 't'] })],
  };
}
