// SPDX-License-Identifier: Apache-2.0
// Generates resource requests: containers, init containers, sidecars, pod-level requests, overhead and resizes.

import type { Container, ContainerStatus, Pod, Quantities } from '../objects.ts';
import type { Random } from '../random.ts';

export type Size = 'small' | 'large';

function cpu(random: Random, size: Size): string {
  if (size === 'small') return random.pick(['50m', '100m', '0.1', '250m', '0.25', '500m']);
  return random.pick(['1500m', '3', '5.5', '7500m', '12', '18']);
}

function memory(random: Random, size: Size): string {
  if (size === 'small') return random.pick(['64Mi', '128Mi', '256M', '512Mi', '1Gi', '100000000']);
  return random.pick(['2Gi', '4Gi', '9G', '20Gi', '3e10']);
}

export function requests(random: Random, size: Size): Quantities {
  const amounts: Quantities = {};
  if (random.chance(0.93)) amounts['cpu'] = cpu(random, size);
  if (random.chance(0.93)) amounts['memory'] = memory(random, size);
  return amounts;
}

/** Amounts below the counted unit: only the sum must be rounded. */
export function makeTiny(random: Random, { spec }: Pod): void {
  const tiny = (): Quantities => ({
    cpu: random.pick(['500u', '0.5m', '1500u', '100n', '0.0004', '1m']),
    memory: random.pick(['0.5', '1500m', '1', '400m', '1e-1']),
  });
  for (const one of [...spec.containers, ...(spec.initContainers ?? [])])
    one.resources = { requests: tiny() };
  if (spec.overhead !== undefined) spec.overhead = tiny();
}

export function containers(random: Random, size: Size): Container[] {
  return random.times(random.chance(0.75) ? 1 : 2, (index) => ({
    name: `c${index}`,
    resources: { requests: requests(random, index === 0 ? size : 'small') },
  }));
}

export function addInitContainers(random: Random, pod: Pod, kinds: readonly string[]): void {
  pod.spec.initContainers = random.times(random.int(1, 3), (index) => {
    const made: Container = {
      name: `i${index}`,
      resources: { requests: requests(random, random.chance(0.75) ? 'large' : 'small') },
    };
    if (random.pick(kinds) === 'sidecar') made.restartPolicy = 'Always';
    return made;
  });
}

export function addOverhead(random: Random, pod: Pod): void {
  pod.spec.overhead = requests(random, 'large');
}

/** At least the sum of all containers, which is all that the API server checks. */
export function addPodLevelRequests(random: Random, pod: Pod): void {
  const amounts: Quantities = {};
  if (random.chance(0.8)) amounts['cpu'] = random.pick(['10', '15500m', '20']);
  if (random.chance(0.8) || amounts['cpu'] === undefined)
    amounts['memory'] = random.pick(['18Gi', '31Gi']);
  pod.spec.resources = { requests: amounts };
}

export function addEphemeralStorage(random: Random, pod: Pod): void {
  const [first] = pod.spec.containers;
  if (first !== undefined)
    first.resources = {
      requests: {
        ...first.resources?.requests,
        'ephemeral-storage': random.pick(['1Gi', '8Gi', '15Gi', '30G']),
      },
    };
}

export function addDevices(random: Random, pod: Pod): void {
  const [first] = pod.spec.containers;
  const name = random.pick([
    'nvidia.com/gpu',
    'nvidia.com/gpu',
    'hugepages-2Mi',
    'example.com/nic',
  ]);
  const amount =
    name === 'hugepages-2Mi' ? random.pick(['256Mi', '1Gi']) : random.pick(['1', '2', '0']);
  if (first !== undefined)
    first.resources = { requests: { ...first.resources?.requests, [name]: amount } };
}

/** A running pod during a resize: desired, allocated and actual resources may all differ. */
export function addResize(random: Random, pod: Pod): void {
  const statusOf = ({ name }: Container): ContainerStatus => ({
    name,
    ...(random.chance(0.8)
      ? { allocatedResources: requests(random, random.pick(['small', 'large'])) }
      : {}),
    ...(random.chance(0.8)
      ? { resources: { requests: requests(random, random.pick(['small', 'large'])) } }
      : {}),
  });
  const { status = {} } = pod;
  pod.status = status;
  status.containerStatuses = pod.spec.containers.map(statusOf);
  if (pod.spec.initContainers !== undefined)
    status.initContainerStatuses = pod.spec.initContainers.map(statusOf);
  if (random.chance(0.5)) addResizeCondition(random, pod);
  if (pod.spec.resources === undefined) return;
  if (random.chance(0.7)) status.resources = { requests: requests(random, 'large') };
  if (random.chance(0.7)) status.allocatedResources = requests(random, 'large');
}

function addResizeCondition(random: Random, { status, spec }: Pod): void {
  const reason = random.pick(['Infeasible', 'Deferred']);
  if (status !== undefined)
    status.conditions = [{ type: 'PodResizePending', status: 'True', reason }];
  if (reason === 'Deferred') return;
  const [first] = spec.containers;
  if (first !== undefined) first.resources = { requests: requests(random, 'large') };
}
