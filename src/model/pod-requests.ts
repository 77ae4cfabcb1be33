// SPDX-License-Identifier: Apache-2.0
// What a pod asks for as a whole. Containers run side by side and add up; init containers run one after the
// other before them, so the largest counts; sidecars start among the init containers and stay.

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

/** Amounts in units of 10⁻⁹, by resource: sums are rounded once, at the end, as Kubernetes does. */
type Amounts = ReadonlyMap<string, bigint>;

const NOTHING: Amounts = new Map();

/** What it needs to be placed. */
export function podRequests(pod: PodSource): Parsed<Resources> {
  return guarded(() => totalRequests(pod, undefined));
}

/** What it holds where it runs. During a resize in place that is the most of wish, grant and use. */
export function podHeld(pod: PodSource): Parsed<Resources> {
  return guarded(() => totalRequests(pod, pod.status ?? undefined));
}

class BadQuantity extends Error {}

function guarded(compute: () => Resources): Parsed<Resources> {
  try {
    return accepted(compute());
  } catch (error) {
    if (error instanceof BadQuantity) return refused(error.message);
    throw error;
  }
}

function totalRequests(pod: PodSource, status: PodStatusSource | undefined): Resources {
  const spec = pod.spec ?? {};
  const ask = asker(status);
  const containers = ofContainers(spec.containers ?? [], spec.initContainers ?? [], ask);
  const whole = ofWholePod(pod, status);
  return rounded(add(new Map([...containers, ...whole]), read(spec.overhead)));
}

type Ask = (container: ContainerSource) => Amounts;

// Without a status the spec speaks alone: the pod runs nowhere yet.
function asker(status: PodStatusSource | undefined): Ask {
  if (status === undefined) return ({ resources }) => read(resources?.requests);
  const known = new Map<string, ContainerStatusSource>(
    [...(status.containerStatuses ?? []), ...(status.initContainerStatuses ?? [])].map((one) => [
      one.name,
      one,
    ]),
  );
  const isRefused = isResizeRefused(status);
  return ({ name, resources }) => {
    const spec = read(resources?.requests);
    const reported = known.get(name ?? '');
    if (!reported?.resources) return spec;
    const wish = isRefused ? NOTHING : spec;
    return largest(wish, read(reported.resources.requests), read(reported.allocatedResources));
  };
}

// A resize that the node can never grant does not count as a wish.
function isResizeRefused(status: PodStatusSource): boolean {
  const pending = status.conditions?.find((one) => one.type === 'PodResizePending');
  return pending?.reason === 'Infeasible';
}

function ofContainers(
  containers: readonly ContainerSource[],
  initContainers: readonly ContainerSource[],
  ask: Ask,
): Amounts {
  let together = containers.reduce((sum, one) => add(sum, ask(one)), NOTHING);
  let sidecars = NOTHING;
  let starting = NOTHING;
  for (const container of initContainers) {
    if (isSidecar(container)) {
      const own = ask(container);
      together = add(together, own);
      sidecars = add(sidecars, own);
      starting = largest(starting, sidecars);
    } else {
      // The kubelet never resizes an init container, so only its spec counts.
      starting = largest(starting, add(read(container.resources?.requests), sidecars));
    }
  }
  return largest(together, starting);
}

export function isSidecar(initContainer: ContainerSource): boolean {
  return initContainer.restartPolicy === 'Always';
}

// Requests for the pod as a whole take the place of the sum, resource by resource.
function ofWholePod(pod: PodSource, status: PodStatusSource | undefined): Amounts {
  const own = [...read(pod.spec?.resources?.requests)].filter(([name]) => isPodLevel(name));
  if (!status?.resources) return new Map(own);
  const wish = isResizeRefused(status) ? NOTHING : new Map(own);
  const effective = largest(wish, read(status.resources.requests), read(status.allocatedResources));
  return new Map(own.map(([name]) => [name, effective.get(name) ?? 0n]));
}

function isPodLevel(name: string): boolean {
  return name === 'cpu' || name === 'memory' || name.startsWith('hugepages-');
}

function read(quantities: QuantityMap | null | undefined): Amounts {
  if (quantities === null || quantities === undefined) return NOTHING;
  return new Map(
    Object.entries(quantities).map(([name, text]) => {
      const quantity = parseQuantity(String(text));
      if (!quantity.ok) throw new BadQuantity(`resource '${name}': ${quantity.problem}`);
      return [name, quantity.value.nano];
    }),
  );
}

function add(left: Amounts, right: Amounts): Amounts {
  if (right.size === 0) return left;
  const sum = new Map(left);
  for (const [name, amount] of right) sum.set(name, (sum.get(name) ?? 0n) + amount);
  return sum;
}

function largest(...all: readonly Amounts[]): Amounts {
  const result = new Map<string, bigint>();
  for (const [name, amount] of all.flatMap((one) => [...one])) {
    const known = result.get(name);
    if (known === undefined || amount > known) result.set(name, amount);
  }
  return result;
}

function rounded(amounts: Amounts): Resources {
  const extended = [...amounts]
    .filter(([name, amount]) => amount > 0n && isCountable(name))
    .map(([name, amount]) => [name, whole(amount)] as const);
  return {
    cpuMilli: capped(milliValue({ nano: amounts.get('cpu') ?? 0n, format: 'DecimalSI' })),
    memoryBytes: whole(amounts.get('memory') ?? 0n),
    ephemeralStorageBytes: whole(amounts.get('ephemeral-storage') ?? 0n),
    pods: 1,
    extended: extended.length === 0 ? NO_RESOURCES.extended : Object.fromEntries(extended),
  };
}

// A plain name that is none of the known ones ("storage", "pods") is nothing a node is checked for.
function isCountable(name: string): boolean {
  if (name.includes('/')) return !name.startsWith('requests.') || name.includes('kubernetes.io/');
  return name.startsWith('hugepages-') || name.startsWith('attachable-volumes-');
}

function whole(nano: bigint): number {
  return capped(wholeValue({ nano, format: 'DecimalSI' }));
}

function capped(amount: bigint): number {
  return Math.min(Number(amount), Number.MAX_SAFE_INTEGER);
}
