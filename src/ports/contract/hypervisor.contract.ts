// SPDX-License-Identifier: Apache-2.0
import { afterEach, beforeEach, describe } from 'vitest';
import type { CreateVmOrder, TaskRef, VmSpec } from '../hypervisor.ts';
import { failureContract } from './hypervisor-failure.contract.ts';
import type { EndedTask, HypervisorFixture, HypervisorUnderTest } from './hypervisor-fixture.ts';
import { guestContract } from './hypervisor-guest.contract.ts';
import { storageContract } from './hypervisor-storage.contract.ts';
import { vmContract } from './hypervisor-vm.contract.ts';

const GIBIBYTE = 2 ** 30;
const MAX_TASK_MS = 30 * 60 * 1_000;
const MAX_BOOT_MS = 10 * 60 * 1_000;

const HARDWARE = {
  cpus: 2,
  memoryBytes: 2 * GIBIBYTE,
  balloonBytes: 0,
  networks: [{ model: 'virtio', bridge: 'vmbr0' }],
  bootFrom: 'disk',
  options: {},
} as const;

/** The contract of every implementation of the port; `open` returns a new region. */
export function hypervisorContract(name: string, open: () => Promise<HypervisorUnderTest>): void {
  describe(`Hypervisor contract: ${name}`, () => {
    const current: { fixture?: HypervisorFixture } = {};
    beforeEach(async () => {
      current.fixture = createFixture(await open());
    });
    afterEach(async () => {
      await current.fixture?.underTest.cleanup();
      delete current.fixture;
    });
    const fixture = (): HypervisorFixture => {
      if (current.fixture === undefined) throw new Error('the fixture exists only inside a test');
      return current.fixture;
    };
    vmContract(fixture);
    guestContract(fixture);
    storageContract(fixture);
    failureContract(fixture);
  });
}

function createFixture(underTest: HypervisorUnderTest): HypervisorFixture {
  const { hypervisor } = underTest;
  let nextId = 5_000;

  const vmOrder = (overrides: Partial<CreateVmOrder> = {}): CreateVmOrder => {
    nextId += 1;
    const vmId = overrides.vmId ?? nextId;
    return {
      vmId,
      host: underTest.hosts[0],
      identity: {
        name: `node-${vmId}`,
        description: `marker of ${vmId}; a=b, "quoted" & ü\nsecond line`,
        tags: ['pvescaler', 'ca-group-a'],
        smbiosUuid: `0a1b2c3d-0000-4000-8000-${String(vmId).padStart(12, '0')}`,
      },
      hardware: HARDWARE,
      disk: { storage: underTest.storages.disks, bytes: 4 * GIBIBYTE },
      ...overrides,
    };
  };

  const vmSpec = (overrides: Partial<VmSpec> = {}): VmSpec => ({
    tags: ['x', 'y'],
    smbiosUuid: '0a1b2c3d-1111-4000-8000-000000000001',
    hardware: {
      ...HARDWARE,
      cpus: 6,
      memoryBytes: 4 * GIBIBYTE,
      networks: [{ model: 'virtio', bridge: 'vmbr0', mac: '02:00:00:00:00:01' }],
      options: { sockets: '2' },
    },
    disk: { discard: true, ssd: false, iothread: true, cache: 'none' },
    hasSeed: false,
    ...overrides,
  });

  const followed = async (task: TaskRef): Promise<EndedTask> => {
    for (let waitedMs = 0; waitedMs < MAX_TASK_MS; waitedMs += 1_000) {
      const status = await underTest.advanceUntil(hypervisor.task(task));
      if (status.state === 'ended') return status;
      await underTest.advance(1_000);
    }
    throw new Error(`task ${task.upid} does not end`);
  };

  const followToEnd: HypervisorFixture['followToEnd'] = async (task) => {
    const started = await underTest.advanceUntil(task);
    if (started === undefined) throw new Error('the call started no task');
    return followed(started);
  };

  const createVm: HypervisorFixture['createVm'] = async (overrides) => {
    const order = vmOrder(overrides);
    const status = await followToEnd(hypervisor.createVm(order));
    if (!status.succeeded) throw new Error(status.message);
    return { vmId: order.vmId, host: order.host };
  };

  /** Clones the template: a VM with an empty disk has no guest agent. */
  const bootVm: HypervisorFixture['bootVm'] = async () => {
    nextId += 1;
    const vm = { vmId: nextId, host: underTest.template.host };
    const clone = {
      ...vm,
      source: underTest.template,
      name: `guest-${nextId}`,
      description: 'guest',
    };
    await followToEnd(
      hypervisor.cloneVm({ ...clone, linked: false, storage: underTest.storages.disks }),
    );
    await followToEnd(hypervisor.startVm(vm));
    for (let waitedMs = 0; waitedMs < MAX_BOOT_MS; waitedMs += 5_000) {
      if (await underTest.advanceUntil(hypervisor.guestIsUp(vm))) return vm;
      await underTest.advance(5_000);
    }
    throw new Error(`the guest agent of VM ${vm.vmId} does not respond`);
  };

  return {
    underTest,
    hypervisor,
    vmOrder,
    vmSpec,
    followToEnd,
    createVm,
    bootVm,
    readConfig: (vm) => underTest.advanceUntil(hypervisor.vmConfig(vm)),
  };
}
