// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { addressesInUse, heldAddressesOf } from './held-addresses.ts';
import { PHASES, parseMachineId } from './machine.ts';

const id = parseMachineId('3c9f4a52-7d1b-4c5e-9a6f-0b2d4e6f8a10');
if (!id.ok) throw new Error(id.problem);
const ADDRESSES = ['10.10.10.11/24'];
const MACHINE = {
  id: id.value,
  phaseSince: 7,
  placement: {
    region: 'lab',
    host: 'pve1',
    vmId: 1_250,
    name: 'worker-1',
    diskStorage: 'local-lvm',
    addresses: ADDRESSES,
  },
};

describe('a machine with static addresses', () => {
  it.each(PHASES)('has them, unless it is over, in phase %s', (phase) => {
    const isOver = phase === 'gone' || phase === 'failed';
    const machine = { ...MACHINE, phase };
    const held = { machine: MACHINE.id, addresses: ADDRESSES };
    expect(heldAddressesOf(machine)).toEqual({ ...held, ...(isOver && { releasedAt: 7 }) });
    expect(addressesInUse([machine])).toEqual(isOver ? [] : ADDRESSES);
    expect(heldAddressesOf({ ...machine, isVmLeft: true })).toEqual(held);
    expect(addressesInUse([{ ...machine, isVmLeft: true }])).toEqual(ADDRESSES);
  });

  it('has none before it is placed', () => {
    const { placement: _, ...machine } = MACHINE;
    expect(heldAddressesOf({ ...machine, phase: 'requested' }).addresses).toEqual([]);
  });
});
