// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { createScriptedRegion, okResponse, UPID } from './scripted-region.fixture.ts';

const VM = { vmId: 160, host: 'pve1' };

describe('view', () => {
  const RESOURCES = [
    { type: 'node', node: 'pve2', status: 'offline', maxcpu: 8, maxmem: 2 ** 34 },
    { type: 'node', node: 'pve1', status: 'online', maxcpu: 16, maxmem: 2 ** 35, cpu: 0.5 },
    {
      type: 'storage',
      node: 'pve1',
      storage: 'local',
      status: 'available',
      shared: 0,
      content: 'iso,images,import',
      maxdisk: 1_000,
      disk: 400,
    },
    { type: 'storage', node: 'pve1', storage: 'dead', status: 'unknown', shared: 1, content: '' },
    { type: 'storage', node: 'pve2', storage: 'local', status: 'available', maxdisk: 5, disk: 9 },
    {
      type: 'qemu',
      vmid: 161,
      node: 'pve1',
      name: 'k8s-a',
      status: 'running',
      tags: 'B;a',
      template: 0,
      maxcpu: 4,
      maxmem: 2 ** 33,
    },
    { type: 'qemu', vmid: 160, node: 'pve1', status: 'unknown', lock: 'create' },
    { type: 'qemu', vmid: 170, node: 'pve2', name: 'x', status: 'running', template: 1 },
    { type: 'lxc', vmid: 150, node: 'pve1', status: 'running' },
    { type: 'network', network: 'zone', node: 'pve1' },
    { type: 'pool', pool: 'k8s' },
  ];

  it('returns hosts, storages, VMs and taken ids from one response', async () => {
    const region = createScriptedRegion({ 'GET /cluster/resources': okResponse(RESOURCES) });
    const view = await region.hypervisor.view();
    expect(view).toMatchObject({ region: 'home', version: '9.2.1', takenAt: region.clock.now() });
    expect(view.takenVmIds).toEqual([150, 160, 161, 170]);
    expect(view.hosts.map((host) => [host.name, host.online, host.cpus])).toEqual([
      ['pve1', true, 16],
      ['pve2', false, 8],
    ]);
    expect(view.hosts[0]?.storages).toEqual([
      expect.objectContaining({ name: 'dead', active: false, shared: true, content: [] }),
      {
        name: 'local',
        shared: false,
        active: true,
        content: ['images', 'import', 'iso'],
        totalBytes: 1_000,
        freeBytes: 600,
      },
    ]);
    expect(view.hosts[1]?.storages[0]?.freeBytes).toBe(0);
    expect(view.vms).toEqual([
      {
        ...VM,
        name: undefined,
        power: 'unknown',
        tags: [],
        isTemplate: false,
        lock: 'create',
        isBeingCreated: true,
        cpus: undefined,
        memoryBytes: undefined,
      },
      {
        vmId: 161,
        host: 'pve1',
        name: 'k8s-a',
        power: 'running',
        tags: ['a', 'b'],
        isTemplate: false,
        lock: undefined,
        isBeingCreated: false,
        cpus: 4,
        memoryBytes: 2 ** 33,
      },
      expect.objectContaining({ vmId: 170, power: 'unknown', isTemplate: true }),
    ]);
  });

  it('costs one request for any number of unchanged VMs, and one more when the version is read again', async () => {
    const region = createScriptedRegion({
      'GET /cluster/resources': okResponse(RESOURCES),
      'GET /nodes/pve1/qemu/161/config': okResponse({ digest: 'a', cores: 4, memory: 8_192 }),
    });
    // The first view also reads the version and the configuration of the new VM.
    await region.hypervisor.view();
    expect(region.transport.requests).toHaveLength(3);
    for (let pass = 0; pass < 5; pass += 1) await region.hypervisor.view();
    expect(region.transport.requests).toHaveLength(8);
    await region.clock.advance(11 * 60 * 1_000);
    await region.hypervisor.view();
    expect(region.transport.requests).toHaveLength(10);
  });

  it('is not delayed by a host that does not respond', async () => {
    const region = createScriptedRegion({
      'GET /cluster/resources': okResponse([
        RESOURCES[1],
        { type: 'qemu', vmid: 160, node: 'pve1', status: 'unknown' },
        { type: 'qemu', vmid: 161, node: 'pve1', status: 'unknown' },
      ]),
      'GET /nodes/pve1/qemu/160/config': () => new Promise(() => undefined),
    });
    for (let pass = 0; pass < 3; pass += 1) {
      const view = await region.advanceUntil(region.hypervisor.view());
      expect(view.vms).toHaveLength(2);
    }
    expect(region.clock.monotonic()).toBeLessThan(5_100);
  });

  it('sets the host of a VM for later calls', async () => {
    const region = createScriptedRegion({
      'GET /cluster/resources': okResponse(RESOURCES),
      'POST /nodes/pve1/qemu/161/status/start': okResponse(UPID),
    });
    await region.hypervisor.view();
    await region.hypervisor.startVm({ vmId: 161, host: 'pve7' });
  });
});

describe('permissions', () => {
  it('returns the privileges listed for the path', async () => {
    const region = createScriptedRegion({
      'GET /access/permissions': okResponse({ '/vms/100': { 'VM.PowerMgmt': 0, 'VM.Audit': 1 } }),
    });
    await expect(region.hypervisor.permissions('/vms/100')).resolves.toEqual([
      'VM.Audit',
      'VM.PowerMgmt',
    ]);
    await expect(region.hypervisor.permissions('/')).resolves.toEqual([]);
  });
});
