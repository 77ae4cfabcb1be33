// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import {
  createScriptedRegion,
  errorResponse,
  failConnection,
  okResponse,
  UPID,
} from './scripted-region.fixture.ts';

const VM = { vmId: 160, host: 'pve1' };
const MISSING = errorResponse(
  500,
  "Configuration file 'nodes/pve1/qemu-server/160.conf' does not exist",
);

describe('a VM that is not on its last known host', () => {
  it('is found on its new host, which later calls use directly', async () => {
    const region = createScriptedRegion({
      'GET /nodes/pve1/qemu/160/config': MISSING,
      'GET /cluster/resources': okResponse([
        { type: 'lxc', vmid: 160, node: 'pve3' },
        { type: 'qemu', vmid: 161, node: 'pve3' },
        { type: 'qemu', vmid: 160, node: 'pve2' },
      ]),
      'GET /nodes/pve2/qemu/160/config': okResponse({ digest: 'd' }),
    });
    await expect(region.hypervisor.vmConfig(VM)).resolves.toMatchObject({ host: 'pve2' });
    await region.hypervisor.vmConfig(VM);
    expect(region.requestLines()).toEqual([
      'GET /nodes/pve1/qemu/160/config',
      'GET /cluster/resources',
      'GET /nodes/pve2/qemu/160/config',
      'GET /nodes/pve2/qemu/160/config',
    ]);
  });

  it('is not found only when no host has it', async () => {
    const routes = { 'GET /nodes/pve1/qemu/160/config': MISSING };
    const notFound = createScriptedRegion({ ...routes, 'GET /cluster/resources': okResponse([]) });
    await expect(notFound.hypervisor.vmConfig(VM)).rejects.toMatchObject({
      code: 'VM_NOT_FOUND',
      message: 'VM 160 does not exist on any host of the region',
      facts: { vmId: 160 },
      cause: expect.objectContaining({ code: 'VM_NOT_FOUND' }),
    });
    expect(notFound.lastRequest().url.search).toBe('?type=vm');
    const moving = createScriptedRegion({
      ...routes,
      'GET /cluster/resources': okResponse([{ type: 'qemu', vmid: 160, node: 'pve1' }]),
    });
    await expect(moving.hypervisor.vmConfig(VM)).rejects.toMatchObject({
      code: 'VM_CHANGED',
      message: expect.stringContaining('VM 160 is on another host than expected'),
      facts: { vmId: 160 },
      cause: expect.objectContaining({ code: 'VM_NOT_FOUND' }),
    });
    const unknown = createScriptedRegion({
      ...routes,
      'GET /cluster/resources': () => failConnection(true),
    });
    await expect(unknown.advanceUntil(unknown.hypervisor.vmConfig(VM))).rejects.toMatchObject({
      class: 'Unreachable',
      facts: { requestSent: false },
    });
    const hostNotFound = createScriptedRegion({
      'GET /nodes/pve1/qemu/160/config': errorResponse(500, "hostname lookup 'pve1' failed - x"),
      'GET /cluster/resources': okResponse([]),
    });
    await expect(hostNotFound.hypervisor.vmConfig(VM)).rejects.toMatchObject({
      code: 'VM_NOT_FOUND',
    });
  });

  it('is looked up on the host that the caller names once no host has it', async () => {
    const hosts = [[{ type: 'qemu', vmid: 160, node: 'pve2' }], []];
    const region = createScriptedRegion({
      'GET /nodes/pve1/qemu/160/config': MISSING,
      'GET /nodes/pve2/qemu/160/config': MISSING,
      'GET /cluster/resources': () => okResponse(hosts.shift() ?? []),
    });
    await expect(region.hypervisor.vmConfig(VM)).rejects.toMatchObject({ code: 'VM_CHANGED' });
    await expect(region.hypervisor.vmConfig(VM)).rejects.toMatchObject({ code: 'VM_NOT_FOUND' });
    await expect(region.hypervisor.vmConfig(VM)).rejects.toMatchObject({ code: 'VM_NOT_FOUND' });
    expect(region.requestLines().filter((request) => request.includes('config'))).toEqual([
      'GET /nodes/pve1/qemu/160/config',
      'GET /nodes/pve2/qemu/160/config',
      'GET /nodes/pve2/qemu/160/config',
      'GET /nodes/pve1/qemu/160/config',
    ]);
  });

  it('is not destroyed on a host where the caller has not verified it', async () => {
    const region = createScriptedRegion({
      'DELETE /nodes/pve1/qemu/160': MISSING,
      'GET /cluster/resources': okResponse([{ type: 'qemu', vmid: 160, node: 'pve2' }]),
      'GET /nodes/pve2/qemu/160/config': okResponse({ digest: 'd' }),
      'DELETE /nodes/pve2/qemu/160': okResponse(UPID),
    });
    await expect(region.hypervisor.destroyVm(VM)).rejects.toMatchObject({ code: 'VM_CHANGED' });
    expect(region.requestLines()).toEqual([
      'DELETE /nodes/pve1/qemu/160',
      'GET /cluster/resources',
    ]);
    const onNewHost = await region.hypervisor.vmConfig(VM);
    // The old VmRef still names pve1.
    await expect(region.hypervisor.destroyVm(VM)).rejects.toMatchObject({ code: 'VM_CHANGED' });
    await region.hypervisor.destroyVm(onNewHost);
    expect(region.requestLines().slice(2)).toEqual([
      'GET /nodes/pve2/qemu/160/config',
      'DELETE /nodes/pve1/qemu/160',
      'GET /cluster/resources',
      'DELETE /nodes/pve2/qemu/160',
    ]);
  });

  it('counts as destroyed when no host has it', async () => {
    const region = createScriptedRegion({
      'DELETE /nodes/pve1/qemu/160': MISSING,
      'GET /cluster/resources': okResponse([]),
    });
    await expect(region.hypervisor.destroyVm(VM)).resolves.toBeUndefined();
    const running = createScriptedRegion({
      'DELETE /nodes/pve1/qemu/160': errorResponse(500, 'VM 160 is running - destroy failed'),
    });
    await expect(running.hypervisor.destroyVm(VM)).rejects.toMatchObject({ code: 'VM_CHANGED' });
  });
});
