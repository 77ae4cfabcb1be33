// SPDX-License-Identifier: Apache-2.0
// Static addresses: the lowest that nobody has. A conflict is looked for in everything that is known, since
// two machines with one address both look broken and neither says why.
import type { AddressLease } from '../../model/address-lease.ts';
import type { MachineId } from '../../model/machine-id.ts';
import { COOL_DOWN_MS, inMinutes, restLeftMs } from '../cool-down.ts';
import { type AddressSpan, addressText, type Family } from './address.ts';
import { AddressPool, type Hold } from './address-pool.ts';

export type FamilyRule =
  | { readonly kind: 'dhcp' | 'auto' | 'off' }
  | {
      readonly kind: 'static';
      readonly ranges: readonly AddressSpan[];
      readonly prefix: number;
      readonly gateway: string | undefined;
    };

export interface AddressRequest {
  readonly region: string;
  readonly machine: MachineId;
  readonly v4: FamilyRule;
  readonly v6: FamilyRule;
  /** What other VMs' configurations and Nodes name, in any form: bare, with prefix length, with zone. */
  readonly taken: readonly string[];
  /** All of them, released ones too. */
  readonly leases: readonly AddressLease[];
  readonly now: number;
  readonly coolDownMs?: number | undefined;
}

export type AddressChoice =
  /** In CIDR form, v4 first; none where nothing is static. */
  { readonly chosen: true; readonly addresses: readonly string[] } | NoneFree;

interface NoneFree {
  readonly chosen: false;
  readonly code: 'NO_ADDRESS_FREE';
  readonly family: Family;
  readonly sentence: string;
  readonly numbers: Readonly<Record<string, number | string>>;
}

type StaticRule = Extract<FamilyRule, { kind: 'static' }>;

/** Of machines that hold nothing yet. */
type CountRequest = Omit<AddressRequest, 'machine'>;

export function chooseAddresses(request: AddressRequest): AddressChoice {
  const addresses: string[] = [];
  for (const { family, rule } of staticFamilies(request)) {
    const pool = new AddressPool(family, rule);
    const found = pickFrom(pool, request);
    if (found === undefined) return noneFree(pool, rule, request);
    addresses.push(`${addressText({ family, value: found })}/${rule.prefix}`);
  }
  return { chosen: true, addresses };
}

/** As many machines as would get theirs one after the other, at most so many; and why not one more. */
export function countAddresses(
  request: CountRequest,
  atMost: number,
): { readonly count: number; readonly reason: string | undefined } {
  let fewest: { readonly count: number; readonly reason: string | undefined } = {
    count: atMost,
    reason: undefined,
  };
  for (const { family, rule } of staticFamilies(request)) {
    const pool = new AddressPool(family, rule);
    holdAll(pool, leasesHere(request), request);
    const count = pool.countFree(atMost);
    if (count < fewest.count) fewest = { count, reason: noneFree(pool, rule, request).sentence };
  }
  return fewest;
}

function staticFamilies({ v4, v6 }: Pick<AddressRequest, 'v4' | 'v6'>) {
  const families: { readonly family: Family; readonly rule: StaticRule }[] = [];
  if (v4.kind === 'static') families.push({ family: 4, rule: v4 });
  if (v6.kind === 'static') families.push({ family: 6, rule: v6 });
  return families;
}

function holdAll(pool: AddressPool, leases: readonly AddressLease[], request: CountRequest): void {
  for (const text of request.taken) pool.hold(text, 'used');
  for (const lease of leases) {
    const hold = holdOf(lease, request);
    if (hold !== undefined) pool.hold(lease.address, hold);
  }
}

function pickFrom(pool: AddressPool, request: AddressRequest): bigint | undefined {
  holdAll(pool, leasesOfOthers(request), request);
  // A crash between lease and placement must not cost a second address.
  const own = ownLeases(request).flatMap(({ address }) => pool.freeValue(address) ?? []);
  return own[0] ?? pool.lowestFree();
}

function leasesHere({ leases, region }: CountRequest): readonly AddressLease[] {
  return leases.filter((lease) => lease.region === region);
}

function isOwn({ machine, releasedAt }: AddressLease, request: AddressRequest): boolean {
  return machine === request.machine && releasedAt === undefined;
}

function ownLeases(request: AddressRequest): readonly AddressLease[] {
  return leasesHere(request)
    .filter((lease) => isOwn(lease, request))
    .toSorted((left, right) => (left.address < right.address ? -1 : 1));
}

function leasesOfOthers(request: AddressRequest): readonly AddressLease[] {
  return leasesHere(request).filter((lease) => !isOwn(lease, request));
}

function restLeft({ releasedAt }: AddressLease, request: CountRequest): number {
  const { now, coolDownMs = COOL_DOWN_MS } = request;
  return releasedAt === undefined ? 0 : restLeftMs(releasedAt, now, coolDownMs);
}

function holdOf(lease: AddressLease, request: CountRequest): Hold | undefined {
  if (lease.releasedAt === undefined) return 'leased';
  return restLeft(lease, request) > 0 ? 'resting' : undefined;
}

function noneFree(pool: AddressPool, rule: StaticRule, request: CountRequest): NoneFree {
  const numbers = {
    addresses: pool.size(),
    leased: pool.count('leased'),
    resting: pool.count('resting'),
    used: pool.count('used'),
  };
  const rests = leasesHere(request)
    .filter(({ address }) => pool.holdOf(address) === 'resting')
    .map((lease) => restLeft(lease, request));
  const rest = rests.length === 0 ? undefined : Math.min(...rests);
  const ranges = rule.ranges.map(({ from, to }) => (from === to ? from : `${from}-${to}`));
  return {
    chosen: false,
    code: 'NO_ADDRESS_FREE',
    family: pool.family,
    sentence:
      `no IPv${pool.family} address of ${ranges.join(', ')} is free (all: ${numbers.addresses}, leased: ${numbers.leased}, ` +
      `freed lately: ${numbers.resting}, used by other VMs or Nodes: ${numbers.used})` +
      (rest === undefined ? '' : `; the next is free in ${inMinutes(rest)}`),
    numbers: rest === undefined ? numbers : { ...numbers, nextFreeInMs: rest },
  };
}
