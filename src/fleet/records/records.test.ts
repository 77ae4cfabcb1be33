// SPDX-License-Identifier: Apache-2.0
import { expect, it } from 'vitest';
import { MemoryStore } from '../../ports/fakes/memory-store.ts';
import { aMachineId } from '../../ports/fakes/sample-records.ts';
import { VirtualClock } from '../../ports/fakes/virtual-clock.ts';
import { RecordCache } from './record-cache.ts';
import { Records } from './records.ts';

async function openRecords() {
  const clock = new VirtualClock();
  const store = new MemoryStore({ clock });
  const lease = await store.leases.acquire({
    name: 'reconcile',
    holder: 'test',
    durationMs: 1_000,
  });
  return Records.open(new RecordCache(store), lease, () => clock.now());
}

function leaseFor(machine: number) {
  const id = aMachineId(machine);
  return { address: '10.0.0.1', region: 'lab', pool: 'workers', machine: id, leasedAt: 1 };
}

it('refuses to lease an address that another machine holds, until that machine has released it', async () => {
  const records = await openRecords();
  await records.leaseAddress(leaseFor(1));
  await expect(records.leaseAddress(leaseFor(2))).rejects.toMatchObject({
    code: 'RECORD_EXISTS',
    message: `10.0.0.1 is leased to machine ${aMachineId(1)}`,
  });
  await records.leaseAddress({ ...leaseFor(1), leasedAt: 2 });
  await records.leaseAddress({ ...leaseFor(2), region: 'other' });
  await records.releaseAddresses(aMachineId(1));
  await records.leaseAddress(leaseFor(2));
  expect(records.addresses.filter(({ region }) => region === 'lab')).toEqual([leaseFor(2)]);
});
