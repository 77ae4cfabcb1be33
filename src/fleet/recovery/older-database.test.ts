// SPDX-License-Identifier: Apache-2.0
// The records may be older than the VMs: the database was restored from a backup, or no driver ran for a while.
import { describe, expect, it } from 'vitest';
import type { Machine, Phase } from '../../model/machine.ts';
import { readMarker, withMarker } from '../../model/marker.ts';
import { Unreachable } from '../../ports/errors.ts';
import { MemoryHypervisor } from '../../ports/fakes/memory-hypervisor.ts';
import type { MemoryStore } from '../../ports/fakes/memory-store.ts';
import { SeededRandom } from '../../ports/fakes/seeded-random.ts';
import { createFleet } from '../fleet.ts';
import {
  aJoiningMachine,
  aJoiningTestFleet,
  aReadyMachine,
} from '../testing/joining-test-fleet.ts';
import { aHost, aPool, aRegion, REGION, someSettings } from '../testing/settings.ts';
import {
  aFleet,
  aTestFleet,
  existingResources,
  journalReasonsIn,
  keepRunning,
  machinesIn,
  onePass,
  phasesIn,
  REASON,
  reachPhase,
  replaceVm,
  runPasses,
  type TestFleet,
  untilAtRest,
} from '../testing/test-fleet.ts';

const PROVISION_TIMEOUT_MS = 15 * 60_000;

function settings() {
  return someSettings([aPool({ provisionTimeoutMs: PROVISION_TIMEOUT_MS })]);
}

const EARLIER: readonly Phase[] = [
  'requested',
  'placed',
  'creating',
  'configuring',
  'starting',
  'booting',
];

describe('a database that was restored from an older backup', () => {
  it.each(EARLIER)('keeps a ready VM whose record says %s', async (phase) => {
    const testFleet = aTestFleet(settings());
    const backup = await backUpInPhase(testFleet, phase);
    await untilAtRest(testFleet.fleet, testFleet);
    const before = existingResources(testFleet.hypervisor);
    expect(before.vms).toHaveLength(1);

    await testFleet.clock.advance(2 * PROVISION_TIMEOUT_MS);
    const fleet = aFleet({ ...testFleet, store: backup, settings: settings(), seed: 7 });
    await untilAtRest(fleet, { ...testFleet, store: backup });
    expect(existingResources(testFleet.hypervisor)).toEqual(before);
    expect(await machinesIn(backup)).toMatchObject([
      { phase: 'ready', placement: { vmId: before.vms[0] } },
    ]);
  });

  it('keeps a ready VM that was switched off, and whose record says booting', async () => {
    const testFleet = aTestFleet(settings());
    const { placement } = await reachPhase(testFleet, 'booting');
    const backup = testFleet.store.copy();
    await untilAtRest(testFleet.fleet, testFleet);
    const vm = testFleet.hypervisor.state.vms.get(placement!.vmId)!;
    testFleet.hypervisor.state.vms.set(placement!.vmId, { ...vm, startedAt: undefined });

    await testFleet.clock.advance(2 * PROVISION_TIMEOUT_MS);
    const fleet = aFleet({ ...testFleet, store: backup, settings: settings(), seed: 7 });
    await runPasses({ ...testFleet, store: backup, fleet }, 60);
    expect(existingResources(testFleet.hypervisor).vms).toEqual([placement!.vmId]);
  });

  it('continues a deletion that the VM is marked with, although its record says ready', async () => {
    const testFleet = aTestFleet(settings());
    const { placement } = await reachPhase(testFleet, 'ready');
    await untilAtRest(testFleet.fleet, testFleet);
    const { vms } = testFleet.hypervisor.state;
    const vm = vms.get(placement!.vmId)!;
    const reading = readMarker(vm.options.get('description'));
    if (reading.kind !== 'marked') throw new Error('the VM has no marker');
    const description = withMarker('', { ...reading.marker, deletingSinceSeconds: 1 });
    const options = new Map(vm.options).set('description', description).set('name', 'renamed');
    vms.set(placement!.vmId, { ...vm, options });
    await untilAtRest(testFleet.fleet, testFleet);
    await runPasses(testFleet, 20);
    expect(existingResources(testFleet.hypervisor).vms).toEqual([]);
  });
});

describe('a machine that older records request, and whose VM cannot be read', () => {
  /** A ready machine, the backup of an earlier database, and a driver that uses the backup. */
  async function restored(backUp: (testFleet: TestFleet) => Promise<MemoryStore>) {
    const testFleet = aTestFleet(settings());
    const store = await backUp(testFleet);
    await untilAtRest(testFleet.fleet, testFleet);
    const [machine] = await machinesIn(testFleet.store);
    const fleet = aFleet({ ...testFleet, store, settings: settings(), seed: 7 });
    return { ...testFleet, store, fleet, id: machine!.id, host: machine!.placement!.host };
  }

  it.each<[string, (testFleet: TestFleet) => Promise<MemoryStore>]>([
    ['says requested', (testFleet) => backUpInPhase(testFleet, 'requested')],
    ['says placed under another VM id', backUpPlacedElsewhere],
    ['was not written yet', backUpWithOpenIntent],
    ['was not written yet, and no driver had run', backUpBeforeDriver],
  ])('gets no second VM if its record %s; new machines are created', async (_what, backUp) => {
    const { id, host, ...testFleet } = await restored(backUp);
    testFleet.hypervisor.setOnline(host, false);
    await runPasses(testFleet, 30);
    expect(existingResources(testFleet.hypervisor).machines).toEqual([id]);
    expect(await journalReasonsIn(testFleet.store)).toContain('VIEW_STALE');
    await testFleet.fleet.scaleTo('workers', 2, REASON);
    await runPasses(testFleet, 60);
    expect(existingResources(testFleet.hypervisor).vms).toHaveLength(2);
    testFleet.hypervisor.setOnline(host, true);
    await untilAtRest(testFleet.fleet, testFleet);
    expect(await phasesIn(testFleet.store)).toEqual(['ready', 'ready']);
    expect(new Set(existingResources(testFleet.hypervisor).machines).size).toBe(2);
  });

  it('is created if the process that drives has requested it', async () => {
    const testFleet = aTestFleet(settings());
    await driveFor(testFleet, 2);
    replaceVm(testFleet, { vmId: 1_280, host: 'pve2' });
    testFleet.hypervisor.setOnline('pve2', false);
    await testFleet.clock.advance(1_000);
    await testFleet.fleet.scaleTo('workers', 1, REASON);
    await driveFor(testFleet, 60);
    expect(await phasesIn(testFleet.store)).toEqual(['ready']);
  });

  it('gets no second VM in another region while its own cannot be read', async () => {
    const testFleet = aTestFleet(settings());
    const store = await backUpInPhase(testFleet, 'requested');
    await untilAtRest(testFleet.fleet, testFleet);
    const { clock, hypervisor } = testFleet;
    const other = new MemoryHypervisor({
      region: 'other',
      clock,
      random: new SeededRandom(5),
      hosts: [aHost('pve9', { region: 'other' })],
      taskMs: 1_500,
      bootMs: 3_000,
    });
    const regions = { [REGION]: aRegion(), other: aRegion({ name: 'other' }) };
    const fleet = createFleet({
      clock,
      store,
      hypervisors: new Map([
        [REGION, hypervisor],
        ['other', other],
      ]),
      random: new SeededRandom(7),
      settings: someSettings([aPool({ regions: [REGION, 'other'] })], { regions }),
    });
    const view = hypervisor.view.bind(hypervisor);
    hypervisor.view = () => Promise.reject(new Unreachable('PVE_UNREACHABLE', 'no route to host'));
    await runPasses({ ...testFleet, store, fleet }, 20);
    expect(existingResources(other).vms).toEqual([]);
    await fleet.scaleTo('workers', 2, REASON);
    await runPasses({ ...testFleet, store, fleet }, 30);
    expect(existingResources(other).vms).toHaveLength(1);
    hypervisor.view = view;
    await untilAtRest(fleet, { ...testFleet, store });
    expect(existingResources(other).vms).toHaveLength(1);
    expect(await phasesIn(store)).toEqual(['ready', 'ready']);
  });
});

/** The machine was placed again after the backup, with another VM id. */
async function backUpPlacedElsewhere(testFleet: TestFleet): Promise<MemoryStore> {
  const backup = await backUpInPhase(testFleet, 'placed');
  const [current] = await backup.machines.list();
  const { placement } = current!.value;
  const host = placement!.host === 'pve1' ? 'pve2' : 'pve1';
  const elsewhere = { ...placement!, vmId: placement!.vmId + 1, host };
  await backup.machines.replace(current!, { ...current!.value, placement: elsewhere });
  return backup;
}

async function backUpBeforeDriver({ fleet, store }: TestFleet): Promise<MemoryStore> {
  await fleet.scaleTo('workers', 1, REASON);
  return store.copy();
}

async function backUpWithOpenIntent(testFleet: TestFleet): Promise<MemoryStore> {
  await onePass(testFleet.fleet, testFleet);
  await testFleet.fleet.scaleTo('workers', 1, REASON);
  return testFleet.store.copy();
}

/** A copy of the database in which the record says `phase`, as it did before the machine booted. */
async function backUpInPhase(testFleet: TestFleet, phase: Phase): Promise<MemoryStore> {
  const { id } = await reachPhase(testFleet, 'booting');
  const backup = testFleet.store.copy();
  const current = await backup.machines.get(id);
  if (current === undefined) throw new Error('the machine has no record');
  const dropped: (keyof Machine)[] =
    phase === 'requested'
      ? ['task', 'configured', 'placement', 'placedAt']
      : phase === 'starting' || phase === 'booting'
        ? ['task']
        : ['task', 'configured'];
  const earlier = Object.fromEntries(
    Object.entries(current.value).filter(([name]) => !dropped.some((one) => one === name)),
  ) as unknown as Machine;
  await backup.machines.replace(current, { ...earlier, phase });
  return backup;
}

describe('time without a driver', () => {
  it('does not count towards the provision timeout', async () => {
    const testFleet = aTestFleet(settings());
    const { placement } = await reachPhase(testFleet, 'booting');
    const drive = (seconds: number) => driveFor(testFleet, seconds);
    await drive(1);
    await testFleet.clock.advance(3 * PROVISION_TIMEOUT_MS);
    await drive(30);
    expect(await machinesIn(testFleet.store)).toMatchObject([
      { phase: 'ready', placement: { vmId: placement!.vmId } },
    ]);
  });

  it('counts only once if several drivers end early: a machine that never boots fails in the end', async () => {
    const testFleet = aTestFleet(settings());
    const { placement } = await reachPhase(testFleet, 'booting');
    keepOff(testFleet, placement!.vmId);
    for (let term = 0; term < 20; term += 1) {
      await driveFor(testFleet, 60);
      await testFleet.clock.advance(2 * PROVISION_TIMEOUT_MS);
    }
    expect(await journalReasonsIn(testFleet.store)).toContain('PROVISION_TIMED_OUT');
  });
});

describe('a wall clock that is set forward', () => {
  it('ends no machine by its provision timeout', async () => {
    const testFleet = aTestFleet(settings());
    await reachPhase(testFleet, 'booting');
    await onePass(testFleet.fleet, testFleet);
    testFleet.clock.setWallClock(testFleet.clock.now() + 5 * PROVISION_TIMEOUT_MS);
    await untilAtRest(testFleet.fleet, testFleet);
    expect(await journalReasonsIn(testFleet.store)).not.toContain('PROVISION_TIMED_OUT');
    expect(await machinesIn(testFleet.store)).toMatchObject([{ phase: 'ready' }]);
  });

  it.each(['while the driver keeps its lease', 'so that the driver loses its lease'])(
    'does not count as boot time %s: the next guest is queried after as long as before',
    async (how) => {
      const testFleet = aTestFleet(settings());
      await reachPhase(testFleet, 'booting');
      const driver = how.includes('loses') ? startDriver(testFleet) : undefined;
      const drive = (count: number) => driver?.run(count) ?? runPasses(testFleet, count);
      await drive(1);
      setForward(testFleet);
      await drive(20);
      await testFleet.fleet.scaleTo('workers', 2, REASON);
      await drive(40);
      await driver?.stop();
      expect(await phasesIn(testFleet.store)).toEqual(['ready', 'ready']);
    },
  );

  it('starts no second task while one is running', async () => {
    const testFleet = aTestFleet(settings());
    const { hypervisor, fleet, store } = testFleet;
    await reachPhase(testFleet, 'ready');
    await untilAtRest(fleet, testFleet);
    const running = keepRunning(testFleet, 'shutdown');
    await fleet.scaleTo('workers', 0, REASON);
    await runPasses(testFleet, 3);
    setForward(testFleet);
    await runPasses(testFleet, 5);
    expect(hypervisor.calls.filter(({ method }) => STOPS.includes(method))).toHaveLength(1);
    running.end();
    await untilAtRest(fleet, testFleet);
    expect(await phasesIn(store)).toEqual(['gone']);
  });

  it('does not shorten the time after which a machine without a Node is deleted', async () => {
    const testFleet = aJoiningTestFleet();
    const { placement } = await aReadyMachine(testFleet);
    testFleet.guests.behaviour = { neverRegisters: true };
    testFleet.cluster.state.removeNode(placement.name);
    await runPasses(testFleet, 2);
    setForward(testFleet);
    await runPasses(testFleet, 5);
    expect(await phasesIn(testFleet.store)).toEqual(['ready']);
  });

  it('does not shorten the time after which a machine without a VM is deleted', async () => {
    const testFleet = aTestFleet(settings());
    const { placement } = await reachPhase(testFleet, 'ready');
    await untilAtRest(testFleet.fleet, testFleet);
    const { vms } = testFleet.hypervisor.state;
    vms.delete(placement!.vmId);
    const driver = startDriver(testFleet);
    await driver.run(20);
    setForward(testFleet);
    await driver.run(60);
    expect(await phasesIn(testFleet.store)).toEqual(['ready']);
    await driver.run(300);
    await driver.stop();
    expect(await phasesIn(testFleet.store)).toEqual(['gone']);
  });

  it('does not shorten the time after which a stopped machine is replaced', async () => {
    const pool = aPool({ onStopped: 'replace' });
    const testFleet = aTestFleet(someSettings([pool]));
    const { placement } = await reachPhase(testFleet, 'ready');
    await untilAtRest(testFleet.fleet, testFleet);
    testFleet.hypervisor.state.vms.get(placement!.vmId)!.startedAt = undefined;
    await runPasses(testFleet, 2);
    setForward(testFleet);
    await runPasses(testFleet, 20);
    expect(await phasesIn(testFleet.store)).toEqual(['ready']);
  });

  it('does not shorten the time in which a Node must register', async () => {
    const testFleet = aJoiningTestFleet();
    await aJoiningMachine(testFleet);
    setForward(testFleet);
    await runPasses(testFleet, 5);
    expect(await phasesIn(testFleet.store)).toEqual(['joining']);
  });
});

const STOPS = ['stopVm', 'shutdownVm', 'destroyVm'];

function setForward({ clock }: TestFleet): void {
  clock.setWallClock(clock.now() + 6 * 60 * 60_000);
}

async function driveFor(testFleet: TestFleet, seconds: number): Promise<void> {
  const driver = startDriver(testFleet);
  await driver.run(seconds);
  await driver.stop();
}

function startDriver({ clock, fleet }: TestFleet) {
  const finish = new AbortController();
  const driving = fleet.runDriver({ signal: new AbortController().signal, finish: finish.signal });
  const run = async (seconds: number) => {
    for (let second = 0; second < seconds; second += 1) await clock.advance(1_000);
  };
  const stop = async () => {
    finish.abort();
    await run(10);
    await driving;
  };
  return { run, stop };
}

/** The guest of the VM never starts. */
function keepOff({ hypervisor }: TestFleet, vmId: number): void {
  const guestIsUp = hypervisor.guestIsUp.bind(hypervisor);
  hypervisor.guestIsUp = (vm, options) =>
    vm.vmId === vmId ? Promise.resolve(false) : guestIsUp(vm, options);
}

describe('a VM of a machine that has another VM or is over', () => {
  it('is left alone and reported if it is marked ready', async () => {
    const testFleet = aTestFleet();
    await testFleet.fleet.scaleTo('workers', 1, REASON);
    await untilAtRest(testFleet.fleet, testFleet);
    const [machine] = await machinesIn(testFleet.store);
    const { vmId } = machine!.placement!;
    copyVm(testFleet, vmId, 1_270);
    await runPasses(testFleet, 20);
    expect(existingResources(testFleet.hypervisor).vms).toEqual([vmId, 1_270]);
    expect(await journalReasonsIn(testFleet.store)).toContain('DuplicateVm');
    expect(await testFleet.fleet.orphans()).toMatchObject([
      { kind: 'vm-left-alone', what: 'VM 1270', fixable: false },
    ]);
  });

  it('is left alone and reported if a person restored it within the cool-down of its id', async () => {
    const testFleet = aTestFleet();
    await testFleet.fleet.scaleTo('workers', 1, REASON);
    await untilAtRest(testFleet.fleet, testFleet);
    const [machine] = await machinesIn(testFleet.store);
    const { vmId } = machine!.placement!;
    const backup = testFleet.hypervisor.state.vms.get(vmId)!;
    await testFleet.fleet.scaleTo('workers', 0, REASON);
    await untilAtRest(testFleet.fleet, testFleet);
    expect(existingResources(testFleet.hypervisor).vms).toEqual([]);
    testFleet.hypervisor.state.vms.set(vmId, { ...backup, startedAt: undefined });
    await runPasses(testFleet, 20);
    expect(existingResources(testFleet.hypervisor).vms).toEqual([vmId]);
    expect(await journalReasonsIn(testFleet.store)).toContain('DuplicateVm');
  });
});

/** A copy whose marker was edited to fit its VM id. */
function copyVm({ hypervisor }: TestFleet, from: number, vmId: number): void {
  const vm = hypervisor.state.vms.get(from)!;
  const reading = readMarker(vm.options.get('description'));
  if (reading.kind !== 'marked') throw new Error('the VM has no marker');
  const options = new Map(vm.options).set(
    'description',
    withMarker('', { ...reading.marker, vmId }),
  );
  hypervisor.state.vms.set(vmId, { ...vm, vmId, options });
}
