// SPDX-License-Identifier: Apache-2.0
import { expect, it } from 'vitest';
import { formatMarker } from '../../model/marker.ts';
import { NotFound, TaskFailed } from '../../ports/errors.ts';
import {
  aPool,
  aRegion,
  CLUSTER,
  REGION,
  someSettings,
  templateSource,
} from '../testing/settings.ts';
import {
  aTestFleet,
  journalReasonsIn,
  onePass,
  REASON,
  reachPhase,
  replaceVm,
  runPasses,
  type TestFleet,
  untilAtRest,
} from '../testing/test-fleet.ts';

const ORPHAN = 1_270;

/** A second VM of a machine, which a creation left behind. */
async function anOrphan({
  isRunning = false,
  isConfigured = true,
  isProtected = false,
  milestones = {},
  limits = {},
} = {}) {
  const region = aRegion({ limits });
  const settings = { regions: { [REGION]: region } };
  const testFleet = aTestFleet(someSettings([aPool({ source: templateSource() })], settings));
  const { id } = await reachPhase(testFleet, 'ready');
  await untilAtRest(testFleet.fleet, testFleet);
  const description = formatMarker({
    cluster: CLUSTER,
    pool: 'workers',
    machine: id,
    vmId: ORPHAN,
    createdAtSeconds: 1,
    addresses: [],
    ...milestones,
  });
  const vm = {
    vmId: ORPHAN,
    host: 'pve1',
    options: new Map([
      ['name', 'late'],
      ['description', description],
      ['scsi0', 'local-lvm:x,size=1M'],
    ]),
    revision: 1,
    startedAt: isRunning ? testFleet.clock.monotonic() : undefined,
  };
  if (isConfigured) vm.options.set('smbios1', `uuid=${id}`);
  if (isProtected) vm.options.set('protection', '1');
  testFleet.hypervisor.state.vms.set(ORPHAN, vm);
  testFleet.hypervisor.calls.length = 0;
  const changes = () =>
    testFleet.hypervisor.calls
      .filter(({ vmId, method }) => vmId === ORPHAN && !/^(vm|guest)/.test(method))
      .map(({ method }) => method);
  const exists = () => testFleet.hypervisor.state.vms.has(ORPHAN);
  return { testFleet, vm, changes, exists };
}

it('removeOrphanedVm stops a running VM, waits for the task, and destroys it', async () => {
  const { testFleet, changes, exists } = await anOrphan({ isRunning: true });
  await untilAtRest(testFleet.fleet, testFleet);
  expect(changes()).toEqual(['stopVm', 'destroyVm']);
  expect(exists()).toBe(false);
  const recorded = await testFleet.store.journal.read();
  expect(recorded.filter(({ reason }) => reason === 'OrphanVm')).toMatchObject([
    { kind: 'saw', subject: { region: 'memory', host: 'pve1' }, numbers: { vmId: ORPHAN } },
  ]);
});

it('removeOrphanedVm removes the protection that a clone has from its template', async () => {
  const { testFleet, changes, exists } = await anOrphan({ isConfigured: false, isProtected: true });
  await untilAtRest(testFleet.fleet, testFleet);
  expect(changes()).toEqual(['removeProtection', 'destroyVm']);
  expect(exists()).toBe(false);
});

it('removeOrphanedVm does not remove a protection that a person has set', async () => {
  const { testFleet, vm, changes } = await anOrphan({ isProtected: true });
  await runPasses(testFleet, 20);
  expect(changes()).not.toContain('removeProtection');
  expect(vm.options.get('protection')).toBe('1');
});

it('removeOrphanedVm does not change the protection of a VM that replaced it after it was read', async () => {
  const { testFleet } = await anOrphan({ isConfigured: false, isProtected: true });
  const { hypervisor } = testFleet;
  let hasRead = false;
  let options: Map<string, string> | undefined;
  hypervisor.onCall = ({ method, vmId, host = '' }) => {
    if (vmId !== ORPHAN || options !== undefined) return;
    if (hasRead && method !== 'vmState') {
      ({ options } = replaceVm(testFleet, { vmId, host }));
      options.set('protection', '1');
    }
    hasRead ||= method === 'vmConfig';
  };
  await runPasses(testFleet, 20);
  expect(options?.get('protection')).toBe('1');
});

it('removeOrphanedVm repeats a task that failed, after a back-off, and records the failure', async () => {
  const { testFleet, changes, exists } = await anOrphan();
  testFleet.hypervisor.failNextTask('destroy', new TaskFailed('TASK_FAILED', 'storage is busy'));
  await untilAtRest(testFleet.fleet, testFleet);
  expect(changes()).toEqual(['destroyVm', 'destroyVm']);
  expect(await journalReasonsIn(testFleet.store)).toContain('TASK_FAILED');
  expect(exists()).toBe(false);
});

it('removeOrphanedVm waits longer after each failure', async () => {
  const { testFleet, changes } = await anOrphan();
  const failure = new TaskFailed('TASK_FAILED', 'storage is busy');
  testFleet.hypervisor.onCall = ({ method }) => {
    if (method === 'destroyVm') testFleet.hypervisor.failNextTask('destroy', failure);
  };
  await runPasses(testFleet, 600);
  expect(changes().length).toBeGreaterThan(4);
  expect(changes().length).toBeLessThan(12);
});

it('removeOrphanedVm continues a deletion that the VM is marked with, although it was ready', async () => {
  const milestones = { readySinceSeconds: 2, deletingSinceSeconds: 3 };
  const { testFleet, exists } = await anOrphan({ milestones });
  await untilAtRest(testFleet.fleet, testFleet);
  expect(exists()).toBe(false);
});

/** Five more orphans like the first one. */
async function sixOrphans(limits: {
  readonly deletesPerHost: number;
  readonly deletesPerStorage: number;
}) {
  const { testFleet, vm } = await anOrphan({ limits });
  const { vms } = testFleet.hypervisor.state;
  const description = vm.options.get('description') ?? '';
  for (let vmId = ORPHAN + 1; vmId < ORPHAN + 6; vmId += 1) {
    const own = description.replace(`vmid=${ORPHAN}`, `vmid=${vmId}`);
    vms.set(vmId, { ...vm, vmId, options: new Map([...vm.options, ['description', own]]) });
  }
  return { testFleet, vms };
}

function mostDestroyTasks({ hypervisor, clock }: TestFleet, host: string): () => number {
  let most = 0;
  hypervisor.onCall = () => {
    hypervisor.state.finishDueTasks(clock.monotonic());
    most = Math.max(most, hypervisor.state.runningTasks(host, 'destroy').length);
  };
  return () => most;
}

it.each([
  ['deletesPerHost', { deletesPerHost: 2, deletesPerStorage: 20 }],
  ['deletesPerStorage', { deletesPerHost: 20, deletesPerStorage: 2 }],
])('removeOrphanedVm destroys at most %s VMs at the same time', async (_name, limits) => {
  const { testFleet, vms } = await sixOrphans(limits);
  const most = mostDestroyTasks(testFleet, 'pve1');
  await untilAtRest(testFleet.fleet, testFleet);
  expect([...vms.keys()].filter((vmId) => vmId >= ORPHAN && vmId < ORPHAN + 6)).toEqual([]);
  expect(most()).toBe(2);
});

it('removeOrphanedVm and the deletions of machines share their limit', async () => {
  const { testFleet, vms } = await sixOrphans({ deletesPerHost: 1, deletesPerStorage: 20 });
  const { hypervisor, fleet } = testFleet;
  const templates = [...vms.values()].filter(({ options }) => options.get('template') === '1');
  const most = mostDestroyTasks(testFleet, 'pve1');
  await onePass(fleet, testFleet);
  await fleet.scaleTo('workers', 0, REASON);
  await untilAtRest(fleet, testFleet);
  expect(hypervisor.state.vms.size).toBe(templates.length);
  expect(most()).toBe(1);
});

it('removeOrphanedVm does not wait for a destroy task of a host that went down', async () => {
  const { testFleet, vms } = await sixOrphans({ deletesPerHost: 20, deletesPerStorage: 1 });
  const { hypervisor, fleet } = testFleet;
  const { hosts } = hypervisor.state;
  const shared = hosts.map((host) => ({
    ...host,
    storages: host.storages.map((one) => ({ ...one, shared: true })),
  }));
  hosts.splice(0, 3, ...shared);
  const last = ORPHAN + 5;
  vms.set(last, { ...vms.get(last)!, host: 'pve2' });
  const isStarted = () => hypervisor.state.runningTasks('pve1', 'destroy').length > 0;
  while (!isStarted()) await onePass(fleet, testFleet);
  hypervisor.setOnline('pve1', false);
  await runPasses(testFleet, 10);
  expect(vms.has(last)).toBe(false);
});

it('removeOrphanedVm waits for a destroy task that never ends only as long as a task may take', async () => {
  const { testFleet, vms } = await sixOrphans({ deletesPerHost: 1, deletesPerStorage: 20 });
  const { hypervisor, fleet, clock } = testFleet;
  const hung = { upid: 'UPID:hung', host: 'pve1', kind: 'destroy' } as const;
  const task = hypervisor.task.bind(hypervisor);
  const destroyVm = hypervisor.destroyVm.bind(hypervisor);
  hypervisor.destroyVm = (vm, options) =>
    vm.vmId === ORPHAN ? Promise.resolve(hung) : destroyVm(vm, options);
  hypervisor.task = (ref, options) =>
    ref.upid === hung.upid ? Promise.resolve({ state: 'running' }) : task(ref, options);
  const left = () => [...vms.keys()].filter((vmId) => vmId > ORPHAN && vmId < ORPHAN + 6);
  await runPasses(testFleet, 20);
  expect(left()).toHaveLength(5);
  await clock.advance(aRegion().taskTimeoutMs);
  for (let pass = 0; pass < 60; pass += 1) await onePass(fleet, testFleet);
  expect(left()).toEqual([]);
});

it('removeOrphanedVm continues when Proxmox no longer knows its task', async () => {
  const { testFleet, changes, exists } = await anOrphan({ isRunning: true });
  const { hypervisor } = testFleet;
  const task = hypervisor.task.bind(hypervisor);
  let lost = 0;
  hypervisor.task = (ref, options) => {
    if (ref.kind !== 'stop' || lost > 0) return task(ref, options);
    lost += 1;
    return Promise.reject(new NotFound('TASK_NOT_FOUND', `no task ${ref.upid}`));
  };
  await untilAtRest(testFleet.fleet, testFleet);
  expect(lost).toBe(1);
  expect(exists()).toBe(false);
  expect(changes().at(-1)).toBe('destroyVm');
  expect(await journalReasonsIn(testFleet.store)).not.toContain('TASK_NOT_FOUND');
});
