// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { readMarker, withMarker } from '../../model/marker.ts';
import { REGION } from '../testing/settings.ts';
import {
  aTestFleet,
  existingResources,
  journalReasonsIn,
  machinesIn,
  phasesIn,
  REASON,
  reachPhase,
  replaceVm,
  runPasses,
  type TestFleet,
  untilAtRest,
} from '../testing/test-fleet.ts';

/** Before the next call after the VM's configuration was read, a person puts another VM under its id. */
function replaceAfterRead(testFleet: TestFleet, vmId: number) {
  let hasRead = false;
  const replaced: { options?: ReadonlyMap<string, string>; before?: string } = {};
  testFleet.hypervisor.onCall = (call) => {
    if (call.vmId !== vmId) return;
    if (!hasRead) {
      hasRead = call.method === 'vmConfig';
      return;
    }
    if (replaced.options !== undefined) return;
    replaced.options = replaceVm(testFleet, { vmId, host: call.host ?? '' }).options;
    replaced.before = JSON.stringify([...replaced.options]);
  };
  return replaced;
}

async function aReadyVm(testFleet: TestFleet) {
  const { id, placement } = await reachPhase(testFleet, 'ready');
  await untilAtRest(testFleet.fleet, testFleet);
  const vmId = placement?.vmId ?? 0;
  const vm = testFleet.hypervisor.state.vms.get(vmId);
  if (vm === undefined) throw new Error('the machine has no VM');
  return { id, vm, vmId };
}

describe('a VM that a person replaces after its configuration was read', () => {
  it('is not changed by a deletion', async () => {
    const testFleet = aTestFleet();
    const { vmId } = await aReadyVm(testFleet);
    const replaced = replaceAfterRead(testFleet, vmId);
    await testFleet.fleet.scaleTo('workers', 0, REASON);
    await untilAtRest(testFleet.fleet, testFleet);
    expect(JSON.stringify([...(replaced.options ?? [])])).toBe(replaced.before);
    expect(testFleet.hypervisor.state.vms.get(vmId)?.startedAt).toBeDefined();
    expect(await phasesIn(testFleet.store)).toEqual(['gone']);
  });

  it('is not changed when the machine becomes ready', async () => {
    const testFleet = aTestFleet();
    const { placement } = await reachPhase(testFleet, 'booting');
    const replaced = replaceAfterRead(testFleet, placement?.vmId ?? 0);
    await runPasses(testFleet, 20);
    expect(JSON.stringify([...(replaced.options ?? [])])).toBe(replaced.before);
  });

  it('is not changed when the seed is ejected', async () => {
    const testFleet = aTestFleet();
    const { placement } = await reachPhase(testFleet, 'booting');
    const vmId = placement?.vmId ?? 0;
    let replaced: ReturnType<typeof replaceAfterRead> = {};
    testFleet.hypervisor.onCall = ({ method }) => {
      if (method === 'setDescription') replaced = replaceAfterRead(testFleet, vmId);
    };
    await runPasses(testFleet, 20);
    expect(replaced.options?.size).toBe(3);
    expect(JSON.stringify([...(replaced.options ?? [])])).toBe(replaced.before);
  });

  it('is not changed when the region is added to its marker', async () => {
    const testFleet = aTestFleet();
    const { id, vmId } = await aReadyVm(testFleet);
    const record = await testFleet.store.machines.get(id);
    const { placement, ...rest } = record!.value;
    const { hasRegionInMarker, ...earlier } = placement!;
    expect(hasRegionInMarker).toBe(true);
    removeRegion(testFleet, vmId);
    await testFleet.store.machines.replace(record!, { ...rest, placement: earlier });
    const replaced = replaceAfterRead(testFleet, vmId);
    await runPasses(testFleet, 5);
    expect(replaced.options?.size).toBe(3);
    expect(JSON.stringify([...(replaced.options ?? [])])).toBe(replaced.before);
  });
});

/** As versions without regions wrote it. */
function removeRegion({ hypervisor }: TestFleet, vmId: number): void {
  const options = hypervisor.state.vms.get(vmId)?.options;
  const reading = readMarker(options?.get('description'));
  if (reading.kind !== 'marked') throw new Error('the VM has no marker');
  const { region, ...marker } = reading.marker;
  expect(region).toBe(REGION);
  options?.set('description', withMarker('', marker));
}

describe('lookUpVm', () => {
  it('a VM that was converted to a template is not ours: it is neither changed nor destroyed', async () => {
    const testFleet = aTestFleet();
    const { vm, vmId } = await aReadyVm(testFleet);
    vm.options.set('template', '1');
    await testFleet.fleet.scaleTo('workers', 0, REASON);
    await untilAtRest(testFleet.fleet, testFleet);
    expect(testFleet.hypervisor.state.vms.has(vmId)).toBe(true);
    expect(vm.options.get('description')).not.toContain('deleting=');
    expect(await phasesIn(testFleet.store)).toEqual(['gone']);
    expect(await journalReasonsIn(testFleet.store)).toContain('VmNotOurs');
  });

  it('a VM with its marker and another SMBIOS UUID is a copy: it is neither changed nor destroyed', async () => {
    const testFleet = aTestFleet();
    const { vm, vmId } = await aReadyVm(testFleet);
    vm.options.set('smbios1', 'uuid=0a1b2c3d-2222-4000-8000-000000000002');
    await testFleet.fleet.scaleTo('workers', 0, REASON);
    await untilAtRest(testFleet.fleet, testFleet);
    expect(existingResources(testFleet.hypervisor).vms).toEqual([vmId]);
    expect(vm.options.get('description')).not.toContain('deleting=');
    expect(await phasesIn(testFleet.store)).toEqual(['gone']);
  });

  it('follows a VM that was moved to another host, and records it once', async () => {
    const testFleet = aTestFleet();
    const { vm, vmId } = await aReadyVm(testFleet);
    const to = vm.host === 'pve3' ? 'pve2' : 'pve3';
    testFleet.hypervisor.move(vmId, to);
    await runPasses(testFleet, 5);
    expect(await machinesIn(testFleet.store)).toMatchObject([
      { phase: 'ready', placement: { host: to } },
    ]);
    const recorded = await testFleet.store.journal.read();
    const moved = recorded.filter(({ reason }) => reason === 'MachineMoved');
    expect(moved).toMatchObject([{ kind: 'saw', message: `VM ${vmId} has moved to host ${to}` }]);
  });

  it('a deletion that was requested continues although the VM is marked as ready', async () => {
    const testFleet = aTestFleet();
    await aReadyVm(testFleet);
    await testFleet.fleet.scaleTo('workers', 0, REASON);
    await untilAtRest(testFleet.fleet, testFleet);
    expect(await phasesIn(testFleet.store)).toEqual(['gone']);
    expect(await journalReasonsIn(testFleet.store)).not.toContain('RecordCorrected');
  });

  it('a deletion because the machine never became ready ends when its VM is marked as ready', async () => {
    const testFleet = aTestFleet();
    const { id, vmId } = await aReadyVm(testFleet);
    const record = await testFleet.store.machines.get(id);
    const failure = {
      code: 'PROVISION_TIMED_OUT',
      message: 'late',
      at: 1,
      phase: 'booting',
    } as const;
    await testFleet.store.machines.replace(record!, {
      ...record!.value,
      phase: 'deleting',
      failure,
    });
    await untilAtRest(testFleet.fleet, testFleet);
    expect(existingResources(testFleet.hypervisor).vms).toEqual([vmId]);
    expect(await phasesIn(testFleet.store)).toEqual(['ready']);
    const recorded = await testFleet.store.journal.read();
    expect(recorded.filter(({ reason }) => reason === 'RecordCorrected')).toMatchObject([
      { kind: 'saw', message: `VM ${vmId} is marked as ready, its record said deleting` },
    ]);
  });

  it.each([
    ['protected by a person keeps its protection', true, true],
    ['never configured loses the protection of its template', false, false],
  ])('a VM that was %s', async (_what, configured, isKept) => {
    const testFleet = aTestFleet();
    const { id, vm } = await aReadyVm(testFleet);
    vm.options.set('protection', '1');
    const record = await testFleet.store.machines.get(id);
    await testFleet.store.machines.replace(record!, { ...record!.value, configured });
    await testFleet.fleet.scaleTo('workers', 0, REASON);
    await runPasses(testFleet, 30);
    expect(vm.options.has('protection')).toBe(isKept);
  });
});
