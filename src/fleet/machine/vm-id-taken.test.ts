// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { Unauthorized, Unreachable } from '../../ports/errors.ts';
import { aPool, aRegion, REGION, someSettings, templateSource } from '../testing/settings.ts';
import {
  aTestFleet,
  existingResources,
  journalReasonsIn,
  machinesIn,
  phasesIn,
  REASON,
  reachPhase,
  runPasses,
  type TestFleet,
  untilAtRest,
} from '../testing/test-fleet.ts';

const MINUTE_MS = 60_000;

/** A VM of another user. */
function putVm({ hypervisor }: TestFleet, vmId: number, options: readonly [string, string][] = []) {
  const vm = { vmId, host: 'pve1', revision: 1, startedAt: undefined };
  hypervisor.state.vms.set(vmId, { ...vm, options: new Map(options) });
}

/** A creation of another user that runs for an hour. */
function startTask({ hypervisor, clock }: TestFleet, subject: number): void {
  const task = { kind: 'create', host: 'pve1', subject, finish: () => undefined } as const;
  hypervisor.state.startTask({ ...task, durationMs: 60 * MINUTE_MS }, clock.monotonic());
}

/** From now on the credentials may not read the VM: it is not in the view, and its configuration is refused. */
function hideVm({ hypervisor }: TestFleet, hidden: number): () => void {
  const view = hypervisor.view.bind(hypervisor);
  const vmConfig = hypervisor.vmConfig.bind(hypervisor);
  hypervisor.view = async (options) => {
    const seen = await view(options);
    return {
      ...seen,
      vms: seen.vms.filter(({ vmId }) => vmId !== hidden),
      takenVmIds: seen.takenVmIds.filter((vmId) => vmId !== hidden),
    };
  };
  hypervisor.vmConfig = (vm, options) => {
    if (vm.vmId !== hidden) return vmConfig(vm, options);
    const message = `Permission check failed (/vms/${hidden}, VM.Audit)`;
    return Promise.reject(new Unauthorized('PERMISSION_MISSING', message));
  };
  return () => Object.assign(hypervisor, { view, vmConfig });
}

function creationsOf({ hypervisor }: TestFleet, vmId: number): number {
  return hypervisor.calls.filter(
    (call) => ['createVm', 'cloneVm'].includes(call.method) && call.vmId === vmId,
  ).length;
}

function withVmIds(from: number, to: number, source = aPool().source) {
  const regions = { [REGION]: aRegion({ vmIds: { from, to } }) };
  return aTestFleet(someSettings([aPool({ source })], { regions }));
}

describe.each([
  ['image', aPool().source],
  ['existing template', templateSource()],
])(
  'a machine whose VM id belongs to a VM that cannot be read, created from an %s',
  (_name, source) => {
    it('gets another VM id, the reason is recorded, and the id is not tried again', async () => {
      const testFleet = withVmIds(1_250, 1_252, source);
      putVm(testFleet, 1_250);
      hideVm(testFleet, 1_250);
      await testFleet.fleet.scaleTo('workers', 1, REASON);
      await untilAtRest(testFleet.fleet, testFleet, 60);
      const [machine] = await machinesIn(testFleet.store);
      expect(machine).toMatchObject({ phase: 'ready', placement: { vmId: 1_251 } });
      const journal = await testFleet.store.journal.read({ machine: machine?.id ?? '' });
      expect(journal.find(({ reason }) => reason === 'VmIdLost')?.message).toBe(
        'VM id 1250 is not ours (the VM that has it cannot be read: Permission check failed (/vms/1250, VM.Audit)); choosing another one',
      );
      await testFleet.fleet.scaleTo('workers', 3, REASON);
      await runPasses(testFleet, 60);
      expect((await phasesIn(testFleet.store)).toSorted()).toEqual(['ready', 'ready', 'requested']);
      expect(creationsOf(testFleet, 1_250)).toBe(1);
      const refusals = (await testFleet.store.journal.read()).filter(
        ({ reason }) => reason === 'NO_VM_ID_FREE',
      );
      expect(refusals.at(-1)?.message).toContain('(existing: 3, reserved: 0');
    });
  },
);

it('a VM id that another user takes while the machine is created is replaced at once', async () => {
  const testFleet = aTestFleet();
  testFleet.hypervisor.onCall = ({ method, vmId }) => {
    if (method !== 'createVm' || vmId !== 1_250) return;
    putVm(testFleet, 1_250, [['lock', 'create']]);
    startTask(testFleet, 1_250);
  };
  await testFleet.fleet.scaleTo('workers', 1, REASON);
  await runPasses(testFleet, 20);
  expect(await machinesIn(testFleet.store)).toMatchObject([
    { phase: 'ready', placement: { vmId: 1_251 } },
  ]);
});

it('waits while a creation of ours whose response was lost runs and cannot be read yet', async () => {
  const testFleet = aTestFleet();
  const show = hideVm(testFleet, 1_250);
  testFleet.hypervisor.dropResponse('createVm');
  await testFleet.fleet.scaleTo('workers', 1, REASON);
  testFleet.hypervisor.onCall = ({ method }) => {
    // The resource pool, and with it the privilege, is set when the task ends.
    if (method !== 'createVm' || creationsOf(testFleet, 1_250) === 0) return;
    testFleet.hypervisor.onCall = undefined;
    testFleet.clock.sleep(1_600).then(show, () => undefined);
  };
  await untilAtRest(testFleet.fleet, testFleet, 60);
  expect(await machinesIn(testFleet.store)).toMatchObject([
    { phase: 'ready', placement: { vmId: 1_250 } },
  ]);
  expect(await journalReasonsIn(testFleet.store)).not.toContain('VmIdLost');
});

describe('deleting: a VM that cannot be read', () => {
  it('a VM that was ours is reported after a minute, and deleted once it can be read', async () => {
    const testFleet = aTestFleet();
    const { id, placement } = await reachPhase(testFleet, 'ready');
    const { vmId = 0 } = placement ?? {};
    const show = hideVm(testFleet, vmId);
    await testFleet.fleet.scaleTo('workers', 0, REASON);
    const reports = async () =>
      (await testFleet.store.journal.read({ machine: id })).filter(
        ({ reason }) => reason === 'VmUnreadable',
      );
    await runPasses(testFleet, 40);
    expect(await reports()).toEqual([]);
    await runPasses(testFleet, 80);
    expect(await phasesIn(testFleet.store)).toEqual(['deleting']);
    expect((await reports()).map(({ message }) => message)).toEqual([
      `VM ${vmId} cannot be deleted because it cannot be read: Permission check failed (/vms/${vmId}, VM.Audit); grant VM.Audit, VM.Config.Options, VM.PowerMgmt and VM.Allocate on /vms/${vmId}`,
    ]);
    show();
    await untilAtRest(testFleet.fleet, testFleet, 60);
    expect(await phasesIn(testFleet.store)).toEqual(['gone']);
    expect(existingResources(testFleet.hypervisor).vms).toEqual([]);
  });

  it('a machine that never had a VM does not wait for the one that has its id', async () => {
    const testFleet = aTestFleet();
    const lost = new Unreachable('PVE_UNREACHABLE', 'connection reset');
    testFleet.hypervisor.failNext('createVm', lost);
    const { placement } = await reachPhase(testFleet, 'creating');
    const { vmId = 0 } = placement ?? {};
    putVm(testFleet, vmId);
    hideVm(testFleet, vmId);
    await testFleet.fleet.scaleTo('workers', 0, REASON);
    await runPasses(testFleet, 100);
    expect(await phasesIn(testFleet.store)).toEqual(['gone']);
    expect(existingResources(testFleet.hypervisor).vms).toEqual([vmId]);
    expect(await journalReasonsIn(testFleet.store)).toContain('VmNotOurs');
  });
});

describe('an unmanaged VM with the lock create in our id range', () => {
  const limits = { ...aPool().limits, min: 1 };

  it('stops the minimum of a pool for one minute, and is reported', async () => {
    const testFleet = aTestFleet(someSettings([aPool({ limits })]));
    putVm(testFleet, 1_260, [['lock', 'create']]);
    await runPasses(testFleet, 55);
    expect(await machinesIn(testFleet.store)).toEqual([]);
    await runPasses(testFleet, 30);
    expect(await phasesIn(testFleet.store)).toEqual(['ready']);
    const reports = (await testFleet.store.journal.read()).filter(
      ({ reason }) => reason === 'HalfMadeVm',
    );
    expect(reports.map(({ message }) => message)).toEqual([
      "VM 1260 has the lock 'create' and no task of ours creates it; unless another user does, run 'qm unlock 1260' and 'qm destroy 1260 --destroy-unreferenced-disks 1' on pve1",
    ]);
  });

  it.each(['create', 'clone'])(
    'stops the minimum for as long as a task may run while its lock is %s, and is reported',
    async (lock) => {
      const testFleet = aTestFleet(someSettings([aPool({ limits })]));
      const { clock } = testFleet;
      putVm(testFleet, 1_260, [['lock', lock]]);
      startTask(testFleet, 1_260);
      await runPasses(testFleet, 90);
      expect(await machinesIn(testFleet.store)).toEqual([]);
      expect(await journalReasonsIn(testFleet.store)).toEqual(['VmUndecided']);
      await clock.advance(14 * MINUTE_MS);
      await runPasses(testFleet, 20);
      expect(await phasesIn(testFleet.store)).toEqual(['ready']);
      expect(await journalReasonsIn(testFleet.store)).toContain('HalfMadeVm');
    },
  );

  it('a second creation with the same id is undecided anew', async () => {
    const testFleet = aTestFleet(someSettings([aPool({ limits })]));
    const { vms } = testFleet.hypervisor.state;
    putVm(testFleet, 1_260, [['lock', 'create']]);
    await runPasses(testFleet, 50);
    vms.delete(1_260);
    putVm(testFleet, 1_261, [['lock', 'create']]);
    await runPasses(testFleet, 1);
    vms.delete(1_261);
    putVm(testFleet, 1_260, [['lock', 'create']]);
    await runPasses(testFleet, 40);
    expect(await machinesIn(testFleet.store)).toEqual([]);
  });
});
