// SPDX-License-Identifier: Apache-2.0
import { afterEach, beforeEach, describe } from 'vitest';
import type { CreateVmOrder, TaskRef, VmSpec } from '../hypervisor.ts';
import type { Bench, EndedTask, HypervisorUnderTest } from './hypervisor-bench.ts';
import { guestContract } from './hypervisor-guest.contract.ts';
import { storageContract } from './hypervisor-storage.contract.ts';
import { troubleContract } from './hypervisor-trouble.contract.ts';
import { vmContract } from './hypervisor-vm.contract.ts';

const GIBIBYTE = 2 ** 30;
const LONGEST_TASK_MS = 30 * 60 * 1_000;
const LONGEST_BOOT_MS = 10 * 60 * 1_000;

const HARDWARE = {
  cpus: 2,
  memoryBytes: 2 * GIBIBYTE,
  balloonBytes: 0,
  networks: [{ model: 'virtio', bridge: 'vmbr0' }],
  bootFrom: 'disk',
  options: {},
} as const;

/** Runs against each implementation; `make` gives a new region each time. */
export function hypervisorContract(name: string, make: () => Promise<HypervisorUnderTest>): void {
  describe(`Hypervisor contract: ${name}`, () => {
    const current: { bench?: Bench } = {};
    beforeEach(async () => {
      current.bench = benchOf(await make());
    });
    afterEach(async () => {
      await current.bench?.it.cleanup();
      delete current.bench;
    });
    const bench = (): Bench => {
      if (current.bench === undefined) throw new Error('only inside a test');
      return current.bench;
    };
    vmContract(bench);
    guestContract(bench);
    storageContract(bench);
    troubleContract(bench);
  });
}

function benchOf(under: HypervisorUnderTest): Bench {
  const { hypervisor } = under;
  let nextId = 5_000;

  const order = (overrides: Partial<CreateVmOrder> = {}): CreateVmOrder => {
    nextId += 1;
    const vmId = overrides.vmId ?? nextId;
    return {
      vmId,
      host: under.hosts[0],
      identity: {
        name: `node-${vmId}`,
        description: `marker of ${vmId}; a=b, "quoted" & ü\nsecond line`,
        tags: ['pvescaler', 'ca-group-a'],
        smbiosUuid: `0a1b2c3d-0000-4000-8000-${String(vmId).padStart(12, '0')}`,
      },
      hardware: HARDWARE,
      disk: { storage: under.storages.disks, bytes: 4 * GIBIBYTE },
      ...overrides,
    };
  };

  const spec = (overrides: Partial<VmSpec> = {}): VmSpec => ({
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
    for (let waitedMs = 0; waitedMs < LONGEST_TASK_MS; waitedMs += 1_000) {
      const status = await under.settled(hypervisor.task(task));
      if (status.state === 'ended') return status;
      await under.pass(1_000);
    }
    throw new Error(`${task.upid} does not end`);
  };

  const end: Bench['end'] = async (task) => {
    const started = await under.settled(task);
    if (started === undefined) throw new Error('no task was started');
    return followed(started);
  };

  const created: Bench['created'] = async (overrides) => {
    const wanted = order(overrides);
    const status = await end(hypervisor.createVm(wanted));
    if (!status.succeeded) throw new Error(status.message);
    return { vmId: wanted.vmId, host: wanted.host };
  };

  /** From the template: an empty disk has no guest that could answer. */
  const booted: Bench['booted'] = async () => {
    nextId += 1;
    const vm = { vmId: nextId, host: under.template.host };
    const clone = { ...vm, source: under.template, name: `guest-${nextId}`, description: 'guest' };
    await end(hypervisor.cloneVm({ ...clone, linked: false, storage: under.storages.disks }));
    await end(hypervisor.startVm(vm));
    for (let waitedMs = 0; waitedMs < LONGEST_BOOT_MS; waitedMs += 5_000) {
      if (await under.settled(hypervisor.guestIsUp(vm))) return vm;
      await under.pass(5_000);
    }
    throw new Error(`the guest of VM ${vm.vmId} does not answer`);
  };

  return {
    it: under,
    hypervisor,
    order,
    spec,
    end,
    created,
    booted,
    config: (vm) => under.settled(hypervisor.vmConfig(vm)),
  };
}
