// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { countOutcomes } from '../../ports/contract/store-fixture.contract.ts';
import { aPool, someSettings } from '../testing/settings.ts';
import {
  aFleet,
  aTestFleet,
  leftovers,
  machinesIn,
  onePass,
  untilAtRest,
  WHY,
} from '../testing/test-fleet.ts';

async function targetOf(bench: ReturnType<typeof aTestFleet>): Promise<number | undefined> {
  return (await bench.fleet.status()).pools[0]?.target;
}

describe('asking for machines', () => {
  it('never exceeds the maximum, however many ask at once', async () => {
    const bench = aTestFleet();
    const { resolved, codes } = await countOutcomes(
      Array.from({ length: 7 }, () => bench.fleet.request('workers', 3, WHY)),
    );
    expect({ resolved, codes: new Set(codes) }).toEqual({
      resolved: 3,
      codes: new Set(['POOL_AT_MAXIMUM']),
    });
    expect(await targetOf(bench)).toBe(9);
  });

  it('never makes more than the maximum when two processes asked at the same instant', async () => {
    const bench = aTestFleet();
    const other = aFleet({ ...bench, settings: someSettings(), seed: 9 });
    await Promise.all([bench.fleet.request('workers', 6, WHY), other.request('workers', 6, WHY)]);
    await untilAtRest(bench.fleet, bench);
    expect(leftovers(bench.hypervisor).vms).toHaveLength(10);
    const failed = (await machinesIn(bench.store)).filter(({ phase }) => phase === 'failed');
    expect(failed.map(({ failure }) => failure?.code)).toEqual([
      'POOL_AT_MAXIMUM',
      'POOL_AT_MAXIMUM',
    ]);
  });

  it('is called off by another desk until the very call that makes the VM', async () => {
    const settings = someSettings([aPool({ source: { kind: 'netboot' }, seed: undefined })]);
    const bench = aTestFleet(settings);
    const other = aFleet({ ...bench, settings, seed: 9 });
    await bench.fleet.request('workers', 1, WHY);
    const view = bench.hypervisor.view.bind(bench.hypervisor);
    bench.hypervisor.view = async (options) => {
      bench.hypervisor.view = view;
      // The round has read the records by now.
      expect((await other.cancel('workers', 1, WHY)).machines).toHaveLength(1);
      return view(options);
    };
    await onePass(bench.fleet, bench);
    await untilAtRest(bench.fleet, bench);
    const made = bench.hypervisor.calls.filter(({ method }) => method === 'createVm');
    expect(made).toEqual([]);
    expect((await machinesIn(bench.store)).map(({ phase }) => phase)).toEqual(['gone']);
  });

  it('asks for nothing when the caller gave up before it was durable', async () => {
    const bench = aTestFleet();
    const abort = new AbortController();
    const call = bench.fleet.request('workers', 1, { ...WHY, signal: abort.signal });
    abort.abort();
    await expect(call).rejects.toMatchObject({ code: 'CANCELLED' });
    expect(await bench.store.intents.list()).toEqual([]);
    expect(await targetOf(bench)).toBe(0);
  });

  it('goes on after a call that failed', async () => {
    const bench = aTestFleet();
    const calls = [bench.fleet.request('workers', 11, WHY), bench.fleet.request('workers', 1, WHY)];
    expect((await Promise.allSettled(calls)).map(({ status }) => status)).toEqual([
      'rejected',
      'fulfilled',
    ]);
  });
});

describe('taking machines away', () => {
  it('takes each one once, however many single calls come at once', async () => {
    const bench = aTestFleet();
    await bench.fleet.request('workers', 4, WHY);
    await untilAtRest(bench.fleet, bench);
    const ids = (await machinesIn(bench.store)).map(({ id }) => id).slice(0, 3);
    await Promise.all([...ids, ...ids].map((id) => bench.fleet.remove([id], WHY)));
    expect(await targetOf(bench)).toBe(1);
    await untilAtRest(bench.fleet, bench);
    expect(leftovers(bench.hypervisor).vms).toHaveLength(1);
  });

  it('takes away what was asked for a moment ago and has no record yet', async () => {
    const bench = aTestFleet();
    const { machines } = await bench.fleet.request('workers', 2, WHY);
    await bench.fleet.remove(machines.slice(0, 1), WHY);
    expect(await targetOf(bench)).toBe(1);
    await untilAtRest(bench.fleet, bench);
    expect(leftovers(bench.hypervisor).machines).toEqual(machines.slice(1));
  });
});

describe('calling off', () => {
  it('takes only what is not made yet, and no more than there is', async () => {
    const bench = aTestFleet();
    await bench.fleet.request('workers', 2, WHY);
    await untilAtRest(bench.fleet, bench);
    await bench.fleet.request('workers', 3, WHY);
    const { machines } = await bench.fleet.cancel('workers', 9, WHY);
    expect(machines).toHaveLength(3);
    expect(await targetOf(bench)).toBe(2);
    expect((await bench.fleet.cancel('workers', 1, WHY)).machines).toEqual([]);
    await untilAtRest(bench.fleet, bench);
    expect(leftovers(bench.hypervisor).vms).toHaveLength(2);
  });

  it('holds what was not begun when the call came, although a round is under way', async () => {
    const bench = aTestFleet();
    await bench.fleet.request('workers', 6, WHY);
    const round = onePass(bench.fleet, bench);
    while ((await bench.store.machines.list()).length < 6) await Promise.resolve();
    const { machines } = await bench.fleet.cancel('workers', 6, WHY);
    await round;
    await untilAtRest(bench.fleet, bench);
    const left = leftovers(bench.hypervisor);
    expect(left.machines.filter((id) => machines.some((one) => one === id))).toEqual([]);
    expect(left.vms.length + machines.length).toBe(6);
  });

  it('forgets a failed creation once somebody has taken note of it', async () => {
    const bench = aTestFleet();
    const other = aFleet({ ...bench, settings: someSettings(), seed: 9 });
    await Promise.all([bench.fleet.request('workers', 10, WHY), other.request('workers', 1, WHY)]);
    await untilAtRest(bench.fleet, bench);
    const failed = (await machinesIn(bench.store)).filter(({ phase }) => phase === 'failed');
    await bench.fleet.remove(
      failed.map(({ id }) => id),
      WHY,
    );
    await untilAtRest(bench.fleet, bench);
    const after = (await machinesIn(bench.store)).filter(({ id }) => id === failed[0]?.id);
    expect(after.map(({ phase }) => phase)).toEqual(['gone']);
    expect(await targetOf(bench)).toBe(10);
  });
});
