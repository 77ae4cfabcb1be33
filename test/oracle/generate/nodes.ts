// SPDX-License-Identifier: Apache-2.0
import type { Labels, Node, Quantities, Taint } from '../objects.ts';
import type { Random } from '../random.ts';
import { BETA_ZONE, HOSTNAME, RACK, RACKS, REGION, REGION_NAME, ZONE, ZONES } from './labels.ts';

const TAINTS: readonly Taint[] = [
  { key: 'dedicated', value: 'db', effect: 'NoSchedule' },
  { key: 'dedicated', value: 'gpu', effect: 'NoSchedule' },
  { key: 'spot', effect: 'NoExecute' },
  { key: 'slow', value: 'true', effect: 'PreferNoSchedule' },
  { key: 'node.kubernetes.io/not-ready', effect: 'NoExecute' },
  { key: 'node.kubernetes.io/network-unavailable', effect: 'NoSchedule' },
  { key: 'load', value: '5', effect: 'NoSchedule' },
  { key: 'load', value: '60', effect: 'NoSchedule' },
];

/** Sorted, as the API server requires. The scheduler knows only some of them. */
export const DECLARED_FEATURES = [
  'ExtendWebSocketsToKubelet',
  'RestartAllContainersOnContainerExits',
  'SomethingNew',
  'UserNamespacesHostNetworkSupport',
] as const;

export function makeTiny(random: Random, { status }: Node): void {
  status.allocatable['cpu'] = random.pick(['2m', '3m', '3500u', '4m', '5m']);
  status.allocatable['memory'] = random.pick(['2', '3', '3500m', '4', '6']);
}

export function nodes(random: Random): Node[] {
  const zones = ZONES.slice(0, random.int(2, 3));
  return random.times(random.int(6, 10), (index) => node(random, `n${index}`, zones));
}

function node(random: Random, name: string, zones: readonly string[]): Node {
  const made: Node = {
    metadata: { name, labels: labels(random, name, random.pick(zones)) },
    spec: {},
    status: { allocatable: allocatable(random) },
  };
  if (random.chance(0.8)) made.status.declaredFeatures = random.some(DECLARED_FEATURES, 0.6);
  if (random.chance(0.13)) made.spec.taints = random.some(TAINTS, 0.2);
  if (random.chance(0.05)) makeUnschedulable(random, made);
  return made;
}

// A cordoned node gets the taint too, a moment later.
function makeUnschedulable(random: Random, made: Node): void {
  made.spec.unschedulable = true;
  if (random.chance(0.3))
    made.spec.taints = [
      ...(made.spec.taints ?? []),
      { key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' },
    ];
}

function labels(random: Random, name: string, zone: string): Labels {
  const made: Labels = {};
  if (random.chance(0.97)) made[HOSTNAME] = name;
  if (random.chance(0.9)) made[ZONE] = zone;
  if (random.chance(0.2)) made[BETA_ZONE] = zone;
  if (random.chance(0.8)) made[REGION] = random.chance(0.9) ? REGION_NAME : 'elsewhere';
  if (random.chance(0.85)) made[RACK] = random.pick(RACKS);
  if (random.chance(0.7)) made['disk'] = random.pick(['ssd', 'hdd']);
  if (random.chance(0.8)) made['cores'] = random.pick(['4', '8', '16', 'many']);
  return made;
}

function allocatable(random: Random): Quantities {
  const made: Quantities = {
    cpu: random.pick(['16', '32', '24000m', '32', '12.5']),
    memory: random.pick(['32Gi', '64Gi', '67108864Ki', '64G', '3e10']),
  };
  if (random.chance(0.99)) made['pods'] = random.chance(0.15) ? `${random.int(3, 9)}` : '110';
  if (random.chance(0.9)) made['ephemeral-storage'] = random.pick(['10Gi', '20Gi', '100Gi']);
  if (random.chance(0.3)) made['nvidia.com/gpu'] = random.pick(['1', '2', '4']);
  if (random.chance(0.2)) made['hugepages-2Mi'] = random.pick(['512Mi', '1Gi']);
  return made;
}
