// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { COOL_DOWN_MS } from '../../placement/index.ts';
import {
  aMachine,
  aMachineId,
  anAddressLease,
  anIntent,
} from '../../ports/fakes/sample-records.ts';
import { aTestFleet, machinesIn, onePass, REASON, untilAtRest } from '../testing/test-fleet.ts';

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

  it('keeps released addresses for the cool-down', async () => {
    const testFleet = aTestFleet();
    const { clock, store } = testFleet;
    const keptMs = COOL_DOWN_MS + 5 * MINUTE_MS;
    for (const [at, address] of ['10.10.10.11', '10.10.10.12'].entries()) {
      const releasedAt = clock.now() - keptMs - at;
      const lease = anAddressLease({ address, region: 'memory', releasedAt });
      await store.addresses.create(`memory/${address}`, lease);
    }
    await onePass(testFleet.fleet, testFleet);
    const left = (await store.addresses.list()).map(({ value }) => value.address);
    expect(left).toEqual(['10.10.10.11']);
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
