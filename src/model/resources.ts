// SPDX-License-Identifier: Apache-2.0
// What pods ask for and nodes offer, in plain integers so that packing thousands of pods stays cheap. A number
// beyond what a double holds exactly (8 PiB) is cut to that: no machine has so much, so nothing fits it.

import { parseLabelKey } from './labels.ts';
import { accepted, type Parsed, refused } from './parsed.ts';
import {
  formatQuantity,
  milliValue,
  parseQuantity,
  quantityFromBytes,
  quantityFromCount,
  quantityFromMilli,
  wholeValue,
} from './quantity.ts';

export interface Resources {
  readonly cpuMilli: number;
  readonly memoryBytes: number;
  readonly ephemeralStorageBytes: number;
  readonly pods: number;
  /** Everything else by its Kubernetes name (`nvidia.com/gpu`, `hugepages-2Mi`); never holds a zero. */
  readonly extended: Readonly<Record<string, number>>;
}

export interface Shortfall {
  /** The resource's Kubernetes name. */
  readonly resource: string;
  readonly needed: number;
  readonly available: number;
}

const NOTHING_EXTENDED: Resources['extended'] = Object.freeze({});

export const NO_RESOURCES: Resources = Object.freeze({
  cpuMilli: 0,
  memoryBytes: 0,
  ephemeralStorageBytes: 0,
  pods: 0,
  extended: NOTHING_EXTENDED,
});

type Basic = Exclude<keyof Resources, 'extended'>;

const BASICS: readonly (readonly [name: string, field: Basic])[] = [
  ['cpu', 'cpuMilli'],
  ['memory', 'memoryBytes'],
  ['ephemeral-storage', 'ephemeralStorageBytes'],
  ['pods', 'pods'],
];
const BASIC_BY_NAME: ReadonlyMap<string, Basic> = new Map(BASICS);

/** Reads a map such as `{cpu: '500m', memory: '1Gi', 'nvidia.com/gpu': '1'}`. Numbers are taken as their text. */
export function parseResources(
  source: Readonly<Record<string, string | number>>,
): Parsed<Resources> {
  const basics: Partial<Record<Basic, number>> = {};
  const extended: [string, number][] = [];
  for (const [name, text] of Object.entries(source)) {
    const amount = parseAmount(name, String(text));
    if (!amount.ok) return amount;
    const basic = BASIC_BY_NAME.get(name);
    if (basic === undefined) extended.push([name, amount.value]);
    else basics[basic] = amount.value;
  }
  return accepted({ ...NO_RESOURCES, ...basics, extended: withoutZeros(extended) });
}

function parseAmount(name: string, text: string): Parsed<number> {
  const checkedName = parseLabelKey(name);
  if (!checkedName.ok) return refused(`resource name: ${checkedName.problem}`);
  const quantity = parseQuantity(text);
  if (!quantity.ok) return refused(`resource '${name}': ${quantity.problem}`);
  const amount = name === 'cpu' ? milliValue(quantity.value) : wholeValue(quantity.value);
  if (amount < 0n) return refused(`resource '${name}' is negative`);
  return accepted(exact(Number(amount)));
}

function exact(amount: number): number {
  return Math.min(amount, Number.MAX_SAFE_INTEGER);
}

function withoutZeros(entries: readonly (readonly [string, number])[]): Resources['extended'] {
  const kept = entries.filter(([, amount]) => amount !== 0);
  return kept.length === 0 ? NOTHING_EXTENDED : Object.fromEntries(kept);
}

export function addResources(left: Resources, right: Resources): Resources {
  return {
    cpuMilli: exact(left.cpuMilli + right.cpuMilli),
    memoryBytes: exact(left.memoryBytes + right.memoryBytes),
    ephemeralStorageBytes: exact(left.ephemeralStorageBytes + right.ephemeralStorageBytes),
    pods: exact(left.pods + right.pods),
    extended: combineExtended(left.extended, right.extended, 1),
  };
}

/** May go below zero: nodes can be overcommitted. */
export function subtractResources(left: Resources, right: Resources): Resources {
  return {
    cpuMilli: left.cpuMilli - right.cpuMilli,
    memoryBytes: left.memoryBytes - right.memoryBytes,
    ephemeralStorageBytes: left.ephemeralStorageBytes - right.ephemeralStorageBytes,
    pods: left.pods - right.pods,
    extended: combineExtended(left.extended, right.extended, -1),
  };
}

// Most pods and nodes have no extended resources at all; they share one empty object.
function combineExtended(
  left: Resources['extended'],
  right: Resources['extended'],
  sign: 1 | -1,
): Resources['extended'] {
  if (right === NOTHING_EXTENDED) return left;
  const names = new Set([...Object.keys(left), ...Object.keys(right)]);
  return withoutZeros(
    [...names].map((name) => [name, exact(own(left, name) + sign * own(right, name))]),
  );
}

function own(extended: Resources['extended'], name: string): number {
  return Object.hasOwn(extended, name) ? (extended[name] ?? 0) : 0;
}

export function fits(needed: Resources, available: Resources): boolean {
  return (
    isEnough(needed.cpuMilli, available.cpuMilli) &&
    isEnough(needed.memoryBytes, available.memoryBytes) &&
    isEnough(needed.ephemeralStorageBytes, available.ephemeralStorageBytes) &&
    isEnough(needed.pods, available.pods) &&
    (needed.extended === NOTHING_EXTENDED || fitsExtended(needed.extended, available.extended))
  );
}

// Who asks for none of a resource fits even where it is overcommitted; so the scheduler sees it.
function isEnough(needed: number, available: number): boolean {
  return needed <= 0 || needed <= available;
}

function fitsExtended(needed: Resources['extended'], available: Resources['extended']): boolean {
  return Object.keys(needed).every((name) => isEnough(own(needed, name), own(available, name)));
}

/** What is missing, resource by resource; empty exactly when it fits. */
export function shortfall(needed: Resources, available: Resources): readonly Shortfall[] {
  const basics = BASICS.map(([resource, field]) => ({
    resource,
    needed: needed[field],
    available: available[field],
  }));
  const extended = Object.keys(needed.extended).map((resource) => ({
    resource,
    needed: own(needed.extended, resource),
    available: own(available.extended, resource),
  }));
  return [...basics, ...extended].filter((one) => !isEnough(one.needed, one.available));
}

export function isEmptyResources(resources: Resources): boolean {
  return (
    BASICS.every(([, field]) => resources[field] === 0) &&
    Object.keys(resources.extended).length === 0
  );
}

/** One amount as a quantity of the kind its resource is counted in: `500m` CPU, `1Gi` memory. */
export function formatAmount(resource: string, amount: number): string {
  if (resource === 'cpu') return formatQuantity(quantityFromMilli(amount));
  return formatQuantity(isBytes(resource) ? quantityFromBytes(amount) : quantityFromCount(amount));
}

function isBytes(resource: string): boolean {
  return (
    resource === 'memory' || resource === 'ephemeral-storage' || resource.startsWith('hugepages-')
  );
}

/** The map of quantities that parseResources reads back; zeros are left out. */
export function resourceQuantities(resources: Resources): Readonly<Record<string, string>> {
  const basics = BASICS.map(([name, field]) => [name, resources[field]] as const);
  const amounts = [...basics, ...Object.entries(resources.extended)];
  return Object.fromEntries(
    amounts
      .filter(([, amount]) => amount !== 0)
      .map(([name, amount]) => [name, formatAmount(name, amount)]),
  );
}

/** For people: `cpu 500m, memory 1Gi`. */
export function formatResources(resources: Resources): string {
  const amounts = Object.entries(resourceQuantities(resources));
  return amounts.length === 0 ? 'nothing' : amounts.map((pair) => pair.join(' ')).join(', ');
}
