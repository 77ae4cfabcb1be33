// SPDX-License-Identifier: Apache-2.0
// Resource amounts of pods and nodes as plain integers, which keeps packing thousands of pods fast. An amount
// above Number.MAX_SAFE_INTEGER (8 PiB) is capped there: no machine has as much, so it never fits.

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
  /** All other resources by Kubernetes name (`nvidia.com/gpu`, `hugepages-2Mi`). Never contains a zero. */
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

/** Parses a map such as `{cpu: '500m', memory: '1Gi', 'nvidia.com/gpu': '1'}`. */
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
  if (amount < 0n) return refused(`resource '${name}' must not be negative`);
  return accepted(capAmount(Number(amount)));
}

function capAmount(amount: number): number {
  return Math.min(amount, Number.MAX_SAFE_INTEGER);
}

function withoutZeros(entries: readonly (readonly [string, number])[]): Resources['extended'] {
  const kept = entries.filter(([, amount]) => amount !== 0);
  return kept.length === 0 ? NOTHING_EXTENDED : Object.fromEntries(kept);
}

export function addResources(left: Resources, right: Resources): Resources {
  return {
    cpuMilli: capAmount(left.cpuMilli + right.cpuMilli),
    memoryBytes: capAmount(left.memoryBytes + right.memoryBytes),
    ephemeralStorageBytes: capAmount(left.ephemeralStorageBytes + right.ephemeralStorageBytes),
    pods: capAmount(left.pods + right.pods),
    extended: combineExtended(left.extended, right.extended, 1),
  };
}

/** The result may be negative: nodes can be overcommitted. */
export function subtractResources(left: Resources, right: Resources): Resources {
  return {
    cpuMilli: left.cpuMilli - right.cpuMilli,
    memoryBytes: left.memoryBytes - right.memoryBytes,
    ephemeralStorageBytes: left.ephemeralStorageBytes - right.ephemeralStorageBytes,
    pods: left.pods - right.pods,
    extended: combineExtended(left.extended, right.extended, -1),
  };
}

// Most pods and nodes have no extended resources; they share one empty object.
function combineExtended(
  left: Resources['extended'],
  right: Resources['extended'],
  sign: 1 | -1,
): Resources['extended'] {
  if (right === NOTHING_EXTENDED) return left;
  const names = new Set([...Object.keys(left), ...Object.keys(right)]);
  return withoutZeros(
    [...names].map((name) => [
      name,
      capAmount(amountOf(left, name) + sign * amountOf(right, name)),
    ]),
  );
}

function amountOf(extended: Resources['extended'], name: string): number {
  return Object.hasOwn(extended, name) ? (extended[name] ?? 0) : 0;
}

export function resourcesFit(needed: Resources, available: Resources): boolean {
  return (
    isEnough(needed.cpuMilli, available.cpuMilli) &&
    isEnough(needed.memoryBytes, available.memoryBytes) &&
    isEnough(needed.ephemeralStorageBytes, available.ephemeralStorageBytes) &&
    isEnough(needed.pods, available.pods) &&
    (needed.extended === NOTHING_EXTENDED || fitsExtended(needed.extended, available.extended))
  );
}

// As in the scheduler, a request of 0 fits even where the resource is overcommitted.
function isEnough(needed: number, available: number): boolean {
  return needed <= 0 || needed <= available;
}

function fitsExtended(needed: Resources['extended'], available: Resources['extended']): boolean {
  return Object.keys(needed).every((name) =>
    isEnough(amountOf(needed, name), amountOf(available, name)),
  );
}

/** What is missing, by resource. Empty if and only if everything fits. */
export function findShortfalls(needed: Resources, available: Resources): readonly Shortfall[] {
  const basics = BASICS.map(([resource, field]) => ({
    resource,
    needed: needed[field],
    available: available[field],
  }));
  const extended = Object.keys(needed.extended).map((resource) => ({
    resource,
    needed: amountOf(needed.extended, resource),
    available: amountOf(available.extended, resource),
  }));
  return [...basics, ...extended].filter((one) => !isEnough(one.needed, one.available));
}

/** Formats an amount in the unit of its resource: `500m` CPU, `1Gi` memory. */
export function formatAmount(resource: string, amount: number): string {
  if (resource === 'cpu') return formatQuantity(quantityFromMilli(amount));
  return formatQuantity(
    isByteResource(resource) ? quantityFromBytes(amount) : quantityFromCount(amount),
  );
}

export function isByteResource(resource: string): boolean {
  return (
    resource === 'memory' || resource === 'ephemeral-storage' || resource.startsWith('hugepages-')
  );
}

/** The quantities by name, which parseResources reads back. Zeros are omitted. */
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
