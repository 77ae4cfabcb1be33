// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import type { JoiningTestFleet } from '../testing/joining-test-fleet.ts';
import { aJoiningTestFleet, joiningSettings } from '../testing/joining-test-fleet.ts';
import { aPool, someSettings } from '../testing/settings.ts';
import {
  aFleet,
  aTestFleet,
  existingResources,
  journalReasonsIn,
  machinesIn,
  onePass,
  phasesIn,
  REASON,
  runPasses,
  untilAtRest,
} from '../testing/test-fleet.ts';

const MINUTE_MS = 60_000;

async function readyMachines(count: number, testFleet = aJoiningTestFleet()) {
  await testFleet.fleet.scaleTo('workers', count, REASON);
  await untilAtRest(testFleet.fleet, testFleet);
  expect(await phasesIn(testFleet.store)).toEqual(Array<string>(count).fill('ready'));
  return testFleet;
}

/** Removes Nodes for good; their kubelets do not register again. */
async function loseNodes(testFleet: JoiningTestFleet, count: number): Promise<void> {
  testFleet.guests.behaviour = { neverRegisters: true };
  const names = [...testFleet.cluster.state.nodes.keys()].slice(0, count);
  for (const name of names) testFleet.cluster.state.removeNode(name);
}

async function sixMinutesLater(testFleet: JoiningTestFleet): Promise<void> {
  await runPasses(testFleet, 2);
  await testFleet.clock.advance(6 * MINUTE_MS);
  await runPasses(testFleet, 3);
}

async function lostIn({ fleet }: JoiningTestFleet) {
  const { pools } = await fleet.status();
  return pools[0]?.lost;
}

async function countReady({ store }: JoiningTestFleet): Promise<number> {
  return (await phasesIn(store)).filter((phase) => phase === 'ready').length;
}

describe('machines that seem lost', () => {
  it('are all kept when the Nodes of all machines disappear, and an Event says so once', async () => {
    const testFleet = await readyMachines(10);
    await loseNodes(testFleet, 10);
    await sixMinutesLater(testFleet);
    await testFleet.clock.advance(60 * MINUTE_MS);
    await runPasses(testFleet, 3);
    expect(await countReady(testFleet)).toBe(10);
    expect((await lostIn(testFleet))?.machines).toHaveLength(10);
    expect(testFleet.cluster.calls.filter(({ method }) => method === 'refresh')).toEqual([]);
    const held = testFleet.cluster.state.events.filter(
      ({ reason }) => reason === 'LostMachinesHeld',
    );
    expect(held).toMatchObject([
      {
        type: 'Warning',
        message: expect.stringMatching(/^pool workers: 10 of 10 .*confirm-lost workers/) as unknown,
      },
    ]);
  });

  it('are deleted when a person requests exactly these', async () => {
    const testFleet = await readyMachines(10);
    await loseNodes(testFleet, 9);
    await sixMinutesLater(testFleet);
    const lost = await lostIn(testFleet);
    expect(lost?.machines).toHaveLength(9);
    await testFleet.fleet.remove(lost?.machines ?? [], REASON);
    await untilAtRest(testFleet.fleet, testFleet);
    expect(existingResources(testFleet.hypervisor).vms).toHaveLength(1);
    expect(await lostIn(testFleet)).toBeUndefined();
    expect((await testFleet.store.pools.get('workers'))?.value.lost).toBeUndefined();
  });

  it('are deleted without a confirmation when it is one of ten', async () => {
    const testFleet = await readyMachines(10);
    await loseNodes(testFleet, 1);
    await sixMinutesLater(testFleet);
    await untilAtRest(testFleet.fleet, testFleet);
    expect(await countReady(testFleet)).toBe(9);
    expect(existingResources(testFleet.hypervisor).vms).toHaveLength(9);
    expect(await journalReasonsIn(testFleet.store)).not.toContain('LostMachinesHeld');
  });

  it.each([
    { what: 'deleted above the percentage alone', all: 8, lost: 4, ok: 4, left: 4 },
    { what: 'deleted above the count alone', all: 10, lost: 4, ok: 3, left: 6 },
    { what: 'deleted at exactly the percentage', all: 10, lost: 5, ok: 3, left: 5, percentage: 50 },
    { what: 'kept above both', all: 10, lost: 5, ok: 3, left: 10 },
  ])('are $what', async ({ all, lost, ok, left, percentage = 45 }) => {
    const guards = { maxTotalUnreadyPercentage: percentage, okTotalUnreadyCount: ok };
    const testFleet = await readyMachines(all, aJoiningTestFleet(joiningSettings({ guards })));
    await loseNodes(testFleet, lost);
    await sixMinutesLater(testFleet);
    await untilAtRest(testFleet.fleet, testFleet);
    expect(await countReady(testFleet)).toBe(left);
  });

  it('are counted before they are due: the first of them is kept although the others went missing later', async () => {
    const testFleet = await readyMachines(10);
    await loseNodes(testFleet, 1);
    await runPasses(testFleet, 2);
    await testFleet.clock.advance(4 * MINUTE_MS);
    await loseNodes(testFleet, 9);
    await runPasses(testFleet, 2);
    await testFleet.clock.advance(2 * MINUTE_MS);
    await runPasses(testFleet, 3);
    expect(await countReady(testFleet)).toBe(10);
  });

  it('are counted in the newest list of Nodes, not in that of the watch', async () => {
    const testFleet = await readyMachines(10);
    await loseNodes(testFleet, 1);
    await runPasses(testFleet, 2);
    await testFleet.clock.advance(6 * MINUTE_MS);
    testFleet.cluster.onCall = ({ method }) => {
      if (method === 'refresh') testFleet.cluster.state.nodes.clear();
    };
    await runPasses(testFleet, 1);
    expect(await countReady(testFleet)).toBe(10);
  });

  it('are kept when Proxmox shows no VM, even if one is due at once', async () => {
    const testFleet = await readyMachines(
      10,
      aJoiningTestFleet(joiningSettings({ lostAfterMs: 0 })),
    );
    const vms = new Map(testFleet.hypervisor.state.vms);
    testFleet.hypervisor.state.vms.clear();
    await sixMinutesLater(testFleet);
    expect(await countReady(testFleet)).toBe(10);
    expect((await lostIn(testFleet))?.machines).toHaveLength(10);
    for (const [id, vm] of vms) testFleet.hypervisor.state.vms.set(id, vm);
    await runPasses(testFleet, 3);
    expect(await lostIn(testFleet)).toBeUndefined();
    expect(await countReady(testFleet)).toBe(10);
  });

  it('are counted by the view before most of them were looked at', async () => {
    const pool = aPool({ limits: { ...aPool().limits, max: 10 } });
    const testFleet = aTestFleet(someSettings([pool], { lostAfterMs: 0 }));
    // One host has fewer workers than machines.
    for (const host of ['pve2', 'pve3']) testFleet.hypervisor.setOnline(host, false);
    await testFleet.fleet.scaleTo('workers', 10, REASON);
    await untilAtRest(testFleet.fleet, testFleet);
    testFleet.hypervisor.state.vms.clear();
    await runPasses(testFleet, 3);
    expect(await phasesIn(testFleet.store)).toEqual(Array<string>(10).fill('ready'));
  });

  it('are kept when a person stopped all VMs of a pool that replaces stopped machines', async () => {
    const pool = aPool({ onStopped: 'replace', limits: { ...aPool().limits, max: 10 } });
    const testFleet = aTestFleet(someSettings([pool]));
    await testFleet.fleet.scaleTo('workers', 10, REASON);
    await untilAtRest(testFleet.fleet, testFleet);
    const { vms } = testFleet.hypervisor.state;
    for (const [id, vm] of vms) vms.set(id, { ...vm, startedAt: undefined });
    await runPasses(testFleet, 2);
    await testFleet.clock.advance(30 * MINUTE_MS);
    await runPasses(testFleet, 5);
    expect(existingResources(testFleet.hypervisor).vms).toHaveLength(10);
    expect(await journalReasonsIn(testFleet.store)).toContain('LostMachinesHeld');
  });

  it('stay marked while Kubernetes cannot be read, and are released when their Nodes are back', async () => {
    const testFleet = await readyMachines(5);
    const nodes = [...testFleet.cluster.state.nodes.values()];
    await loseNodes(testFleet, 5);
    await sixMinutesLater(testFleet);
    testFleet.cluster.disconnect();
    await testFleet.clock.advance(2 * MINUTE_MS);
    await runPasses(testFleet, 2);
    expect((await lostIn(testFleet))?.machines).toHaveLength(5);
    testFleet.cluster.reconnect();
    for (const node of nodes) testFleet.cluster.state.putNode(node);
    await runPasses(testFleet, 3);
    expect(await lostIn(testFleet)).toBeUndefined();
    expect(await countReady(testFleet)).toBe(5);
  });

  it('are kept when a person has changed the markers of many VMs', async () => {
    const testFleet = await readyMachines(10);
    const own = (await machinesIn(testFleet.store)).slice(0, 5);
    for (const { placement } of own) {
      const vm = testFleet.hypervisor.state.vms.get(placement?.vmId ?? 0);
      vm?.options.set('description', 'edited by a person');
      vm?.options.set('name', 'renamed-by-a-person');
    }
    await sixMinutesLater(testFleet);
    expect(await countReady(testFleet)).toBe(10);
    expect(await journalReasonsIn(testFleet.store)).toContain('LostMachinesHeld');
  });

  it('stay marked when the next driver cannot read Kubernetes yet', async () => {
    const testFleet = await readyMachines(5);
    await loseNodes(testFleet, 5);
    await sixMinutesLater(testFleet);
    testFleet.cluster.disconnect();
    await testFleet.clock.advance(2 * MINUTE_MS);
    const fleet = aFleet({ ...testFleet, settings: joiningSettings(), seed: 9 });
    await runPasses({ ...testFleet, fleet }, 2);
    expect((await lostIn(testFleet))?.machines).toHaveLength(5);
  });

  it('are marked with the time of the first of them, and written only when they change', async () => {
    const testFleet = await readyMachines(10);
    await loseNodes(testFleet, 5);
    await sixMinutesLater(testFleet);
    const before = await lostIn(testFleet);
    expect(before?.machines).toHaveLength(5);
    const revision = await testFleet.store.revision();
    await runPasses(testFleet, 3);
    expect(await testFleet.store.revision()).toBe(revision);
    await loseNodes(testFleet, 5);
    await runPasses(testFleet, 3);
    const after = await lostIn(testFleet);
    expect(after?.machines).toHaveLength(10);
    expect(after?.since).toBe(before?.since);
    const reasons = await journalReasonsIn(testFleet.store);
    expect(reasons.filter((reason) => reason === 'LostMachinesHeld')).toHaveLength(1);
  });

  it('do not include machines with a Ready Node, which still count', async () => {
    const testFleet = await readyMachines(5);
    const [silent] = await machinesIn(testFleet.store);
    testFleet.cluster.state.updateNode(silent?.nodeName ?? '', { ready: false });
    testFleet.hypervisor.state.vms.clear();
    // The other Nodes stay Ready: their guests run where Proxmox does not show them.
    await sixMinutesLater({ ...testFleet, guests: { settle: () => undefined } } as never);
    expect(await countReady(testFleet)).toBe(5);
    expect((await lostIn(testFleet))?.machines).toEqual([silent?.id]);
  });
});

describe('a machine whose VM is not in its region', () => {
  async function withoutVm() {
    const testFleet = await readyMachines(1);
    // The Node stays as it is: its guest runs elsewhere.
    const parts = { store: testFleet.store, clock: testFleet.clock };
    const [machine] = await machinesIn(testFleet.store);
    testFleet.hypervisor.state.vms.delete(machine?.placement?.vmId ?? 0);
    const minutes = async (count: number) => {
      for (let minute = 0; minute < count; minute += 1) {
        await testFleet.clock.advance(MINUTE_MS);
        await onePass(testFleet.fleet, parts);
      }
    };
    return { ...testFleet, minutes, nodeName: machine?.nodeName ?? '' };
  }

  it('is kept and reported while its Node is Ready, and deleted when it is NotReady', async () => {
    const testFleet = await withoutVm();
    await testFleet.minutes(8);
    expect(await phasesIn(testFleet.store)).toEqual(['ready']);
    const reasons = await journalReasonsIn(testFleet.store);
    expect(reasons.filter((reason) => reason === 'NodeWithoutVm')).toHaveLength(1);
    testFleet.cluster.state.updateNode(testFleet.nodeName, { ready: false });
    await testFleet.minutes(2);
    expect(await phasesIn(testFleet.store)).toEqual(['gone']);
  });

  it('is kept while Kubernetes cannot be read', async () => {
    const testFleet = await withoutVm();
    testFleet.cluster.disconnect();
    testFleet.cluster.state.updateNode(testFleet.nodeName, { ready: false });
    await testFleet.minutes(8);
    expect(await phasesIn(testFleet.store)).toEqual(['ready']);
    testFleet.cluster.reconnect();
    await testFleet.minutes(2);
    expect(await phasesIn(testFleet.store)).toEqual(['gone']);
  });
});
