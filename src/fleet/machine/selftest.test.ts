// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import type { Machine } from '../../model/machine.ts';
import { MemoryStore } from '../../ports/fakes/memory-store.ts';
import {
  aJoiningPool,
  aJoiningTestFleet,
  aReadyMachine,
  type JoiningTestFleet,
  joiningSettings,
} from '../testing/joining-test-fleet.ts';
import { someSettings } from '../testing/settings.ts';
import { aFleet, machinesIn, REASON, runPasses, untilAtRest } from '../testing/test-fleet.ts';

async function theSelftest({ store }: Pick<JoiningTestFleet, 'store'>): Promise<Machine> {
  const machine = (await machinesIn(store)).find(({ isSelftest }) => isSelftest === true);
  if (machine === undefined) throw new Error('there is no selftest machine');
  return machine;
}

function vmCount({ hypervisor }: JoiningTestFleet): number {
  return [...hypervisor.state.vms.keys()].filter((vmId) => vmId < 9_000).length;
}

describe('a selftest machine', () => {
  it('is created beside a full pool, becomes ready behind its taint, and is removed', async () => {
    const pool = aJoiningPool();
    const full = { ...pool, limits: { ...pool.limits, max: 1 } };
    const testFleet = aJoiningTestFleet(someSettings([full]));
    await aReadyMachine(testFleet);
    await testFleet.fleet.selftest('workers', REASON);
    const targets = new Set<number | undefined>();
    const taints = new Set<string>();
    for (let pass = 0; pass < 40; pass += 1) {
      await runPasses(testFleet, 1);
      targets.add((await testFleet.fleet.status()).pools[0]?.target);
      const { nodeName } = await theSelftest(testFleet);
      const node = testFleet.cluster.state.nodes.get(nodeName ?? '');
      for (const { key } of node?.taints ?? []) taints.add(key);
    }
    await untilAtRest(testFleet.fleet, testFleet);
    const machine = await theSelftest(testFleet);
    expect(machine).toMatchObject({ phase: 'gone', deletionReason: expect.stringMatching(/over/) });
    expect(machine.phaseTimes?.ready).toBeDefined();
    expect(targets).toEqual(new Set([1]));
    expect(taints).toContain('autoscaler.proxmox/selftest');
    expect(vmCount(testFleet)).toBe(1);
    expect(testFleet.cluster.state.nodes.size).toBe(1);
    expect(testFleet.cluster.state.existingTokens).toEqual([]);
  });

  it('is removed by the next driver, also when the database is lost meanwhile', async () => {
    const testFleet = aJoiningTestFleet();
    await testFleet.fleet.selftest('workers', REASON);
    await runPasses(testFleet, 12);
    expect(vmCount(testFleet)).toBe(1);
    const store = new MemoryStore({ clock: testFleet.clock });
    const settings = joiningSettings();
    const fleet = aFleet({ ...testFleet, store, settings, seed: 9 });
    await untilAtRest(fleet, { ...testFleet, store });
    expect(await theSelftest({ store })).toMatchObject({ phase: 'gone' });
    expect(vmCount(testFleet)).toBe(0);
  });

  it('that fails is examined, removed, and neither kept nor a reason to back off', async () => {
    const pool = aJoiningPool({ keepFailed: 1, registrationTimeoutMs: 60_000 });
    const testFleet = aJoiningTestFleet(someSettings([pool]));
    testFleet.guests.behaviour = { neverRegisters: true };
    await testFleet.fleet.selftest('workers', REASON);
    await runPasses(testFleet, 25);
    await testFleet.clock.advance(61_000);
    await untilAtRest(testFleet.fleet, testFleet);
    const machine = await theSelftest(testFleet);
    expect(machine).toMatchObject({ phase: 'failed', failure: { code: 'REGISTRATION_TIMED_OUT' } });
    expect(machine.diagnostics).toBeDefined();
    expect(vmCount(testFleet)).toBe(0);
    expect((await testFleet.fleet.status()).pools[0]?.backoff).toBeUndefined();
  });
});
