// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { Unreachable } from '../../ports/errors.ts';
import { aJoiningMachine, aJoiningTestFleet } from '../testing/joining-test-fleet.ts';
import { aPool, STATIC_NETWORK, someSettings } from '../testing/settings.ts';
import {
  aTestFleet,
  machinesIn,
  onePass,
  phasesIn,
  REASON,
  runPasses,
  type TestFleet,
  untilAtRest,
} from '../testing/test-fleet.ts';

const ADDRESSES = ['10.0.0.7/24', '2001:db8::7/64'];

/** Counts the reads; `answers` decides whether agents answer. */
function withAgents(testFleet: TestFleet) {
  const agents = { reads: 0, answers: true, addresses: ADDRESSES };
  testFleet.hypervisor.guestInterfaces = () => {
    agents.reads += 1;
    if (!agents.answers) {
      const message = 'QEMU guest agent is not running';
      return Promise.reject(new Unreachable('GUEST_AGENT_SILENT', message));
    }
    return Promise.resolve([
      { name: 'eth0', mac: 'bc:24:11:00:00:01', addresses: agents.addresses },
      { name: 'cni0', mac: '02:00:00:00:00:01', addresses: ['10.42.0.1/24'] },
    ]);
  };
  return agents;
}

async function addressesIn({ store }: TestFleet) {
  return (await machinesIn(store)).map(({ guestAddresses }) => guestAddresses);
}

async function scaleTo(testFleet: TestFleet, count: number) {
  await testFleet.fleet.scaleTo('workers', count, REASON);
  await untilAtRest(testFleet.fleet, testFleet);
}

async function forgetAddresses({ store }: TestFleet, guestAddresses?: readonly string[]) {
  for (const seen of await store.machines.list()) {
    const { guestAddresses: _, ...machine } = seen.value;
    await store.machines.replace(seen, {
      ...machine,
      ...(guestAddresses !== undefined && { guestAddresses }),
    });
  }
}

describe('addresses of a machine with DHCP', () => {
  it.each(['image', 'netboot'] as const)('are read once from the agent (%s)', async (kind) => {
    const pool = kind === 'netboot' ? { source: { kind }, seed: undefined } : {};
    const testFleet = aTestFleet(someSettings([aPool(pool)]));
    const agents = withAgents(testFleet);
    await scaleTo(testFleet, 1);
    expect(await addressesIn(testFleet)).toEqual([ADDRESSES]);
    await testFleet.clock.advance(2 * 3_600_000);
    await untilAtRest(testFleet.fleet, testFleet);
    expect(agents.reads).toBe(1);
  });

  it.each([
    ['no address', undefined],
    ['an empty list', []],
  ])('are read when the record of an earlier version has %s', async (_, recorded) => {
    const testFleet = aTestFleet();
    withAgents(testFleet);
    await scaleTo(testFleet, 1);
    await forgetAddresses(testFleet, recorded);
    await runPasses(testFleet, 2);
    expect(await addressesIn(testFleet)).toEqual([ADDRESSES]);
  });

  it('are asked for again with growing delays while the agent does not answer', async () => {
    const testFleet = aTestFleet();
    const agents = withAgents(testFleet);
    agents.answers = false;
    await scaleTo(testFleet, 1);
    expect(await phasesIn(testFleet.store)).toEqual(['ready']);
    expect(agents.reads).toBe(1);
    for (let minute = 0; minute < 240; minute += 1) {
      await testFleet.clock.advance(60_000);
      await onePass(testFleet.fleet, testFleet);
    }
    expect(agents.reads).toBeLessThanOrEqual(10);
    agents.answers = true;
    await testFleet.clock.advance(3_600_000);
    await runPasses(testFleet, 1);
    expect(await addressesIn(testFleet)).toEqual([ADDRESSES]);
  });

  it('of one machine per host are asked for while agents do not answer', async () => {
    const testFleet = aTestFleet();
    withAgents(testFleet);
    await scaleTo(testFleet, 6);
    const hosts = new Set((await machinesIn(testFleet.store)).map((it) => it.placement?.host));
    await forgetAddresses(testFleet);
    const agents = withAgents(testFleet);
    agents.answers = false;
    await runPasses(testFleet, 5);
    expect(hosts.size).toBeLessThan(6);
    expect(agents.reads).toBe(hosts.size);
  });

  it('are read again after its VM was stopped', async () => {
    const testFleet = aTestFleet(someSettings([aPool({ onStopped: 'restart' })]));
    const agents = withAgents(testFleet);
    await scaleTo(testFleet, 1);
    agents.addresses = ['10.0.0.9/24'];
    for (const vm of testFleet.hypervisor.state.vms.values()) vm.startedAt = undefined;
    await runPasses(testFleet, 10);
    expect(await addressesIn(testFleet)).toEqual([['10.0.0.9/24']]);
  });

  it('are read while the Node has not appeared for more than a minute', async () => {
    const testFleet = aJoiningTestFleet();
    const agents = withAgents(testFleet);
    await aJoiningMachine(testFleet);
    await runPasses(testFleet, 2);
    expect(agents.reads).toBe(0);
    await testFleet.clock.advance(61_000);
    await runPasses(testFleet, 1);
    expect(await phasesIn(testFleet.store)).toEqual(['joining']);
    expect(await addressesIn(testFleet)).toEqual([ADDRESSES]);
  });
});

describe('addresses of a machine with static addresses', () => {
  it('are not read from the agent', async () => {
    const testFleet = aTestFleet(someSettings([aPool({ network: STATIC_NETWORK })]));
    const agents = withAgents(testFleet);
    await scaleTo(testFleet, 1);
    expect(agents.reads).toBe(0);
  });
});
