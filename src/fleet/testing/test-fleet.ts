// SPDX-License-Identifier: Apache-2.0
// A fleet on fakes and virtual time. Tests run its reconcile passes one by one, one second apart.
import { addressesInUse as heldAddresses } from '../../model/held-addresses.ts';
import { RECONCILE_LEASE } from '../../model/lease.ts';
import {
  type Machine,
  type Phase,
  type TaskKind,
  withoutPrefixLength,
} from '../../model/machine.ts';
import { readMarker } from '../../model/marker.ts';
import type { Cluster } from '../../ports/cluster.ts';
import { Unreachable } from '../../ports/errors.ts';
import type { MemoryCluster } from '../../ports/fakes/memory-cluster.ts';
import { MemoryHypervisor } from '../../ports/fakes/memory-hypervisor.ts';
import type { MemoryVm } from '../../ports/fakes/memory-region.ts';
import { MemoryStore } from '../../ports/fakes/memory-store.ts';
import { SeededRandom } from '../../ports/fakes/seeded-random.ts';
import { VirtualClock } from '../../ports/fakes/virtual-clock.ts';
import type { Hypervisor, VmRef } from '../../ports/hypervisor.ts';
import type { Store } from '../../ports/store.ts';
import type { CheckDrain } from '../context/options.ts';
import type { FleetSettings } from '../context/settings.ts';
import type { PassReport } from '../driver/reconcile-pass.ts';
import { createFleet, type Fleet } from '../fleet.ts';
import { aHost, REGION, someSettings } from './settings.ts';

export const REASON = { by: 'test', reason: 'requested by a test' };

export interface TestFleet {
  readonly clock: VirtualClock;
  readonly store: MemoryStore;
  readonly hypervisor: MemoryHypervisor;
  readonly fleet: Fleet;
  /** Undefined: machines join no cluster. */
  readonly cluster?: MemoryCluster | undefined;
}

export function aTestFleet(
  settings: FleetSettings = someSettings(),
  clusterOn: (clock: VirtualClock) => MemoryCluster | undefined = () => undefined,
): TestFleet {
  const clock = new VirtualClock();
  const cluster = clusterOn(clock);
  const store = new MemoryStore({ clock });
  const hypervisor = new MemoryHypervisor({
    region: REGION,
    clock,
    random: new SeededRandom(5),
    hosts: [aHost('pve1'), aHost('pve2'), aHost('pve3')],
    taskMs: 1_500,
    bootMs: 3_000,
  });
  for (const [index, host] of ['pve1', 'pve2', 'pve3'].entries()) {
    hypervisor.state.vms.set(9_001 + index, {
      vmId: 9_001 + index,
      host,
      options: new Map([
        ['name', 'base'],
        ['template', '1'],
        ['scsi0', `local-lvm:base-${9_001 + index}-disk-0,size=3072M`],
        ['smbios1', 'uuid=0a1b2c3d-9999-4000-8000-000000000000'],
      ]),
      revision: 1,
      startedAt: undefined,
    });
  }
  const fleet = aFleet({ clock, store, hypervisor, settings, seed: 1, cluster });
  return { clock, store, hypervisor, fleet, cluster };
}

interface FleetParts {
  readonly clock: VirtualClock;
  readonly store: Store;
  readonly hypervisor: Hypervisor;
  readonly settings: FleetSettings;
  readonly seed: number;
  readonly cluster?: Cluster | undefined;
  readonly checkDrain?: CheckDrain | undefined;
}

/** The engine of one process; several may share a store. */
export function aFleet(parts: FleetParts): Fleet {
  const { clock, store, hypervisor, settings, seed, cluster, checkDrain } = parts;
  return createFleet({
    clock,
    store,
    hypervisors: new Map([[REGION, hypervisor]]),
    random: new SeededRandom(seed),
    settings,
    cluster,
    checkDrain,
  });
}

interface PassParts {
  readonly store: Store;
  readonly clock: VirtualClock;
  /** Simulated guests, which advance before each pass. */
  readonly guests?: { settle(): void } | undefined;
}

export async function onePass(
  fleet: Fleet,
  { store, clock, guests }: PassParts,
): Promise<PassReport> {
  guests?.settle();
  const lease = await store.leases.acquire({
    name: RECONCILE_LEASE,
    holder: 'test',
    durationMs: 3_600_000,
  });
  const report = await fleet.reconcileOnce(lease);
  await clock.advance(1_000);
  return report;
}

export async function runPasses(
  testFleet: PassParts & { readonly fleet: Fleet },
  count: number,
): Promise<void> {
  for (let pass = 0; pass < count; pass += 1) await onePass(testFleet.fleet, testFleet);
}

/** Runs passes until two in a row found nothing in progress, at most `maxPasses`. */
export async function untilAtRest(fleet: Fleet, at: PassParts, maxPasses = 2_000): Promise<void> {
  let quietPasses = 0;
  for (let pass = 0; pass < maxPasses && quietPasses < 2; pass += 1) {
    const { inProgress, undecided } = await onePass(fleet, at);
    quietPasses = inProgress === 0 && undecided.length === 0 ? quietPasses + 1 : 0;
  }
}

/** Puts a VM of a person under this id, in place of the one that has it. It is running. */
export function replaceVm({ hypervisor, clock }: TestFleet, { vmId, host }: VmRef): MemoryVm {
  const options = new Map([
    ['name', 'a-persons'],
    ['memory', '512'],
    ['scsi0', `local-lvm:vm-${vmId}-disk-0,size=1024M`],
  ]);
  const vm = { vmId, host, options, revision: 1, startedAt: clock.monotonic() - 60_000 };
  hypervisor.state.vms.set(vmId, vm);
  return vm;
}

/**
 * Requests one machine of a pool with a template. The response of its clone call is lost, and the task runs, without a
 * visible VM, until `end` is called.
 */
export async function anUnrecordedClone(
  testFleet: TestFleet,
): Promise<{ readonly end: () => void }> {
  const { hypervisor, fleet } = testFleet;
  let isEnded = false;
  hypervisor.failNext('cloneVm', new Unreachable('PVE_UNREACHABLE', 'the response was dropped'));
  await fleet.scaleTo('workers', 1, REASON);
  const isCloning = () => hypervisor.calls.some(({ method }) => method === 'cloneVm');
  while (!isCloning()) await onePass(fleet, testFleet);
  const runningTasks = hypervisor.state.runningTasks.bind(hypervisor.state);
  hypervisor.state.runningTasks = (host, kind) => {
    const [template] = [...hypervisor.state.vms.values()].filter((vm) => vm.host === host);
    const clone = { upid: `clone-on-${host}`, kind, host, subject: template?.vmId };
    return kind === 'clone' && !isEnded ? [clone] : runningTasks(host, kind);
  };
  return {
    end: () => {
      isEnded = true;
    },
  };
}

/** Tasks of this kind are reported as running until `end` is called. */
export function keepRunning(
  { hypervisor }: TestFleet,
  kind: TaskKind,
): { readonly end: () => void } {
  const task = hypervisor.task.bind(hypervisor);
  hypervisor.task = (ref, options) =>
    ref.kind === kind ? Promise.resolve({ state: 'running' }) : task(ref, options);
  return {
    end: () => {
      hypervisor.task = task;
    },
  };
}

/** Requests one machine and runs passes until it is in this phase. */
export async function reachPhase(testFleet: TestFleet, phase: Phase): Promise<Machine> {
  await testFleet.fleet.scaleTo('workers', 1, REASON);
  for (let pass = 0; pass < 60; pass += 1) {
    const [machine] = await machinesIn(testFleet.store);
    if (machine?.phase === phase) return machine;
    await onePass(testFleet.fleet, testFleet);
  }
  throw new Error(`no machine has reached phase ${phase}`);
}

export async function machinesIn(store: Store): Promise<readonly Machine[]> {
  return (await store.machines.list()).map(({ value }) => value);
}

export async function phasesIn(store: Store): Promise<readonly Phase[]> {
  return (await machinesIn(store)).map(({ phase }) => phase);
}

export async function journalReasonsIn(store: Store): Promise<readonly string[]> {
  return (await store.journal.read()).map(({ reason }) => reason);
}

/** All VMs except templates, the machines their markers name, and all ISO files. */
export function existingResources({ state }: MemoryHypervisor) {
  const vms = [...state.vms.values()].filter((vm) => vm.options.get('template') !== '1');
  return {
    vms: vms.map((vm) => vm.vmId),
    machines: vms.map((vm) => {
      const reading = readMarker(vm.options.get('description'));
      return reading.kind === 'marked' ? reading.marker.machine : reading.kind;
    }),
    isos: [...state.volumes.values()]
      .filter(({ content }) => content === 'iso')
      .map(({ id }) => id),
  };
}

/** Static addresses that machines have, without prefix lengths. */
export async function addressesInUse(store: Store): Promise<readonly string[]> {
  return heldAddresses(await machinesIn(store)).map(withoutPrefixLength);
}
