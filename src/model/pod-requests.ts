// SPDX-License-Identifier: Apache-2.0
// The total requests of a pod. Containers run at the same time and add up. Init containers run one after the
// other before them, so the largest counts. Sidecars start among the init containers and keep running.

import { accepted, type Parsed, refused } from './parsed.ts';
import type {
  ContainerSource,
  ContainerStatusSource,
  PodSource,
  PodStatusSource,
  QuantityMap,
} from './pod-source.ts';
import { milliValue, parseQuantity, wholeValue } from './quantity.ts';
import { NO_RESOURCES, type Resources } from './resources.ts';

/** Amounts by resource in units of 10⁻⁹. As in Kubernetes, only the total is rounded. */
type Amounts = ReadonlyMap<string, bigint>;

const NO_AMOUNTS: Amounts = new Map();

/** What a node must have free to run the pod. */
export function podRequests(pod: PodSource): Parsed<Resources> {
  return catchInvalidQuantity(() => totalRequests(pod, undefined));
}

/** What the pod occupies on its node. During an in-place resize: the maximum of desired, allocated and actual. */
export function podHeldResources(pod: PodSource): Parsed<Resources> {
  return catchInvalidQuantity(() => totalRequests(pod, pod.status ?? undefined));
}

class InvalidQuantityError extends Error {}

function catchInvalidQuantity(compute: () => Resources): Parsed<Resources> {
  try {
    return accepted(compute());
  } catch (error) {
    if (error instanceof InvalidQuantityError) return refused(error.message);
    throw error;
  }
}

function totalRequests(pod: PodSource, status: PodStatusSource | undefined): Resources {
  const spec = pod.spec ?? {};
  const readRequests = requestsReader(status);
  const containers = containerRequests(
    spec.containers ?? [],
    spec.initContainers ?? [],
    readRequests,
  );
  const whole = podLevelRequests(pod, status);
  const requests = whole.size === 0 ? containers : new Map([...containers, ...whole]);
  return toResources(addAmounts(requests, readQuantities(spec.overhead)));
}

type ReadRequests = (container: ContainerSource) => Amounts;

// A pod without a status runs nowhere yet: only its spec counts.
function requestsReader(status: PodStatusSource | undefined): ReadRequests {
  if (status === undefined) return ({ resources }) => readQuantities(resources?.requests);
  const known = new Map<string, ContainerStatusSource>(
    [...(status.containerStatuses ?? []), ...(status.initContainerStatuses ?? [])].map((one) => [
      one.name,
      one,
    ]),
  );
  const isRefused = isResizeRefused(status);
  return ({ name, resources }) => {
    const spec = readQuantities(resources?.requests);
    const reported = known.get(name ?? '');
    if (!reported?.resources) return spec;
    const desired = isRefused ? NO_AMOUNTS : spec;
    return maxAmounts(
      desired,
      readQuantities(reported.resources.requests),
      readQuantities(reported.allocatedResources),
    );
  };
}

// A resize that the node can never grant does not count.
function isResizeRefused(status: PodStatusSource): boolean {
  const pending = status.conditions?.find((one) => one.type === 'PodResizePending');
  return pending?.reason === 'Infeasible';
}

function containerRequests(
  containers: readonly ContainerSource[],
  initContainers: readonly ContainerSource[],
  readRequests: ReadRequests,
): Amounts {
  let together = containers.reduce((sum, one) => addAmounts(sum, readRequests(one)), NO_AMOUNTS);
  let sidecars = NO_AMOUNTS;
  let starting = NO_AMOUNTS;
  for (const container of initContainers) {
    if (isSidecar(container)) {
      const own = readRequests(container);
      together = addAmounts(together, own);
      sidecars = addAmounts(sidecars, own);
      starting = maxAmounts(starting, sidecars);
    } else {
      // The kubelet never resizes an init container, so only its spec counts.
      starting = maxAmounts(
        starting,
        addAmounts(readQuantities(container.resources?.requests), sidecars),
      );
    }
  }
  return starting.size === 0 ? together : maxAmounts(together, starting);
}

export function isSidecar(initContainer: ContainerSource): boolean {
  return initContainer.restartPolicy === 'Always';
}

// Pod-level requests replace the sum of the containers, resource by resource.
function podLevelRequests(pod: PodSource, status: PodStatusSource | undefined): Amounts {
  if (!pod.spec?.resources?.requests) return NO_AMOUNTS;
  const own = [...readQuantities(pod.spec.resources.requests)].filter(([name]) => isPodLevel(name));
  if (!status?.resources) return new Map(own);
  const desired = isResizeRefused(status) ? NO_AMOUNTS : new Map(own);
  const effective = maxAmounts(
    desired,
    readQuantities(status.resources.requests),
    readQuantities(status.allocatedResources),
  );
  return new Map(own.map(([name]) => [name, effective.get(name) ?? 0n]));
}

function isPodLevel(name: string): boolean {
  return name === 'cpu' || name === 'memory' || name.startsWith('hugepages-');
}

function readQuantities(quantities: QuantityMap | null | undefined): Amounts {
  if (quantities === null || quantities === undefined) return NO_AMOUNTS;
  return new Map(
    Object.entries(quantities).map(([name, text]) => {
      const quantity = parseQuantity(String(text));
      if (!quantity.ok) throw new InvalidQuantityError(`resource '${name}': ${quantity.problem}`);
      return [name, quantity.value.nano];
    }),
  );
}

function addAmounts(left: Amounts, right: Amounts): Amounts {
  if (right.size === 0) return left;
  if (left.size === 0) return right;
  const sum = new Map(left);
  for (const [name, amount] of right) sum.set(name, (sum.get(name) ?? 0n) + amount);
  return sum;
}

function maxAmounts(...all: readonly Amounts[]): Amounts {
  const result = new Map<string, bigint>();
  for (const [name, amount] of all.flatMap((one) => [...one])) {
    const known = result.get(name);
    if (known === undefined || amount > known) result.set(name, amount);
  }
  return result;
}

function toResources(amounts: Amounts): Resources {
  const extended = [...amounts]
    .filter(([name, amount]) => amount > 0n && isCountable(name))
    .map(([name, amount]) => [name, wholeAmount(amount)] as const);
  return {
    cpuMilli: capped(milliValue({ nano: amounts.get('cpu') ?? 0n, format: 'DecimalSI' })),
    memoryBytes: wholeAmount(amounts.get('memory') ?? 0n),
    ephemeralStorageBytes: wholeAmount(amounts.get('ephemeral-storage') ?? 0n),
    pods: 1,
    extended: extended.length === 0 ? NO_RESOURCES.extended : Object.fromEntries(extended),
  };
}

// The scheduler does not check plain names other than the known ones, such as "storage" and "pods".
function isCountable(name: string): boolean {
  if (name.includes('/')) return !name.startsWith('requests.') || name.includes('kubernetes.io/');
  return name.startsWith('hugepages-') || name.startsWith('attachable-volumes-');
}

function wholeAmount(nano: bigint): number {
  return capped(wholeValue({ nano, format: 'DecimalSI' }));
}

function capped(amount: bigint): number {
  return Math.min(Number(amount), Number.MAX_SAFE_INTEGER);
}
