// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import type { CreateVmOrder, VmSpec } from '../ports/hypervisor.ts';
import {
  createScriptedRegion,
  errorResponse,
  failConnection,
  okResponse,
  TASK,
  UPID,
} from './scripted-region.fixture.ts';

const VM = { vmId: 160, host: 'pve1' };
const GIB = 2 ** 30;

const ORDER: CreateVmOrder = {
  ...VM,
  identity: {
    name: 'k8s-a1',
    description: 'marker\nline two; with = signs',
    tags: ['ca-group-a', 'pvescaler'],
    smbiosUuid: 'AAAAAAAA-bbbb-4ccc-8ddd-eeeeeeeeeeee',
  },
  hardware: {
    cpus: 4,
    memoryBytes: 8 * GIB,
    balloonBytes: 0,
    networks: [
      { model: 'virtio', bridge: 'vmbr0', vlan: 12, mtu: 1_450, queues: 4, firewall: true },
      { model: 'virtio', bridge: 'vmbr1', mac: 'BC:24:11:00:00:01' },
    ],
    bootFrom: 'disk',
    options: { cpu: 'host', sshkeys: 'ssh-ed25519 AAAA me' },
  },
  disk: { storage: 'fast', bytes: 20 * GIB, importFrom: 'local:import/debian.qcow2' },
  resourcePool: 'k8s',
};

describe('createVm', () => {
  it('sends identity and hardware in one request', async () => {
    const region = createScriptedRegion({ 'POST /nodes/pve1/qemu': okResponse(UPID) });
    await expect(region.hypervisor.createVm(ORDER)).resolves.toEqual(TASK);
    expect(region.lastForm()).toEqual({
      vmid: '160',
      name: 'k8s-a1',
      description: 'marker\nline two; with = signs',
      tags: 'ca-group-a;pvescaler',
      smbios1: 'uuid=aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee',
      cores: '4',
      sockets: '1',
      memory: '8192',
      balloon: '0',
      cpu: 'host',
      ostype: 'l26',
      agent: '1',
      serial0: 'socket',
      vga: 'serial0',
      scsihw: 'virtio-scsi-single',
      scsi0: 'fast:0,import-from=local:import/debian.qcow2,discard=on,iothread=1',
      net0: 'virtio,bridge=vmbr0,tag=12,mtu=1450,queues=4,firewall=1',
      net1: 'virtio=BC:24:11:00:00:01,bridge=vmbr1',
      boot: 'order=scsi0',
      sshkeys: 'ssh-ed25519%20AAAA%20me',
      pool: 'k8s',
    });
  });

  it('creates an empty disk and boots from the network', async () => {
    const region = createScriptedRegion({ 'POST /nodes/pve1/qemu': okResponse(UPID) });
    await region.hypervisor.createVm({
      ...ORDER,
      hardware: {
        ...ORDER.hardware,
        bootFrom: 'network',
        options: { scsihw: 'virtio-scsi-pci', smbios1: 'manufacturer=QUJD,base64=1,uuid=old' },
      },
      disk: { storage: 'fast', bytes: 20 * GIB + 1 },
    });
    expect(region.lastForm()).toMatchObject({
      scsi0: 'fast:21,discard=on',
      boot: 'order=net0',
      smbios1: 'manufacturer=QUJD,base64=1,uuid=aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee',
    });
  });

  it.each([
    [{}, 'discard=on,iothread=1'],
    [{ discard: false, iothread: false, ssd: false, cache: 'none' }, undefined],
    [{ ssd: true, cache: 'writeback' }, 'discard=on,iothread=1,ssd=1,cache=writeback'],
    [{ discard: false, cache: 'unsafe' }, 'iothread=1,cache=unsafe'],
  ] as const)('formats the disk options %j', async (disk, options) => {
    const region = createScriptedRegion({ 'POST /nodes/pve1/qemu': okResponse(UPID) });
    await region.hypervisor.createVm({
      ...ORDER,
      disk: { storage: 'fast', bytes: 20 * GIB, ...disk },
    });
    const expected = options === undefined ? 'fast:20' : `fast:20,${options}`;
    expect(region.lastForm()).toMatchObject({ scsi0: expected });
  });

  it('refuses to import a disk image before Proxmox VE 8.4 and sends nothing', async () => {
    const region = createScriptedRegion({ 'GET /version': okResponse({ version: '8.3.5' }) });
    await expect(region.hypervisor.createVm(ORDER)).rejects.toMatchObject({
      code: 'PVE_TOO_OLD',
      message: 'importing a disk image needs Proxmox VE 8.4; the region runs Proxmox VE 8.3.5',
    });
    expect(region.requestLines()).toEqual([]);
  });

  it('distinguishes a taken id from a lost response', async () => {
    const taken = errorResponse(
      500,
      "unable to create VM 160 - VM 160 already exists on node 'pve2'",
    );
    const region = createScriptedRegion({ 'POST /nodes/pve1/qemu': taken });
    await expect(region.hypervisor.createVm(ORDER)).rejects.toMatchObject({
      code: 'VM_ID_TAKEN',
      class: 'Conflict',
    });
    const lost = createScriptedRegion({ 'POST /nodes/pve1/qemu': () => failConnection(true) });
    await expect(lost.hypervisor.createVm(ORDER)).rejects.toMatchObject({
      class: 'Unreachable',
      facts: { requestSent: true },
    });
    expect(lost.requestLines()).toHaveLength(1);
  });
});

describe('a failed preparation of a request', () => {
  it('is reported with requestSent: false', async () => {
    const noVersion = createScriptedRegion({ 'GET /version': () => failConnection(true) });
    await expect(
      noVersion.advanceUntil(noVersion.hypervisor.createVm(ORDER)),
    ).rejects.toMatchObject({
      code: 'PVE_UNREACHABLE',
      facts: { requestSent: false },
    });
    const noLogin = createScriptedRegion(
      { 'POST /access/ticket': () => failConnection(true) },
      { credentials: { kind: 'password', user: 'a@pve', password: () => 'password' } },
    );
    await expect(noLogin.hypervisor.startVm(VM)).rejects.toMatchObject({
      code: 'PVE_UNREACHABLE',
      facts: { requestSent: false },
    });
    const noConfig = createScriptedRegion({
      'GET /nodes/pve1/qemu/160/config': { status: 596, reason: 'Connection timed out' },
    });
    const grow = noConfig.hypervisor.growBootDisk(VM, 1, { digest: 'd' });
    await expect(noConfig.advanceUntil(grow)).rejects.toMatchObject({
      code: 'REQUEST_TIMED_OUT',
      facts: { requestSent: false },
    });
  });
});

describe('cloneVm', () => {
  const clone = {
    ...VM,
    source: { vmId: 9_000, host: 'pve2' },
    linked: false,
    storage: 'shared',
    name: 'k8s-b2',
    description: 'marker',
  };
  const AT = 'POST /nodes/pve2/qemu/9000/clone';

  it('sends the request to the host of the source, with a target only if it differs', async () => {
    const region = createScriptedRegion({ [AT]: okResponse(UPID) });
    await region.hypervisor.cloneVm(clone);
    expect(region.lastForm()).toEqual({
      newid: '160',
      name: 'k8s-b2',
      description: 'marker',
      full: '1',
      storage: 'shared',
      target: 'pve1',
    });
    await region.hypervisor.cloneVm({ ...clone, host: 'pve2', linked: true });
    expect(region.lastForm()).toMatchObject({ full: '0' });
    expect(region.lastForm()).not.toHaveProperty('storage');
    expect(region.lastForm()).not.toHaveProperty('target');
  });

  it('finds a source that has moved, and fails with TEMPLATE_NOT_FOUND when there is none', async () => {
    const resources = [{ type: 'qemu', vmid: 9_000, node: 'pve3' }];
    const missing = errorResponse(
      500,
      "unable to find configuration file for VM 9000 on node 'pve2'",
    );
    const region = createScriptedRegion({
      [AT]: missing,
      'GET /cluster/resources': () => okResponse(resources),
      'POST /nodes/pve3/qemu/9000/clone': okResponse(UPID),
    });
    await expect(region.hypervisor.cloneVm(clone)).resolves.toEqual(TASK);
    resources.length = 0;
    const none = createScriptedRegion({ [AT]: missing, 'GET /cluster/resources': okResponse([]) });
    await expect(none.hypervisor.cloneVm(clone)).rejects.toMatchObject({
      code: 'TEMPLATE_NOT_FOUND',
      facts: { sourceVmId: 9_000 },
    });
  });
});

describe('configuration changes', () => {
  const PUT = 'PUT /nodes/pve1/qemu/160/config';

  const GET = 'GET /nodes/pve1/qemu/160/config';
  const SPEC: VmSpec = {
    tags: ['a', 'b'],
    smbiosUuid: 'aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee',
    hardware: { ...ORDER.hardware, networks: [], options: { sshkeys: 'ssh-rsa B c' } },
    disk: { discard: true, ssd: false, iothread: true, cache: 'none' },
    hasSeed: true,
  };
  const APPLIED = {
    digest: 'abc',
    tags: 'a;b',
    smbios1: 'uuid=aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee',
    agent: '1',
    cores: 4,
    memory: '8192',
    balloon: 0,
    sshkeys: 'ssh-rsa B c',
  };

  it('apply a spec in one request with the digest of the configuration read', async () => {
    const stored = { digest: 'abc', scsi1: 'local-lvm:cloudinit', agent: '1', cores: 4 };
    const region = createScriptedRegion({ [GET]: okResponse(stored), [PUT]: okResponse(null) });
    await expect(region.hypervisor.applySpec(VM, SPEC, { digest: 'abc' })).resolves.toBe(true);
    expect(region.lastForm()).toEqual({
      tags: 'a;b',
      smbios1: 'uuid=aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee',
      memory: '8192',
      balloon: '0',
      sshkeys: 'ssh-rsa%20B%20c',
      delete: 'scsi1',
      digest: 'abc',
    });
    expect(region.requestLines()).toEqual([GET, PUT]);
  });

  it('send no request when the spec is already applied', async () => {
    const region = createScriptedRegion({ [GET]: okResponse(APPLIED) });
    await expect(region.hypervisor.applySpec(VM, SPEC, { digest: 'abc' })).resolves.toBe(false);
    expect(region.requestLines()).toEqual([GET]);
  });

  it('are refused when the digest differs from the expected one', async () => {
    const region = createScriptedRegion({ [GET]: okResponse(APPLIED) });
    const change = region.hypervisor.applySpec(VM, SPEC, { digest: 'older' });
    await expect(change).rejects.toMatchObject({ code: 'VM_CHANGED' });
    expect(region.requestLines()).toEqual([GET]);
  });

  it('remove only an inherited protection first, with the digest of the caller', async () => {
    const region = createScriptedRegion({
      [GET]: okResponse({ ...APPLIED, protection: 1, cores: 1 }),
      [PUT]: okResponse(null),
    });
    await expect(region.hypervisor.applySpec(VM, SPEC, { digest: 'abc' })).resolves.toBe(true);
    expect(region.lastForm()).toEqual({ delete: 'protection', digest: 'abc' });
    expect(region.requestLines()).toEqual([GET, PUT]);
  });

  it('attach and eject the seed, and set the description', async () => {
    const region = createScriptedRegion({ [PUT]: okResponse(null) });
    const { hypervisor } = region;
    const id = hypervisor.volumeId({ storage: 'local', content: 'iso', name: 'seed.iso' });
    expect(id).toBe('local:iso/seed.iso');
    await hypervisor.attachSeed(VM, id, { digest: 'abc' });
    expect(region.lastForm()).toEqual({ ide2: 'local:iso/seed.iso,media=cdrom', digest: 'abc' });
    await hypervisor.ejectSeed(VM, { digest: 'abc' });
    expect(region.lastForm()).toEqual({ ide2: 'none,media=cdrom', digest: 'abc' });
    await hypervisor.setDescription(VM, 'text', { digest: 'abc', removeProtection: true });
    expect(region.lastForm()).toEqual({ description: 'text', delete: 'protection', digest: 'abc' });
    await hypervisor.removeProtection(VM, { digest: 'abc' });
    expect(region.lastForm()).toEqual({ delete: 'protection', digest: 'abc' });
  });

  it('are not repeated after a lost response', async () => {
    const region = createScriptedRegion({ [PUT]: () => failConnection(true) });
    const change = { digest: 'abc' };
    await expect(region.hypervisor.setDescription(VM, 'text', change)).rejects.toMatchObject({
      class: 'Unreachable',
    });
    expect(region.requestLines()).toHaveLength(1);
    const changed = createScriptedRegion({
      [PUT]: errorResponse(500, 'checksum mismatch (file change by other user?)'),
    });
    await expect(changed.hypervisor.setDescription(VM, 'text', change)).rejects.toMatchObject({
      code: 'VM_CHANGED',
    });
  });
});

describe('growBootDisk', () => {
  const config = (scsi0: string) => okResponse({ digest: 'd', scsi0 });

  it('sends an absolute size, and nothing when the disk is large enough', async () => {
    const region = createScriptedRegion({
      'GET /nodes/pve1/qemu/160/config': config('fast:vm-160-disk-0,iothread=1,size=2252M'),
      'PUT /nodes/pve1/qemu/160/resize': okResponse(UPID),
    });
    const { hypervisor } = region;
    const change = { digest: 'd' };
    await expect(hypervisor.growBootDisk(VM, 20 * GIB, change)).resolves.toEqual(TASK);
    expect(region.lastForm()).toEqual({ disk: 'scsi0', size: '20G', digest: 'd' });
    await expect(hypervisor.growBootDisk(VM, 2_252 * 2 ** 20, change)).resolves.toBeUndefined();
    await expect(hypervisor.growBootDisk(VM, 20 * GIB, { digest: 'older' })).rejects.toMatchObject({
      code: 'VM_CHANGED',
      facts: { requestSent: false },
    });
    const diskless = createScriptedRegion({
      'GET /nodes/pve1/qemu/160/config': okResponse({ digest: 'd' }),
    });
    await expect(diskless.hypervisor.growBootDisk(VM, 1, change)).rejects.toMatchObject({
      code: 'VOLUME_NOT_FOUND',
    });
  });
});

describe('power state', () => {
  it('stopVm overrules a running shutdown since Proxmox VE 8.2', async () => {
    const STOP = 'POST /nodes/pve1/qemu/160/status/stop';
    const region = createScriptedRegion({ [STOP]: okResponse(UPID) });
    await region.hypervisor.stopVm(VM);
    expect(region.lastForm()).toEqual({ 'overrule-shutdown': '1' });
    const old = createScriptedRegion({
      'GET /version': okResponse({ version: '8.1.4' }),
      [STOP]: okResponse(UPID),
    });
    await old.hypervisor.stopVm(VM);
    expect(old.lastForm()).toEqual({});
  });

  it('vmState reads power and lock from the host', async () => {
    const region = createScriptedRegion({
      'GET /nodes/pve1/qemu/160/status/current': okResponse({
        status: 'running',
        uptime: 12,
        lock: 'backup',
      }),
    });
    await expect(region.hypervisor.vmState(VM)).resolves.toEqual({
      ...VM,
      power: 'running',
      lock: 'backup',
      uptimeSeconds: 12,
    });
  });
});
