// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { COOL_DOWN_MS } from '../../placement/index.ts';
import { Unreachable } from '../../ports/errors.ts';
import { aMachine, aMachineId, anIntent } from '../../ports/fakes/sample-records.ts';
import { aPool, REGION, STATIC_NETWORK, someSettings } from '../testing/settings.ts';
import {
  addressesInUse,
  aTestFleet,
  machinesIn,
  onePass,
  REASON,
  replaceVm,
  runPasses,
  type TestFleet,
  untilAtRest,
} from '../testing/test-fleet.ts';

describe('collectGarbage', () => {
  it('removes the records of deleted machines and finished intents after two hours', async () => {
    const testFleet = aTestFleet();
    await testFleet.fleet.scaleTo('workers', 1, REASON);
    await untilAtRest(testFleet.fleet, testFleet);
    await testFleet.fleet.scaleTo('workers', 0, REASON);
    await untilAtRest(testFleet.fleet, testFleet);
    await testFleet.clock.advance(2 * 3_600_000);
    await onePass(testFleet.fleet, testFleet);
    expect(await machinesIn(testFleet.store)).toEqual([]);
    expect(await testFleet.store.intents.list()).toEqual([]);
  });

  const MINUTE_MS = 60_000;

  it.each([
    ['gone', COOL_DOWN_MS + 5 * MINUTE_MS],
    ['failed', 60 * MINUTE_MS],
  ] as const)('keeps the record of a machine that is %s for %d ms', async (phase, keptMs) => {
    const testFleet = aTestFleet();
    const { clock, store } = testFleet;
    const ids = [aMachineId(1), aMachineId(2)];
    for (const [at, id] of ids.entries()) {
      const phaseSince = clock.now() - keptMs - at;
      await store.machines.create(id, aMachine({ id, phase, phaseSince }));
    }
    await onePass(testFleet.fleet, testFleet);
    expect((await machinesIn(store)).map(({ id }) => id)).toEqual([ids[0]]);
  });

  it('keeps finished intents for an hour, and open ones', async () => {
    const testFleet = aTestFleet();
    const { clock, store } = testFleet;
    const hourAgo = clock.now() - 60 * MINUTE_MS;
    const done = { state: 'done', machines: [] } as const;
    await store.intents.create('kept', anIntent({ id: 'kept', ...done, requestedAt: hourAgo }));
    const old = anIntent({ id: 'old', ...done, requestedAt: hourAgo - 1 });
    await store.intents.create('old', old);
    await onePass(testFleet.fleet, testFleet);
    expect((await store.intents.list()).map(({ value }) => value.id)).toEqual(['kept']);
  });

  it('prunes the journal once an hour, of entries older than thirty days', async () => {
    const testFleet = aTestFleet();
    const { clock, store } = testFleet;
    const rules: unknown[] = [];
    const prune = store.journal.prune.bind(store.journal);
    store.journal.prune = (rule) => {
      rules.push(rule);
      return prune(rule);
    };
    const start = clock.now();
    await onePass(testFleet.fleet, testFleet);
    await onePass(testFleet.fleet, testFleet);
    const beforeMs = start - 30 * 24 * 60 * MINUTE_MS;
    expect(rules).toEqual([{ beforeMs, keep: 100_000 }]);
    await clock.advance(60 * MINUTE_MS);
    await onePass(testFleet.fleet, testFleet);
    expect(rules).toHaveLength(2);
  });
});

describe('the addresses of a VM that was left alone', () => {
  const DAY_MS = 24 * 3_600_000;
  const ADDRESS = '10.10.10.11';

  /** A machine that was gone a day ago; its VM has the address. */
  async function leftVm(region = REGION): Promise<TestFleet> {
    const testFleet = aTestFleet(someSettings([aPool({ network: STATIC_NETWORK })]));
    const { clock, store } = testFleet;
    const placement = {
      region,
      host: 'pve1',
      vmId: 1_270,
      name: 'left',
      diskStorage: 'local-lvm',
      addresses: [`${ADDRESS}/24`],
    };
    const phaseSince = clock.now() - DAY_MS;
    const machine = aMachine({ phase: 'gone', phaseSince, placement, isVmLeft: true });
    await store.machines.create(machine.id, machine);
    replaceVm(testFleet, { vmId: 1_270, host: 'pve1' });
    return testFleet;
  }

  it('are held while the VM exists, and assigned again after a cool-down when it is gone', async () => {
    const testFleet = await leftVm();
    const { clock, store, fleet, hypervisor } = testFleet;
    await runPasses(testFleet, 2);
    expect(await addressesInUse(store)).toEqual([ADDRESS]);
    hypervisor.state.vms.delete(1_270);
    await fleet.request('workers', 1, REASON);
    await untilAtRest(fleet, testFleet);
    expect(await addressesInUse(store)).toEqual(['10.10.10.12']);
    await clock.advance(COOL_DOWN_MS);
    await fleet.request('workers', 1, REASON);
    await runPasses(testFleet, 2);
    expect((await addressesInUse(store)).toSorted()).toEqual([ADDRESS, '10.10.10.12']);
    await clock.advance(10 * 60_000);
    await onePass(fleet, testFleet);
    expect((await machinesIn(store)).map(({ phase }) => phase)).not.toContain('gone');
  });

  it('are held while the region cannot be read', async () => {
    const testFleet = await leftVm();
    testFleet.hypervisor.state.vms.delete(1_270);
    testFleet.hypervisor.failNext('view', new Unreachable('PVE_UNREACHABLE', 'no route to host'));
    await onePass(testFleet.fleet, testFleet);
    expect(await addressesInUse(testFleet.store)).toEqual([ADDRESS]);
  });

  it('are not held after another machine has got the VM id', async () => {
    const testFleet = await leftVm();
    const [left] = await machinesIn(testFleet.store);
    const other = aMachine({
      id: aMachineId(2),
      phase: 'kept',
      placement: { ...left!.placement!, addresses: [] },
    });
    await testFleet.store.machines.create(other.id, other);
    await onePass(testFleet.fleet, testFleet);
    expect(await addressesInUse(testFleet.store)).toEqual([]);
  });

  it('are not held in a region that is not in the config', async () => {
    const testFleet = await leftVm('removed');
    await onePass(testFleet.fleet, testFleet);
    expect(await addressesInUse(testFleet.store)).toEqual([]);
  });
});
