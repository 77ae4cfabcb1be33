// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { createScriptedRegion, okResponse } from './scripted-region.fixture.ts';

const VM = { vmId: 160, host: 'pve1' };
const GIB = 2 ** 30;

describe('vmConfig', () => {
  it('parses numbers sent as strings, property strings, drives and addresses', async () => {
    const region = createScriptedRegion({
      'GET /nodes/pve1/qemu/160/config': okResponse({
        digest: 'abc',
        name: 'k8s-a1',
        description: 'marker\n',
        tags: 'b;A',
        smbios1: 'uuid=AAAAAAAA-BBBB-4CCC-8DDD-EEEEEEEEEEEE,base64=1',
        cores: 2,
        sockets: '2',
        memory: 'current=2048',
        template: 1,
        lock: 'clone',
        ipconfig1: 'ip=dhcp,ip6=fd00::5/64',
        ipconfig0: 'ip=10.0.0.5/24,gw=10.0.0.1',
        protection: 1,
        boot: 'order=ide2;virtio3',
        scsi0: 'slow:vm-160-disk-1,size=1G',
        virtio3: 'fast:vm-160-disk-0,size=20G',
        ide2: 'local:iso/seed.iso,media=cdrom,size=370K',
      }),
    });
    const config = await region.hypervisor.vmConfig(VM);
    expect(config).toMatchObject({
      ...VM,
      digest: 'abc',
      name: 'k8s-a1',
      description: 'marker',
      tags: ['a', 'b'],
      smbiosUuid: 'aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee',
      lock: 'clone',
      isBeingCreated: true,
      isProtected: true,
      isTemplate: true,
      cpus: 4,
      memoryBytes: 2 * GIB,
      bootDisk: { storage: 'fast', bytes: 20 * GIB },
      seedVolume: 'local:iso/seed.iso',
      addresses: ['10.0.0.5/24', 'fd00::5/64'],
    });
    expect(region.lastRequest().url.search).toBe('');
  });

  it('uses the defaults of Proxmox for missing options', async () => {
    const region = createScriptedRegion({
      'GET /nodes/pve1/qemu/160/config': okResponse({ digest: 'x' }),
    });
    await expect(region.hypervisor.vmConfig(VM)).resolves.toMatchObject({
      name: undefined,
      description: undefined,
      smbiosUuid: undefined,
      tags: [],
      cpus: 1,
      memoryBytes: 512 * 2 ** 20,
      isTemplate: false,
      isBeingCreated: false,
      isProtected: false,
      bootDisk: undefined,
      seedVolume: undefined,
      addresses: [],
    });
  });
});
