// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it, onTestFinished } from 'vitest';
import { Unreachable } from '../../ports/errors.ts';
import { advanceUntilSettled } from '../../ports/fakes/advance-until-settled.ts';
import { REGION, someSettings } from '../testing/settings.ts';
import {
  aFleet,
  aTestFleet,
  machinesIn,
  REASON,
  replaceVm,
  runPasses,
  type TestFleet,
  untilAtRest,
} from '../testing/test-fleet.ts';

/** A second process with the same records, which follows until the test ends. */
function aFollower(testFleet: TestFleet) {
  const follower = aFleet({ ...testFleet, settings: someSettings(), seed: 2 });
  const stop = new AbortController();
  const following = follower.followCapacity(stop.signal);
  onTestFinished(async () => {
    stop.abort();
    await advanceUntilSettled(testFleet.clock, following);
  });
  return follower;
}

async function seconds({ clock }: TestFleet, count: number): Promise<void> {
  for (let second = 0; second < count; second += 1) await clock.advance(1_000);
}

describe('followCapacity', () => {
  it('gives a process that does not drive the headroom of the driver, and changes nothing', async () => {
    const testFleet = aTestFleet();
    const { fleet, hypervisor } = testFleet;
    await fleet.scaleTo('workers', 2, REASON);
    await untilAtRest(fleet, testFleet);
    const writes = hypervisor.calls.filter(({ method }) => /create|clone|start/i.test(method));
    const { forecast } = aFollower(testFleet);
    await seconds(testFleet, 1);
    expect(forecast.isComplete(REGION)).toBe(true);
    expect(forecast.headroom('workers')?.machines).toBe(
      fleet.forecast.headroom('workers')?.machines,
    );
    const after = hypervisor.calls.filter(({ method }) => /create|clone|start/i.test(method));
    expect(after).toHaveLength(writes.length);
  });

  it('reads at the interval of passes, and keeps the last reading when a read fails', async () => {
    const testFleet = aTestFleet(someSettings(undefined, { reconcileMs: 20_000 }));
    const { hypervisor, clock } = testFleet;
    const { forecast } = aFollower(testFleet);
    await seconds(testFleet, 1);
    const first = forecast.takenAt(REGION);
    expect(first).toBeDefined();
    hypervisor.failNext('view', new Unreachable('PVE_UNREACHABLE', 'no route'));
    await seconds(testFleet, 21);
    expect(forecast.takenAt(REGION)).toBe(first);
    expect(forecast.readError(REGION)).toContain('no route');
    await seconds(testFleet, 21);
    expect(clock.now() - (forecast.takenAt(REGION) ?? 0)).toBeLessThan(21_000);
    expect(forecast.readError(REGION)).toBeUndefined();
  });

  it('does not answer for a region whose machines have lost their records, until the driver has adopted them', async () => {
    const testFleet = aTestFleet();
    const { fleet, store } = testFleet;
    await fleet.scaleTo('workers', 2, REASON);
    await untilAtRest(fleet, testFleet);
    for (const record of await store.machines.list()) await store.machines.remove(record);
    const { forecast } = aFollower(testFleet);
    await seconds(testFleet, 1);
    expect(forecast.isComplete(REGION)).toBe(false);
    await runPasses(testFleet, 30);
    expect(await machinesIn(store)).toHaveLength(2);
    expect(forecast.isComplete(REGION)).toBe(true);
  });

  it("answers for a region with a person's VM in the id range beside its machines", async () => {
    const testFleet = aTestFleet();
    const { fleet, store } = testFleet;
    await fleet.scaleTo('workers', 1, REASON);
    await untilAtRest(fleet, testFleet);
    const [machine] = await machinesIn(store);
    replaceVm(testFleet, { vmId: (machine?.placement?.vmId ?? 0) + 1, host: 'pve1' });
    const { forecast } = aFollower(testFleet);
    await seconds(testFleet, 1);
    expect(forecast.isComplete(REGION)).toBe(true);
  });

  it('has no gap when this process becomes the driver and when its term ends', async () => {
    const testFleet = aTestFleet();
    const follower = aFollower(testFleet);
    await seconds(testFleet, 1);
    const stop = new AbortController();
    const driving = follower.runDriver({ signal: stop.signal });
    for (let step = 0; step < 50; step += 1) {
      await testFleet.clock.advance(100);
      expect(follower.forecast.isComplete(REGION)).toBe(true);
    }
    expect(follower.driverLease()).toBeDefined();
    stop.abort();
    await advanceUntilSettled(testFleet.clock, driving);
    await seconds(testFleet, 2);
    expect(follower.driverLease()).toBeUndefined();
    expect(follower.forecast.isComplete(REGION)).toBe(true);
    expect(follower.capacity()).toBeUndefined();
  });
});
