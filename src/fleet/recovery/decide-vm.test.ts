// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { formatMarker, readMarker, withoutMarker } from '../../model/marker.ts';
import { advanceUntilSettled } from '../../ports/fakes/advance-until-settled.ts';
import { aMachineId } from '../../ports/fakes/sample-records.ts';
import { aPool, CLUSTER, REGION, STATIC_NETWORK, someSettings } from '../testing/settings.ts';
import {
  aFleet,
  aTestFleet,
  journalReasonsIn,
  machinesIn,
  onePass,
  REASON,
  reachPhase,
  runPasses,
  type TestFleet,
  untilAtRest,
} from '../testing/test-fleet.ts';

function optionsOf({ hypervisor }: TestFleet, vmId: number): Map<string, string> {
  return hypervisor.state.vms.get(vmId)!.options;
}

/** As a person who edits the notes: the digest changes with it. */
function edit({ hypervisor }: TestFleet, vmId: number, options: Record<string, string>): void {
  const vm = hypervisor.state.vms.get(vmId)!;
  for (const [name, value] of Object.entries(options)) vm.options.set(name, value);
  vm.revision += 1;
}

function putVm({ hypervisor }: TestFleet, vmId: number, options: Record<string, string>): void {
  hypervisor.state.vms.set(vmId, {
    vmId,
    host: 'pve1',
    options: new Map(Object.entries({ name: 'theirs', scsi0: 'local-lvm:x,size=1M', ...options })),
    revision: 1,
    startedAt: undefined,
  });
}

async function aMachineWithoutMarker() {
  const testFleet = aTestFleet();
  const machine = await reachPhase(testFleet, 'ready');
  await untilAtRest(testFleet.fleet, testFleet);
  const { vmId } = machine.placement!;
  edit(testFleet, vmId, { description: 'my own notes' });
  return { testFleet, machine, vmId };
}

async function decide(
  { fleet, store, ...rest }: TestFleet,
  request: Parameters<TestFleet['fleet']['planVmDecision']>[0],
) {
  const intent = await fleet.requestVmDecision(await fleet.planVmDecision(request));
  await runPasses({ fleet, store, ...rest }, 2);
  const done = (await store.intents.list()).find(({ value }) => value.id === intent);
  return done?.value;
}

describe('a machine whose marker was removed', () => {
  it('is listed with the commands that settle it, while it is live and after it was deleted', async () => {
    const { testFleet, machine, vmId } = await aMachineWithoutMarker();
    const commands = [`pvescaler orphans adopt ${vmId}`, `pvescaler orphans forget ${vmId}`];
    const expected = { kind: 'vm-left-alone', what: `VM ${vmId}`, fixable: false, commands };
    expect(await testFleet.fleet.orphans()).toMatchObject([expected]);
    await testFleet.fleet.scaleTo('workers', 0, REASON);
    await untilAtRest(testFleet.fleet, testFleet);
    expect(testFleet.hypervisor.state.vms.has(vmId)).toBe(true);
    const left = await testFleet.store.journal.read({ machine: machine.id });
    expect(left.find(({ reason }) => reason === 'VmLeftBehind')?.message).toContain(commands[0]);
    expect(await testFleet.fleet.orphans()).toMatchObject([
      { ...expected, message: expect.stringContaining(machine.id) },
    ]);
  });

  it('gets a new marker by adopt, and can then be deleted', async () => {
    const { testFleet, machine, vmId } = await aMachineWithoutMarker();
    expect(await decide(testFleet, { kind: 'adopt', vmId })).toMatchObject({ state: 'done' });
    expect(optionsOf(testFleet, vmId).get('description')).toMatch(/^my own notes\npvescaler\/v1 /);
    expect(await testFleet.fleet.orphans()).toEqual([]);
    expect(await machinesIn(testFleet.store)).toMatchObject([{ id: machine.id, phase: 'ready' }]);
    await testFleet.fleet.scaleTo('workers', 0, REASON);
    await untilAtRest(testFleet.fleet, testFleet);
    expect(testFleet.hypervisor.state.vms.has(vmId)).toBe(false);
  });

  it('is a machine again by adopt after it was deleted', async () => {
    const { testFleet, machine, vmId } = await aMachineWithoutMarker();
    await testFleet.fleet.scaleTo('workers', 0, REASON);
    await untilAtRest(testFleet.fleet, testFleet);
    expect(await decide(testFleet, { kind: 'adopt', vmId })).toMatchObject({ state: 'done' });
    expect(await machinesIn(testFleet.store)).toMatchObject([
      { id: machine.id, phase: 'ready', placement: { vmId } },
    ]);
    expect(await testFleet.fleet.orphans()).toEqual([]);
  });

  it('is not forgotten while its machine is live, but afterwards', async () => {
    const { testFleet, vmId } = await aMachineWithoutMarker();
    await expect(testFleet.fleet.planVmDecision({ kind: 'forget', vmId })).rejects.toMatchObject({
      code: 'VM_NOT_OWNED',
    });
    await testFleet.fleet.scaleTo('workers', 0, REASON);
    await untilAtRest(testFleet.fleet, testFleet);
    expect(await decide(testFleet, { kind: 'forget', vmId })).toMatchObject({ state: 'done' });
    expect(optionsOf(testFleet, vmId).get('description')).toBe(withoutMarker('my own notes'));
    expect(optionsOf(testFleet, vmId).get('tags')).toBe('');
    expect(await testFleet.fleet.orphans()).toEqual([]);
    await untilAtRest(testFleet.fleet, testFleet);
    expect(testFleet.hypervisor.state.vms.has(vmId)).toBe(true);
  });
});

describe('a VM that looks like a machine', () => {
  const copyOf = (marker: string) => ({ description: marker, tags: 'pvescaler;mine' });

  it.each([
    ['the tag pvescaler', 500, { tags: 'pvescaler' }],
    ['the tag ca-group-workers', 500, { tags: 'ca-group-workers' }],
    ["an id in the region's range 1250-1299", 1_260, {}],
  ])('and has %s is listed', async (reason, vmId, options) => {
    const testFleet = aTestFleet();
    putVm(testFleet, vmId, options);
    expect(await testFleet.fleet.orphans()).toMatchObject([
      { kind: 'vm-left-alone', what: `VM ${vmId}`, message: expect.stringContaining(reason) },
    ]);
  });

  it('only by a tag that other VMs may have, or by nothing, is not listed', async () => {
    const testFleet = aTestFleet();
    putVm(testFleet, 500, { tags: 'prod' });
    putVm(testFleet, 501, { smbios1: `uuid=${aMachineId(7)}` });
    expect(await testFleet.fleet.orphans()).toEqual([]);
  });

  it('is a copy of a machine: it is listed, adopted with a pool, and gets its own machine', async () => {
    const testFleet = aTestFleet();
    const machine = await reachPhase(testFleet, 'ready');
    const marker = optionsOf(testFleet, machine.placement!.vmId).get('description') ?? '';
    putVm(testFleet, 500, { ...copyOf(marker), smbios1: `uuid=${aMachineId(7)}` });
    expect(await testFleet.fleet.orphans()).toMatchObject([
      { what: 'VM 500', message: expect.stringContaining('a copy of VM') },
    ]);
    const adopt = { kind: 'adopt', vmId: 500 } as const;
    await expect(testFleet.fleet.planVmDecision(adopt)).rejects.toMatchObject({
      code: 'REQUEST_INVALID',
      hint: expect.stringContaining('--pool: workers'),
    });
    expect(await decide(testFleet, { ...adopt, pool: 'workers' })).toMatchObject({ state: 'done' });
    expect((await machinesIn(testFleet.store)).map(({ id }) => id)).toContain(aMachineId(7));
    expect(readMarker(optionsOf(testFleet, 500).get('description'))).toMatchObject({
      kind: 'marked',
      marker: { cluster: CLUSTER, region: REGION, machine: aMachineId(7), vmId: 500 },
    });
    expect(optionsOf(testFleet, 500).get('tags')).toContain('mine');
  });

  it('is not adopted while its machine has another VM', async () => {
    const testFleet = aTestFleet();
    const { id } = await reachPhase(testFleet, 'ready');
    putVm(testFleet, 500, { smbios1: `uuid=${id}` });
    expect(await testFleet.fleet.orphans()).toMatchObject([{ what: 'VM 500' }]);
    const adopt = testFleet.fleet.planVmDecision({ kind: 'adopt', vmId: 500, pool: 'workers' });
    await expect(adopt).rejects.toMatchObject({ code: 'VM_NOT_OWNED' });
  });

  it('has the addresses of its machine, which is gone, when it was restored with another id', async () => {
    const testFleet = aTestFleet(someSettings([aPool({ network: STATIC_NETWORK })]));
    const { id, placement } = await reachPhase(testFleet, 'ready');
    await testFleet.fleet.scaleTo('workers', 0, REASON);
    await untilAtRest(testFleet.fleet, testFleet);
    putVm(testFleet, 500, { smbios1: `uuid=${id}` });
    expect(await decide(testFleet, { kind: 'adopt', vmId: 500 })).not.toHaveProperty('failure');
    expect(await machinesIn(testFleet.store)).toMatchObject([
      { id, phase: 'ready', placement: { vmId: 500, addresses: placement!.addresses } },
    ]);
  });

  it('is not adopted while another machine has its address', async () => {
    const testFleet = aTestFleet(someSettings([aPool({ network: STATIC_NETWORK })]));
    const { placement } = await reachPhase(testFleet, 'ready');
    const [address = ''] = placement!.addresses;
    putVm(testFleet, 500, { smbios1: `uuid=${aMachineId(7)}`, ipconfig0: `ip=${address}` });
    const adopt = testFleet.fleet.planVmDecision({ kind: 'adopt', vmId: 500, pool: 'workers' });
    await expect(adopt).rejects.toMatchObject({
      code: 'VM_NOT_OWNED',
      message: expect.stringContaining(`another machine has its address ${address}`),
    });
  });

  it('is adopted once, also if it is inspected while the decision is carried out', async () => {
    const testFleet = aTestFleet();
    const { hypervisor, fleet, clock, store } = testFleet;
    putVm(testFleet, 1_260, { smbios1: `uuid=${aMachineId(7)}` });
    const plan = await fleet.planVmDecision({ kind: 'adopt', vmId: 1_260, pool: 'workers' });
    await fleet.requestVmDecision(plan);
    const vmConfig = hypervisor.vmConfig.bind(hypervisor);
    // Answers after the marker was written: the decision waits for one, the inspection for the other.
    const delaysMs = [4_000, 6_000];
    hypervisor.vmConfig = async (vm, options) => {
      const config = await vmConfig(vm, options);
      if (config.description?.includes('pvescaler/v1') === true) {
        await clock.sleep(delaysMs.shift() ?? 0);
      }
      return config;
    };
    await advanceUntilSettled(clock, onePass(fleet, testFleet));
    expect(delaysMs).toEqual([]);
    expect(await machinesIn(store)).toMatchObject([{ id: aMachineId(7), phase: 'ready' }]);
    const reasons = await journalReasonsIn(store);
    expect(reasons.filter((reason) => reason === 'MachineAdopted')).toHaveLength(1);
    expect(reasons).not.toContain('DuplicateVm');
  });

  it('and belongs to another cluster is neither listed, adopted nor forgotten', async () => {
    const testFleet = aTestFleet();
    const description = formatMarker({
      cluster: 'another',
      pool: 'workers',
      machine: aMachineId(7),
      vmId: 1_260,
      createdAtSeconds: 1,
      addresses: [],
    });
    putVm(testFleet, 1_260, { description, tags: 'pvescaler', smbios1: `uuid=${aMachineId(7)}` });
    expect(await testFleet.fleet.orphans()).toEqual([]);
    for (const kind of ['adopt', 'forget'] as const) {
      const plan = testFleet.fleet.planVmDecision({ kind, vmId: 1_260, pool: 'workers' });
      await expect(plan).rejects.toMatchObject({ code: 'VM_NOT_OWNED' });
    }
  });

  it('and was changed after it was shown stays as it is', async () => {
    const testFleet = aTestFleet();
    putVm(testFleet, 1_260, { smbios1: `uuid=${aMachineId(7)}` });
    for (const kind of ['adopt', 'forget'] as const) {
      const plan = await testFleet.fleet.planVmDecision({ kind, vmId: 1_260, pool: 'workers' });
      await testFleet.fleet.requestVmDecision(plan);
      edit(testFleet, 1_260, { name: `${kind}-renamed` });
      await runPasses(testFleet, 2);
    }
    const intents = (await testFleet.store.intents.list()).map(({ value }) => value);
    expect(intents).toMatchObject([
      { state: 'done', failure: { code: 'VM_CHANGED' } },
      { state: 'done', failure: { code: 'VM_CHANGED' } },
    ]);
    expect(optionsOf(testFleet, 1_260).has('description')).toBe(false);
  });

  it('is forgotten with the tags of its role and template', async () => {
    const testFleet = aTestFleet();
    const marker = {
      cluster: CLUSTER,
      pool: 'role:template',
      machine: aMachineId(7),
      vmId: 1_259,
      createdAtSeconds: 1,
      addresses: [],
      template: { name: 'ubuntu', version: 2 },
    };
    const description = formatMarker(marker);
    const tags = 'pvescaler;role-template;template-ubuntu;theirs;version-2';
    putVm(testFleet, 1_260, { description, tags });
    await decide(testFleet, { kind: 'forget', vmId: 1_260 });
    expect(optionsOf(testFleet, 1_260).get('tags')).toBe('theirs');
  });

  it('is forgotten once when the response to the change was lost', async () => {
    const testFleet = aTestFleet();
    putVm(testFleet, 1_260, { tags: 'pvescaler;mine' });
    testFleet.hypervisor.dropResponse('setDescription');
    const plan = await testFleet.fleet.planVmDecision({ kind: 'forget', vmId: 1_260 });
    await testFleet.fleet.requestVmDecision(plan);
    await runPasses(testFleet, 4);
    expect((await testFleet.store.intents.list()).map(({ value }) => value)).toMatchObject([
      { state: 'done' },
    ]);
    expect(optionsOf(testFleet, 1_260).get('tags')).toBe('mine');
    await onePass(testFleet.fleet, testFleet);
    expect(await testFleet.fleet.orphans()).toEqual([]);
  });
});

describe('the destruction of a VM that is not ours', () => {
  const destroy = { kind: 'destroy', vmId: 200 } as const;

  function aForeignVm(options: Record<string, string> = {}): TestFleet {
    const testFleet = aTestFleet();
    putVm(testFleet, 200, options);
    return testFleet;
  }

  it('stops and destroys it', async () => {
    const testFleet = aForeignVm();
    testFleet.hypervisor.state.vms.get(200)!.startedAt = 0;
    const { fleet, store, hypervisor } = testFleet;
    await fleet.requestVmDecision(await fleet.planVmDecision(destroy));
    await runPasses(testFleet, 10);
    expect(hypervisor.state.vms.has(200)).toBe(false);
    expect((await store.intents.list()).map(({ value }) => value.state)).toEqual(['done']);
    expect(await journalReasonsIn(store)).toContain('VmDestroyed');
    const calls = hypervisor.calls.filter(({ vmId }) => vmId === 200).map(({ method }) => method);
    expect(calls.filter((method) => /^(stop|destroy)Vm$/.test(method))).toEqual([
      'stopVm',
      'destroyVm',
    ]);
  });

  it('leaves a VM that was changed after it was shown', async () => {
    const testFleet = aForeignVm();
    const plan = await testFleet.fleet.planVmDecision(destroy);
    edit(testFleet, 200, { name: 'another' });
    await testFleet.fleet.requestVmDecision(plan);
    await runPasses(testFleet, 10);
    expect(testFleet.hypervisor.state.vms.has(200)).toBe(true);
    const [intent] = await testFleet.store.intents.list();
    expect(intent?.value).toMatchObject({ state: 'done', failure: { code: 'VM_CHANGED' } });
  });

  it('is continued by the next driver, without a second task', async () => {
    const testFleet = aForeignVm();
    const { clock, store, hypervisor, fleet } = testFleet;
    await fleet.requestVmDecision(await fleet.planVmDecision(destroy));
    await onePass(fleet, testFleet);
    const next = aFleet({ clock, store, hypervisor, settings: someSettings(), seed: 2 });
    await runPasses({ ...testFleet, fleet: next }, 10);
    expect(hypervisor.state.vms.has(200)).toBe(false);
    expect(hypervisor.calls.filter(({ method }) => method === 'destroyVm')).toHaveLength(1);
    expect((await store.intents.list()).map(({ value }) => value)).toMatchObject([
      { state: 'done' },
    ]);
  });

  it('is refused for a protected VM, one that is being created and the VM of a machine', async () => {
    const refusal = (testFleet: TestFleet, vmId: number) =>
      expect(testFleet.fleet.planVmDecision({ kind: 'destroy', vmId })).rejects;
    await refusal(aForeignVm({ protection: '1' }), 200).toMatchObject({ code: 'VM_LOCKED' });
    await refusal(aForeignVm({ lock: 'create' }), 200).toMatchObject({ code: 'VM_LOCKED' });
    const testFleet = aTestFleet();
    const { placement } = await reachPhase(testFleet, 'ready');
    await refusal(testFleet, placement!.vmId).toMatchObject({ code: 'VM_NOT_OWNED' });
  });
});
