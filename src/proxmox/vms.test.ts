// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import type { CreateVmOrder, VmSpec } from '../ports/hypervisor.ts';
import { aRegion, cut, ok, refused, TASK, UPID } from './scripted-region.fixture.ts';

const VM = { vmId: 160, host: 'pve1' };
const GIB = 2 ** 30;
const MISSING = refused(500, "Configuration file 'nodes/pve1/qemu-server/160.conf' does not exist");

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

describe('creating', () => {
  it('sends identity and hardware with the first call', async () => {
    const region = aRegion({ 'POST /nodes/pve1/qemu': ok(UPID) });
    await expect(region.hypervisor.createVm(ORDER)).resolves.toEqual(TASK);
    expect(region.form()).toEqual({
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

  it('makes an empty disk that boots from the network', async () => {
    const region = aRegion({ 'POST /nodes/pve1/qemu': ok(UPID) });
    await region.hypervisor.createVm({
      ...ORDER,
      hardware: {
        ...ORDER.hardware,
        bootFrom: 'network',
        options: { scsihw: 'virtio-scsi-pci', smbios1: 'manufacturer=QUJD,base64=1,uuid=old' },
      },
      disk: { storage: 'fast', bytes: 20 * GIB + 1 },
    });
    expect(region.form()).toMatchObject({
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
  ] as const)('attaches the disk as asked: %j', async (disk, options) => {
    const region = aRegion({ 'POST /nodes/pve1/qemu': ok(UPID) });
    await region.hypervisor.createVm({
      ...ORDER,
      disk: { storage: 'fast', bytes: 20 * GIB, ...disk },
    });
    const expected = options === undefined ? 'fast:20' : `fast:20,${options}`;
    expect(region.form()).toMatchObject({ scsi0: expected });
  });

  it('refuses to import before 8.4, with the reason, and sends nothing', async () => {
    const region = aRegion({ 'GET /version': ok({ version: '8.3.5' }) });
    await expect(region.hypervisor.createVm(ORDER)).rejects.toMatchObject({
      code: 'PVE_TOO_OLD',
      message: 'importing a disk image needs 8.4, and the region runs Proxmox VE 8.3.5',
    });
    expect(region.calls()).toEqual([]);
  });

  it('tells an id that is taken from a lost answer', async () => {
    const taken = refused(500, "unable to create VM 160 - VM 160 already exists on node 'pve2'");
    const region = aRegion({ 'POST /nodes/pve1/qemu': taken });
    await expect(region.hypervisor.createVm(ORDER)).rejects.toMatchObject({
      code: 'VM_ID_TAKEN',
      class: 'Conflict',
    });
    const lost = aRegion({ 'POST /nodes/pve1/qemu': () => cut(true) });
    await expect(lost.hypervisor.createVm(ORDER)).rejects.toMatchObject({
      class: 'Unreachable',
      facts: { requestSent: true },
    });
    expect(lost.calls()).toHaveLength(1);
  });
});

describe('what a call needs first', () => {
  it('leaves no doubt about the call itself when it fails', async () => {
    const noVersion = aRegion({ 'GET /version': () => cut(true) });
    await expect(noVersion.settled(noVersion.hypervisor.createVm(ORDER))).rejects.toMatchObject({
      code: 'PVE_UNREACHABLE',
      facts: { requestSent: false },
    });
    const noLogin = aRegion(
      { 'POST /access/ticket': () => cut(true) },
      { credentials: { kind: 'password', user: 'a@pve', password: () => 'password' } },
    );
    await expect(noLogin.hypervisor.startVm(VM)).rejects.toMatchObject({
      code: 'PVE_UNREACHABLE',
      facts: { requestSent: false },
    });
    const noConfig = aRegion({
      'GET /nodes/pve1/qemu/160/config': { status: 596, reason: 'Connection timed out' },
    });
    const grow = noConfig.hypervisor.growBootDisk(VM, 1);
    await expect(noConfig.settled(grow)).rejects.toMatchObject({
      code: 'REQUEST_TIMED_OUT',
      facts: { requestSent: false },
    });
  });
});

describe('cloning', () => {
  const clone = {
    ...VM,
    source: { vmId: 9_000, host: 'pve2' },
    linked: false,
    storage: 'shared',
    name: 'k8s-b2',
    description: 'marker',
  };
  const AT = 'POST /nodes/pve2/qemu/9000/clone';

  it('asks the host of the source, and names the target where it is another', async () => {
    const region = aRegion({ [AT]: ok(UPID) });
    await region.hypervisor.cloneVm(clone);
    expect(region.form()).toEqual({
      newid: '160',
      name: 'k8s-b2',
      description: 'marker',
      full: '1',
      storage: 'shared',
      target: 'pve1',
    });
    await region.hypervisor.cloneVm({ ...clone, host: 'pve2', linked: true });
    expect(region.form()).toMatchObject({ full: '0' });
    expect(region.form()).not.toHaveProperty('storage');
    expect(region.form()).not.toHaveProperty('target');
  });

  it('looks for a source that has moved, and says when there is none', async () => {
    const resources = [{ type: 'qemu', vmid: 9_000, node: 'pve3' }];
    const missing = refused(500, "unable to find configuration file for VM 9000 on node 'pve2'");
    const region = aRegion({
      [AT]: missing,
      'GET /cluster/resources': () => ok(resources),
      'POST /nodes/pve3/qemu/9000/clone': ok(UPID),
    });
    await expect(region.hypervisor.cloneVm(clone)).resolves.toEqual(TASK);
    resources.length = 0;
    const none = aRegion({ [AT]: missing, 'GET /cluster/resources': ok([]) });
    await expect(none.hypervisor.cloneVm(clone)).rejects.toMatchObject({
      code: 'TEMPLATE_NOT_FOUND',
      facts: { sourceVmId: 9_000 },
    });
  });
});

describe('configuring', () => {
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

  it('applies a spec with one change that has the digest of the reading', async () => {
    const stored = { digest: 'abc', scsi1: 'local-lvm:cloudinit', agent: '1', cores: 4 };
    const region = aRegion({ [GET]: ok(stored), [PUT]: ok(null) });
    await expect(region.hypervisor.applySpec(VM, SPEC)).resolves.toBe(true);
    expect(region.form()).toEqual({
      tags: 'a;b',
      smbios1: 'uuid=aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee',
      memory: '8192',
      balloon: '0',
      sshkeys: 'ssh-rsa%20B%20c',
      delete: 'scsi1',
      digest: 'abc',
    });
    expect(region.calls()).toEqual([GET, PUT]);
  });

  it('sends no change when a spec is applied already', async () => {
    const region = aRegion({ [GET]: ok(APPLIED) });
    await expect(region.hypervisor.applySpec(VM, SPEC, { digest: 'abc' })).resolves.toBe(false);
    expect(region.calls()).toEqual([GET]);
  });

  it('sends no change when the configuration is not the one that it was decided on', async () => {
    const region = aRegion({ [GET]: ok(APPLIED) });
    const change = region.hypervisor.applySpec(VM, SPEC, { digest: 'older' });
    await expect(change).rejects.toMatchObject({ code: 'VM_CHANGED' });
    expect(region.calls()).toEqual([GET]);
  });

  it('removes inherited protection first, and reads the new digest', async () => {
    let reading = 0;
    const forms: unknown[] = [];
    const region = aRegion({
      [GET]: () => {
        reading += 1;
        const isFirst = reading === 1;
        return ok({ ...APPLIED, ...(isFirst ? { protection: 1 } : { digest: 'def', cores: 1 }) });
      },
      [PUT]: () => {
        forms.push(region.form());
        return ok(null);
      },
    });
    await expect(region.hypervisor.applySpec(VM, SPEC, { digest: 'abc' })).resolves.toBe(true);
    expect(forms).toEqual([
      { delete: 'protection', digest: 'abc' },
      { cores: '4', digest: 'def' },
    ]);
    expect(region.calls()).toEqual([GET, PUT, GET, PUT]);
  });

  it('attaches and ejects the seed, and sets the description', async () => {
    const region = aRegion({ [PUT]: ok(null) });
    const { hypervisor } = region;
    const id = hypervisor.volumeId({ storage: 'local', content: 'iso', name: 'seed.iso' });
    expect(id).toBe('local:iso/seed.iso');
    await hypervisor.attachSeed(VM, id, { digest: 'abc' });
    expect(region.form()).toEqual({ ide2: 'local:iso/seed.iso,media=cdrom', digest: 'abc' });
    await hypervisor.ejectSeed(VM);
    expect(region.form()).toEqual({ ide2: 'none,media=cdrom' });
    await hypervisor.setDescription(VM, 'text', { digest: 'abc', removeProtection: true });
    expect(region.form()).toEqual({ description: 'text', delete: 'protection', digest: 'abc' });
    await hypervisor.removeProtection(VM, { digest: 'abc' });
    expect(region.form()).toEqual({ delete: 'protection', digest: 'abc' });
  });

  it('does not repeat a change with a digest after a lost answer', async () => {
    const region = aRegion({ [PUT]: () => cut(true) });
    const change = { digest: 'abc' };
    await expect(region.hypervisor.setDescription(VM, 'text', change)).rejects.toMatchObject({
      class: 'Unreachable',
    });
    expect(region.calls()).toHaveLength(1);
    const changed = aRegion({
      [PUT]: refused(500, 'checksum mismatch (file change by other user?)'),
    });
    await expect(changed.hypervisor.setDescription(VM, 'text', change)).rejects.toMatchObject({
      code: 'VM_CHANGED',
    });
  });
});

describe('growing a disk', () => {
  const config = (scsi0: string) => ok({ digest: 'd', scsi0 });

  it('grows to an absolute size, and does nothing when it is large enough', async () => {
    const region = aRegion({
      'GET /nodes/pve1/qemu/160/config': config('fast:vm-160-disk-0,iothread=1,size=2252M'),
      'PUT /nodes/pve1/qemu/160/resize': ok(UPID),
    });
    const { hypervisor } = region;
    await expect(hypervisor.growBootDisk(VM, 20 * GIB)).resolves.toEqual(TASK);
    expect(region.form()).toEqual({ disk: 'scsi0', size: '20G' });
    await expect(hypervisor.growBootDisk(VM, 2_252 * 2 ** 20)).resolves.toBeUndefined();
    const diskless = aRegion({ 'GET /nodes/pve1/qemu/160/config': ok({ digest: 'd' }) });
    await expect(diskless.hypervisor.growBootDisk(VM, 1)).rejects.toMatchObject({
      code: 'VOLUME_NOT_FOUND',
    });
  });
});

describe('power', () => {
  it('overrules a waiting shutdown from 8.2 on', async () => {
    const STOP = 'POST /nodes/pve1/qemu/160/status/stop';
    const region = aRegion({ [STOP]: ok(UPID) });
    await region.hypervisor.stopVm(VM);
    expect(region.form()).toEqual({ 'overrule-shutdown': '1' });
    const old = aRegion({ 'GET /version': ok({ version: '8.1.4' }), [STOP]: ok(UPID) });
    await old.hypervisor.stopVm(VM);
    expect(old.form()).toEqual({});
  });

  it('reads the truth from the host', async () => {
    const region = aRegion({
      'GET /nodes/pve1/qemu/160/status/current': ok({
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

describe('a VM that is not where it was', () => {
  it('is asked at its new host, at once the next time', async () => {
    const region = aRegion({
      'GET /nodes/pve1/qemu/160/config': MISSING,
      'GET /cluster/resources': ok([
        { type: 'lxc', vmid: 160, node: 'pve3' },
        { type: 'qemu', vmid: 160, node: 'pve2' },
      ]),
      'GET /nodes/pve2/qemu/160/config': ok({ digest: 'd' }),
    });
    await expect(region.hypervisor.vmConfig(VM)).resolves.toMatchObject({ host: 'pve2' });
    await region.hypervisor.vmConfig(VM);
    expect(region.calls()).toEqual([
      'GET /nodes/pve1/qemu/160/config',
      'GET /cluster/resources',
      'GET /nodes/pve2/qemu/160/config',
      'GET /nodes/pve2/qemu/160/config',
    ]);
  });

  it('is gone only when no host has it', async () => {
    const routes = { 'GET /nodes/pve1/qemu/160/config': MISSING };
    const gone = aRegion({ ...routes, 'GET /cluster/resources': ok([]) });
    await expect(gone.hypervisor.vmConfig(VM)).rejects.toMatchObject({ code: 'VM_NOT_FOUND' });
    const moving = aRegion({
      ...routes,
      'GET /cluster/resources': ok([{ type: 'qemu', vmid: 160, node: 'pve1' }]),
    });
    await expect(moving.hypervisor.vmConfig(VM)).rejects.toMatchObject({ code: 'VM_CHANGED' });
    const unknown = aRegion({ ...routes, 'GET /cluster/resources': () => cut(true) });
    await expect(unknown.settled(unknown.hypervisor.vmConfig(VM))).rejects.toMatchObject({
      class: 'Unreachable',
    });
    const hostGone = aRegion({
      'GET /nodes/pve1/qemu/160/config': refused(500, "hostname lookup 'pve1' failed - x"),
      'GET /cluster/resources': ok([]),
    });
    await expect(hostGone.hypervisor.vmConfig(VM)).rejects.toMatchObject({ code: 'VM_NOT_FOUND' });
  });

  it('is not destroyed where nobody has looked at it: it may be another one of that id', async () => {
    const region = aRegion({
      'DELETE /nodes/pve1/qemu/160': MISSING,
      'GET /cluster/resources': ok([{ type: 'qemu', vmid: 160, node: 'pve2' }]),
      'GET /nodes/pve2/qemu/160/config': ok({ digest: 'd' }),
      'DELETE /nodes/pve2/qemu/160': ok(UPID),
    });
    await expect(region.hypervisor.destroyVm(VM)).rejects.toMatchObject({ code: 'VM_CHANGED' });
    expect(region.calls()).toEqual(['DELETE /nodes/pve1/qemu/160', 'GET /cluster/resources']);
    const seen = await region.hypervisor.vmConfig(VM);
    // Who still means the host of before has not looked.
    await expect(region.hypervisor.destroyVm(VM)).rejects.toMatchObject({ code: 'VM_CHANGED' });
    await region.hypervisor.destroyVm(seen);
    expect(region.calls().slice(2)).toEqual([
      'GET /nodes/pve2/qemu/160/config',
      'DELETE /nodes/pve1/qemu/160',
      'GET /cluster/resources',
      'DELETE /nodes/pve2/qemu/160',
    ]);
  });

  it('is destroyed when it is gone already', async () => {
    const region = aRegion({
      'DELETE /nodes/pve1/qemu/160': MISSING,
      'GET /cluster/resources': ok([]),
    });
    await expect(region.hypervisor.destroyVm(VM)).resolves.toBeUndefined();
    const running = aRegion({
      'DELETE /nodes/pve1/qemu/160': refused(500, 'VM 160 is running - destroy failed'),
    });
    await expect(running.hypervisor.destroyVm(VM)).rejects.toMatchObject({ code: 'VM_CHANGED' });
  });
});

describe('a configuration', () => {
  it('is read with pending changes, strings for numbers, and addresses', async () => {
    const region = aRegion({
      'GET /nodes/pve1/qemu/160/config': ok({
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
    expect(region.last().url.search).toBe('');
  });

  it('has the defaults of Proxmox', async () => {
    const region = aRegion({ 'GET /nodes/pve1/qemu/160/config': ok({ digest: 'x' }) });
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
