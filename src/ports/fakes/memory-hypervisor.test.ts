// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import type { Host } from '../../model/host.ts';
import { hypervisorContract } from '../contract/hypervisor.contract.ts';
import { Conflict, NoCapacity } from '../errors.ts';
import { advanceUntilSettled } from './advance-until-settled.ts';
import { type HypervisorCall, MemoryHypervisor } from './memory-hypervisor.ts';
import { SeededRandom } from './seeded-random.ts';
import { VirtualClock } from './virtual-clock.ts';

function host(name: string): Host {
  const storage = { shared: false, active: true, totalBytes: 2 ** 40, freeBytes: 2 ** 39 };
  return {
    region: 'memory',
    name,
    online: true,
    cpus: 16,
    memoryBytes: 2 ** 36,
    storages: [
      { ...storage, name: 'local', content: ['images', 'import', 'iso'] },
      { ...storage, name: 'ceph', shared: true, content: ['images'] },
    ],
  };
}

const CONTAINER = { vmId: 8_000, cpus: 2, memoryBytes: 2 ** 31 };

function createHypervisor() {
  const clock = new VirtualClock();
  const hypervisor = new MemoryHypervisor({
    clock,
    random: new SeededRandom(3),
    hosts: [host('pve1'), host('pve2')],
  });
  const options = new Map([
    ['template', '1'],
    ['name', 'base'],
    ['tags', 'base'],
    ['smbios1', 'uuid=0a1b2c3d-9999-4000-8000-000000000000'],
    ['scsi0', 'local:vm-9000-disk-0,size=2048M'],
  ]);
  const template = { vmId: 9_000, host: 'pve1', options, revision: 1, startedAt: undefined };
  hypervisor.state.vms.set(9_000, template);
  hypervisor.state.containers.push({
    ...CONTAINER,
    host: 'pve2',
    power: 'running',
    isTemplate: false,
  });
  return { clock, hypervisor };
}

hypervisorContract('memory', () => {
  const { clock, hypervisor } = createHypervisor();
  return Promise.resolve({
    hypervisor,
    advanceUntil: <T>(work: Promise<T>) => advanceUntilSettled(clock, work),
    advance: (ms: number) => clock.advance(ms),
    hosts: ['pve1', 'pve2'] as const,
    storages: { disks: 'local', isos: 'local', images: 'local' },
    template: { vmId: 9_000, host: 'pve1' },
    container: CONTAINER,
    image: { url: 'https://images.example/x.qcow2', sha256: 'ab'.repeat(32) },
    dropResponse: (method: 'createVm' | 'startVm' | 'destroyVm') => hypervisor.dropResponse(method),
    move: (vmId: number, to: string) => hypervisor.move(vmId, to),
    cleanup: () => hypervisor.close(),
  });
});

describe('MemoryHypervisor', () => {
  const VM = { vmId: 9_000, host: 'pve1' };

  it('fails the next call once, and reports every call to onCall', async () => {
    const { hypervisor } = createHypervisor();
    const reported: HypervisorCall[] = [];
    hypervisor.onCall = (call) => reported.push(call);
    hypervisor.failNext('vmState', new Conflict('VM_LOCKED', 'locked'));
    await expect(hypervisor.vmState(VM)).rejects.toMatchObject({ code: 'VM_LOCKED' });
    await expect(hypervisor.vmState(VM)).resolves.toMatchObject({ power: 'stopped' });
    expect(reported).toEqual([
      { method: 'vmState', ...VM },
      { method: 'vmState', ...VM },
    ]);
    expect(hypervisor.calls).toEqual(reported);
  });

  it('fails the next task, and removes the VM that it created', async () => {
    const { clock, hypervisor } = createHypervisor();
    hypervisor.failNextTask('clone', new NoCapacity('NO_STORAGE_SPACE', 'full'));
    const clone = { vmId: 100, host: 'pve1', linked: true, name: 'x', description: '' };
    const task = await hypervisor.cloneVm({ ...clone, source: VM });
    await expect(hypervisor.vmConfig(clone)).resolves.toMatchObject({
      isBeingCreated: true,
      name: undefined,
    });
    await clock.advance(5_000);
    await expect(hypervisor.task(task)).resolves.toMatchObject({
      succeeded: false,
      failure: { code: 'NO_STORAGE_SPACE' },
    });
    await expect(hypervisor.vmConfig(clone)).rejects.toMatchObject({ code: 'VM_NOT_FOUND' });
    hypervisor.state.forgetTasks();
    await expect(hypervisor.task(task)).rejects.toMatchObject({ code: 'TASK_NOT_FOUND' });
  });

  it('does not report a VM as missing when its host is down', async () => {
    const { hypervisor } = createHypervisor();
    hypervisor.setOnline('pve1', false);
    await expect(hypervisor.vmConfig(VM)).rejects.toMatchObject({ code: 'PVE_HOST_UNREACHABLE' });
    const view = await hypervisor.view();
    expect(view.vms[0]?.power).toBe('unknown');
    expect(view.hosts[0]?.online).toBe(false);
  });

  it('fails to start a VM whose ISO does not exist', async () => {
    const { clock, hypervisor } = createHypervisor();
    const file = { storage: 'local', content: 'iso', name: 'gone.iso' } as const;
    const { digest } = await hypervisor.vmConfig(VM);
    await hypervisor.attachSeed(VM, hypervisor.volumeId(file), { digest });
    const task = await hypervisor.startVm(VM);
    await clock.advance(5_000);
    await expect(hypervisor.task(task)).resolves.toMatchObject({
      failure: { code: 'VOLUME_NOT_FOUND' },
    });
  });
});

it('refuses to destroy a protected VM, as Proxmox does', async () => {
  const { hypervisor, clock } = createHypervisor();
  const vm = hypervisor.state.vms.get(9_000)!;
  vm.options.set('protection', '1');
  const destroyed = hypervisor.destroyVm({ vmId: 9_000, host: 'pve1' });
  await expect(advanceUntilSettled(clock, destroyed)).rejects.toMatchObject({
    code: 'VM_LOCKED',
    message: "can't remove VM 9000 - protection mode enabled",
  });
  expect(hypervisor.state.vms.has(9_000)).toBe(true);
});
