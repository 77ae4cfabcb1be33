// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { MemoryStore, SimulatedCrash } from '../../ports/fakes/memory-store.ts';
import type { FleetSettings } from '../context/settings.ts';
import type { VmsRequest } from '../requests/fleet-client.ts';
import { CrashingProcess, type CrashPoint } from '../testing/crashing-process.ts';
import { someSettings, someVms } from '../testing/settings.ts';
import {
  aFleet,
  aTestFleet,
  existingResources,
  machinesIn,
  onePass,
  REASON,
  replaceVm,
  runPasses,
  type TestFleet,
  untilAtRest,
} from '../testing/test-fleet.ts';

const GIB = 2 ** 30;

function settings(): FleetSettings {
  const vms = someVms();
  const build = {
    image: 'noble',
    bridge: 'vmbr7',
    storage: undefined,
    packages: ['qemu-guest-agent'],
    sources: [],
    files: [],
    commands: [],
    kubeadm: undefined,
  };
  const templates = {
    ...vms.templates,
    ubuntu: { id: 9_000, idByHost: {}, name: 'ubuntu-cloud-template', build },
  };
  return someSettings([], { vms: { ...vms, templates } });
}

function request(version = 1, host = 'pve1'): VmsRequest {
  return {
    ...REASON,
    role: 'template',
    count: 1,
    size: { cpu: 1, memoryBytes: 2 * GIB, diskBytes: 16 * GIB },
    host: { region: 'memory', host },
    vm: { from: { kind: 'image', image: 'noble' }, template: { name: 'ubuntu', version } },
  };
}

/** A guest that reports these lines one after the other; the last one again and again. */
function reporting(testFleet: TestFleet, ...lines: readonly string[]): TestFleet {
  let at = 0;
  testFleet.hypervisor.guestCommand = () => {
    const output = lines[Math.min(at, lines.length - 1)] ?? '';
    at += 1;
    return { exitCode: 0, output: `${output}\n`, errorOutput: '' };
  };
  return testFleet;
}

function vmOf({ hypervisor }: TestFleet, vmId: number) {
  return hypervisor.state.vms.get(vmId);
}

describe('a template build', () => {
  it('boots a VM from the image, follows its report, shuts it down and converts it', async () => {
    const testFleet = reporting(aTestFleet(settings()), '20 installing packages', 'done');
    await testFleet.fleet.requestVms(request());
    await untilAtRest(testFleet.fleet, testFleet, 60);
    expect(await machinesIn(testFleet.store)).toMatchObject([
      { phase: 'ready', placement: { vmId: 9_000, host: 'pve1', name: 'ubuntu-cloud-template' } },
    ]);
    const vm = vmOf(testFleet, 9_000);
    expect(vm?.options.get('template')).toBe('1');
    expect(vm?.startedAt).toBeUndefined();
    expect(vm?.options.get('tags')).toContain('template-ubuntu');
    expect(vm?.options.get('description')).toMatch(/role=template .*template=ubuntu version=1/);
    expect(vm?.options.get('net0')).toContain('vmbr7');
    expect(existingResources(testFleet.hypervisor).isos).toEqual([]);
    const journal = await testFleet.store.journal.read();
    expect(journal.map(({ message }) => message)).toContain(
      'ubuntu-cloud-template on pve1: 58 %, installing packages',
    );
  });

  it('removes the VM when a step fails, and says which', async () => {
    const testFleet = reporting(aTestFleet(settings()), 'failed installing packages');
    await testFleet.fleet.requestVms(request());
    await untilAtRest(testFleet.fleet, testFleet, 60);
    const [machine] = await machinesIn(testFleet.store);
    expect(machine?.failure?.message).toContain('installing packages failed');
    expect(machine?.failure?.message).toContain(`machine show ${machine?.id}`);
    expect(machine?.phase).toBe('failed');
    expect(existingResources(testFleet.hypervisor)).toMatchObject({ vms: [], isos: [] });
  });

  it('runs no command in a VM that a person put under its id', async () => {
    const testFleet = reporting(aTestFleet(settings()), '20 installing packages');
    const { hypervisor } = testFleet;
    const vms: (string | undefined)[] = [];
    const { guestCommand } = hypervisor;
    hypervisor.guestCommand = (vm, command) => {
      vms.push(hypervisor.state.vms.get(vm.vmId)?.options.get('name'));
      if (vms.length === 2) replaceVm(testFleet, vm);
      return guestCommand(vm, command);
    };
    await testFleet.fleet.requestVms(request());
    await runPasses(testFleet, 60);
    expect(vms).toEqual(['ubuntu-cloud-template', 'ubuntu-cloud-template']);
    expect(vmOf(testFleet, 9_000)?.startedAt).toBeDefined();
  });

  it('removes the VM when its guest never reports', async () => {
    const testFleet = reporting(aTestFleet(settings()), '');
    await testFleet.fleet.requestVms(request());
    await runPasses(testFleet, 20);
    await testFleet.clock.advance(61 * 60_000);
    await untilAtRest(testFleet.fleet, testFleet, 60);
    expect(await machinesIn(testFleet.store)).toMatchObject([
      { phase: 'failed', failure: { code: 'PROVISION_TIMED_OUT' } },
    ]);
    expect(existingResources(testFleet.hypervisor).vms).toEqual([]);
  });

  it('gets the next free id for another host and another version; clones use the newest', async () => {
    const testFleet = reporting(aTestFleet(settings()), 'done');
    for (const one of [request(1), request(1, 'pve2'), request(2)]) {
      await testFleet.fleet.requestVms(one);
      await untilAtRest(testFleet.fleet, testFleet, 60);
    }
    const built = await machinesIn(testFleet.store);
    expect(built.map(({ placement }) => [placement?.host, placement?.vmId])).toEqual(
      expect.arrayContaining([
        ['pve1', 9_000],
        ['pve2', 9_004],
        ['pve1', 9_005],
      ]),
    );
    const sources: number[] = [];
    const cloneVm = testFleet.hypervisor.cloneVm.bind(testFleet.hypervisor);
    testFleet.hypervisor.cloneVm = (order, options) => {
      sources.push(order.source.vmId);
      return cloneVm(order, options);
    };
    const clone = { kind: 'template', template: 'ubuntu', clone: 'linked' } as const;
    await testFleet.fleet.requestVms({ ...request(), role: 'worker', vm: { from: clone } });
    await untilAtRest(testFleet.fleet, testFleet, 60);
    expect(sources).toEqual([9_005]);
  });

  it('occupies no capacity when it is built, is deleted on request and adopted without records', async () => {
    const testFleet = reporting(aTestFleet(settings()), 'done');
    await testFleet.fleet.requestVms(request());
    await untilAtRest(testFleet.fleet, testFleet, 60);
    const fresh = { ...testFleet, store: new MemoryStore({ clock: testFleet.clock }) };
    const fleet = aFleet({ ...fresh, settings: settings(), seed: 4 });
    await untilAtRest(fleet, fresh, 20);
    const [adopted] = await machinesIn(fresh.store);
    expect(adopted).toMatchObject({ pool: 'role:template', phase: 'ready' });
    expect(await onePass(fleet, fresh)).toMatchObject({ inProgress: 0 });
    await fleet.remove(adopted === undefined ? [] : [adopted.id], REASON);
    await untilAtRest(fleet, fresh, 60);
    expect(vmOf(testFleet, 9_000)).toBeUndefined();
  });

  it('is a VM that stays when a person takes it over during the build and adopts it', async () => {
    const testFleet = reporting(aTestFleet(settings()), '20 installing packages');
    const { fleet, store } = testFleet;
    await fleet.requestVms(request());
    await runPasses(testFleet, 30);
    expect(await machinesIn(store)).toMatchObject([{ phase: 'booting' }]);
    const vm = vmOf(testFleet, 9_000);
    vm?.options.set('description', 'notes of a person');
    if (vm !== undefined) vm.revision += 1;
    await untilAtRest(fleet, testFleet, 60);
    expect(await machinesIn(store)).toMatchObject([{ phase: 'failed' }]);
    await fleet.requestVmDecision(await fleet.planVmDecision({ kind: 'adopt', vmId: 9_000 }));
    await runPasses(testFleet, 30);
    expect(vmOf(testFleet, 9_000)).toBe(vm);
    expect(await machinesIn(store)).toMatchObject([{ phase: 'ready' }]);
  });

  it('is continued or cleaned after a crash at every call that changes something', async () => {
    const prepare = async () => {
      const testFleet = reporting(aTestFleet(settings()), 'done');
      await testFleet.fleet.requestVms(request());
      return testFleet;
    };
    const runUntilCrash = async (testFleet: TestFleet, crashPoint: CrashPoint) => {
      const process = new CrashingProcess(testFleet.store, testFleet.hypervisor, crashPoint);
      const { store, hypervisor } = process;
      const fleet = aFleet({ ...testFleet, store, hypervisor, settings: settings(), seed: 2 });
      await untilAtRest(fleet, { store, clock: testFleet.clock }).catch((error: unknown) => {
        if (!(error instanceof SimulatedCrash)) throw error;
      });
      return process;
    };
    const { calls } = await runUntilCrash(await prepare(), { kind: 'never' });
    expect(calls).toContain('convertToTemplate');
    const crashPoints = calls.flatMap((_, at): CrashPoint[] => [
      { kind: 'unseen', number: at + 1 },
      { kind: 'seen', number: at + 1 },
    ]);
    for (const crashPoint of crashPoints) {
      const testFleet = await prepare();
      await runUntilCrash(testFleet, crashPoint);
      const fleet = aFleet({ ...testFleet, settings: settings(), seed: 3 });
      await untilAtRest(fleet, testFleet, 200);
      const note = JSON.stringify(crashPoint);
      const built = [...testFleet.hypervisor.state.vms.values()].filter(
        ({ options }) => options.get('name') === 'ubuntu-cloud-template',
      );
      expect(built, note).toHaveLength(1);
      expect(built[0]?.options.get('template'), note).toBe('1');
      expect(existingResources(testFleet.hypervisor), note).toMatchObject({ vms: [], isos: [] });
      await onePass(fleet, testFleet);
    }
  });
});
