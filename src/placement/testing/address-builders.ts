// SPDX-License-Identifier: Apache-2.0
import type { HeldAddresses } from '../../model/held-addresses.ts';
import { type MachineId, parseMachineId } from '../../model/machine.ts';
import {
  type AddressRequest,
  chooseAddresses,
  type FamilyRule,
} from '../addresses/choose-addresses.ts';

export const NOW = 1_000_000_000;
export const MINUTE = 60_000;
export const OWN_MACHINE = machineId('3c9f4a52-7d1b-4c5e-9a6f-0b2d4e6f8a10');
const OTHER_MACHINE = machineId('aaaaaaaa-7d1b-4c5e-9a6f-0b2d4e6f8a10');

export type StaticRule = Extract<FamilyRule, { kind: 'static' }>;

export function staticRule(
  from: string,
  to: string,
  overrides: Partial<StaticRule> = {},
): StaticRule {
  return { kind: 'static', ranges: [{ from, to }], prefix: 24, gateway: undefined, ...overrides };
}

export const V4 = staticRule('10.10.10.11', '10.10.10.14', { gateway: '10.10.10.1' });
export const V6 = staticRule('2001:db8::', '2001:db8::ffff:ffff:ffff:ffff', {
  prefix: 64,
  gateway: '2001:db8::1',
});

export function held(address: string, overrides: Partial<HeldAddresses> = {}): HeldAddresses {
  return { machine: OTHER_MACHINE, addresses: [address], ...overrides };
}

export function chooseWith(overrides: Partial<AddressRequest> = {}) {
  return chooseAddresses({
    machine: OWN_MACHINE,
    v4: V4,
    v6: { kind: 'auto' },
    taken: [],
    held: [],
    now: NOW,
    ...overrides,
  });
}

export function chosenAddresses(
  overrides: Partial<AddressRequest> = {},
): readonly string[] | string {
  const choice = chooseWith(overrides);
  return choice.chosen ? choice.addresses : choice.code;
}

function machineId(text: string): MachineId {
  const parsed = parseMachineId(text);
  if (!parsed.ok) throw new Error(parsed.problem);
  return parsed.value;
}
