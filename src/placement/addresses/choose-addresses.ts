// SPDX-License-Identifier: Apache-2.0
// Chooses static addresses: the lowest free one of each family. Every known use of an address counts as a
// conflict, because two machines with the same address both fail in ways that are hard to diagnose.
import type { HeldAddresses } from '../../model/held-addresses.ts';
import type { MachineId } from '../../model/machine.ts';
import { COOL_DOWN_MS, coolDownLeftMs, formatMinutes } from '../cool-down.ts';
import { type AddressRange, type Family, formatAddress } from './address.ts';
import { type AddressHold, AddressPool } from './address-pool.ts';

export type FamilyRule =
  | { readonly kind: 'dhcp' | 'auto' | 'off' }
  | {
      readonly kind: 'static';
      readonly ranges: readonly AddressRange[];
      readonly prefix: number;
      readonly gateway: string | undefined;
    };

export interface AddressRequest {
  readonly machine: MachineId;
  readonly v4: FamilyRule;
  readonly v6: FamilyRule;
  /**
   * Addresses in the configurations of other VMs and in Nodes, in any notation: with or without prefix length
   * or zone.
   */
  readonly taken: readonly string[];
  /** Of all machines in the region, including those that are over. */
  readonly held: readonly HeldAddresses[];
  readonly now: number;
  readonly coolDownMs?: number | undefined;
}

export type AddressChoice =
  /** In CIDR form, v4 first. Empty if no family is static. */
  { readonly chosen: true; readonly addresses: readonly string[] } | NoAddressFree;

interface NoAddressFree {
  readonly chosen: false;
  readonly code: 'NO_ADDRESS_FREE';
  readonly family: Family;
  readonly message: string;
  readonly numbers: Readonly<Record<string, number | string>>;
}

type StaticRule = Extract<FamilyRule, { kind: 'static' }>;

/** For machines that hold no address yet. */
type CountRequest = Omit<AddressRequest, 'machine'>;

export function chooseAddresses(request: AddressRequest): AddressChoice {
  const addresses: string[] = [];
  for (const { family, rule } of staticFamilies(request)) {
    const pool = new AddressPool(family, rule);
    const found = pickAddress(pool, request);
    if (found === undefined) return noAddressFree(pool, rule, request);
    addresses.push(`${formatAddress({ family, value: found })}/${rule.prefix}`);
  }
  return { chosen: true, addresses };
}

/** How many machines would get addresses, up to `atMost`, and why no more. */
export function countFreeAddresses(
  request: CountRequest,
  atMost: number,
): { readonly count: number; readonly reason: string | undefined } {
  let fewest: { readonly count: number; readonly reason: string | undefined } = {
    count: atMost,
    reason: undefined,
  };
  for (const { family, rule } of staticFamilies(request)) {
    const pool = new AddressPool(family, rule);
    markHeld(pool, request.held, request);
    const count = pool.countFree(atMost);
    if (count < fewest.count)
      fewest = { count, reason: noAddressFree(pool, rule, request).message };
  }
  return fewest;
}

function staticFamilies({ v4, v6 }: Pick<AddressRequest, 'v4' | 'v6'>) {
  const families: { readonly family: Family; readonly rule: StaticRule }[] = [];
  if (v4.kind === 'static') families.push({ family: 4, rule: v4 });
  if (v6.kind === 'static') families.push({ family: 6, rule: v6 });
  return families;
}

function markHeld(pool: AddressPool, held: readonly HeldAddresses[], request: CountRequest): void {
  for (const text of request.taken) pool.hold(text, 'used');
  for (const one of held) {
    const hold = holdOf(one, request);
    if (hold !== undefined) for (const address of one.addresses) pool.hold(address, hold);
  }
}

function pickAddress(pool: AddressPool, request: AddressRequest): bigint | undefined {
  const isOwn = ({ machine }: HeldAddresses) => machine === request.machine;
  const others = request.held.filter((one) => !isOwn(one));
  markHeld(pool, others, request);
  // A machine that is placed again keeps its address.
  const own = request.held.filter(isOwn).flatMap(({ addresses }) => addresses);
  return own.flatMap((address) => pool.freeValue(address) ?? [])[0] ?? pool.lowestFree();
}

function heldCoolDownLeftMs({ releasedAt }: HeldAddresses, request: CountRequest): number {
  const { now, coolDownMs = COOL_DOWN_MS } = request;
  return releasedAt === undefined ? 0 : coolDownLeftMs(releasedAt, now, coolDownMs);
}

function holdOf(held: HeldAddresses, request: CountRequest): AddressHold | undefined {
  if (held.releasedAt === undefined) return 'leased';
  return heldCoolDownLeftMs(held, request) > 0 ? 'cooling-down' : undefined;
}

function noAddressFree(pool: AddressPool, rule: StaticRule, request: CountRequest): NoAddressFree {
  const numbers = {
    addresses: pool.size(),
    leased: pool.count('leased'),
    coolingDown: pool.count('cooling-down'),
    used: pool.count('used'),
  };
  const coolDownMs = nextFreeInMs(pool, request);
  const ranges = rule.ranges.map(({ from, to }) => (from === to ? from : `${from}-${to}`));
  return {
    chosen: false,
    code: 'NO_ADDRESS_FREE',
    family: pool.family,
    message:
      `no IPv${pool.family} address of ${ranges.join(', ')} is free (total: ${numbers.addresses}, leased: ${numbers.leased}, ` +
      `cooling down: ${numbers.coolingDown}, used by other VMs or Nodes: ${numbers.used})` +
      (coolDownMs === undefined ? '' : `; the next is free in ${formatMinutes(coolDownMs)}`),
    numbers: coolDownMs === undefined ? numbers : { ...numbers, nextFreeInMs: coolDownMs },
  };
}

function nextFreeInMs(pool: AddressPool, request: CountRequest): number | undefined {
  // An address may have been released twice; only the last cool-down counts.
  const coolDowns = new Map<string, number>();
  for (const held of request.held) {
    const left = heldCoolDownLeftMs(held, request);
    for (const address of held.addresses) {
      if (pool.holdOf(address) === 'cooling-down')
        coolDowns.set(address, Math.max(coolDowns.get(address) ?? 0, left));
    }
  }
  return coolDowns.size === 0 ? undefined : Math.min(...coolDowns.values());
}
