// SPDX-License-Identifier: Apache-2.0
// Errors of the Proxmox API and their exact messages: one row per request.
import { describe, expect, it } from 'vitest';
import { SimHarness, testCluster } from '../testing/sim-harness.ts';

type Params = Readonly<Record<string, string | number>>;
type Row = readonly [method: string, path: string, params: Params, expected: unknown];

const VM = '/nodes/pve1/qemu/100';
const NEW = '/nodes/pve1/qemu';

async function createHarness(version: '8.4' | '9.2' = '9.2'): Promise<SimHarness> {
  const harness = new SimHarness({ version, cluster: testCluster(2) });
  await harness.createVm(100, {
    scsi0: 'shared:1',
    ide0: 'shared:cloudinit',
    net0: 'virtio,bridge=vmbr0',
  });
  return harness;
}

/** Returns parameter errors as a map, other errors as their reason phrase. */
async function resultOf(harness: SimHarness, [method, path, params]: Row): Promise<unknown> {
  const response = await harness.call(method, path, params);
  if (response.status === 200) return response.data;
  return response.errors ?? response.reason;
}

const PARAMETERS: readonly Row[] = [
  ['GET', '/nodes/pve1/network/vmbr9', {}, { iface: 'interface does not exist' }],
  [
    'PUT',
    `${VM}/config`,
    { cpu: 'foo' },
    {
      cpu: "invalid format - Built-in cputype 'foo' is not defined (missing 'custom-' prefix?)\n",
    },
  ],
  [
    'PUT',
    `${VM}/config`,
    { cpu: 'custom-x' },
    { cpu: "invalid format - Custom cputype 'x' not found\n" },
  ],
  [
    'PUT',
    `${VM}/config`,
    { cpu: 'flags=+aes' },
    { cpu: 'invalid format - CPU is missing cputype\n' },
  ],
  [
    'GET',
    '/nodes/pve1/storage/local/content',
    { content: 'foo' },
    { content: "invalid format - invalid content type 'foo'\n" },
  ],
  ['GET', '/nodes/pve1/storage', { storage: 'nosuch' }, { storage: 'No such storage.' }],
  [
    'PUT',
    '/access/acl',
    { roles: 'PVEAdmin' },
    { path: 'property is missing and it is not optional' },
  ],
  [
    'PUT',
    '/access/acl',
    { path: '/vms/5', roles: 'PVEAdmin', users: 'weak@pve' },
    { path: "invalid ACL path '/vms/5'" },
  ],
  [
    'POST',
    '/access/roles',
    { roleid: 'pvex' },
    { roleid: "cannot use role ID starting with the (case-insensitive) 'PVE' namespace" },
  ],
  [
    'PUT',
    `${VM}/config`,
    { hookscript: 'local:snippets/x.pl' },
    { hookscript: "script 'local:snippets/x.pl' does not exist\n" },
  ],
  ...[
    { virtio1: 'none,media=cdrom' },
    { scsi1: 'shared:1,mbps_max=5' },
    { scsi1: 'shared:1,iops=5,iops_rd=5' },
  ].map(
    (params): Row => [
      'PUT',
      `${VM}/config`,
      params,
      { [Object.keys(params)[0] ?? '']: 'unable to parse drive options' },
    ],
  ),
  [
    'POST',
    NEW,
    { vmid: 101, efidisk0: 'shared:0,import-from=local:import/noble-with-agent.qcow2' },
    { efidisk0: "need to specify 'efitype' when using 'import-from'" },
  ],
];

const FAILURES: readonly Row[] = [
  [
    'PUT',
    '/nodes/pve1/storage/local/content/iso/debian.iso',
    { notes: 'x' },
    'only backups can have notes',
  ],
  [
    'POST',
    NEW,
    { vmid: 101, scsi0: 'cdrom' },
    'Only root can pass arbitrary filesystem paths. at /usr/share/perl5/PVE/Storage.pm line 651.',
  ],
  [
    'POST',
    NEW,
    { vmid: 101, archive: 'local:backup/vzdump-qemu-9-x.vma' },
    "volume 'local:backup/vzdump-qemu-9-x.vma' does not exist",
  ],
  [
    'POST',
    '/nodes/pve1/storage/shared/content',
    { filename: 'x', vmid: 100, size: '1G' },
    "unable to parse volume filename 'x'",
  ],
  [
    'PUT',
    `${VM}/config`,
    { ide2: 'local:iso/x.txt,media=cdrom' },
    "unable to parse directory volume name 'iso/x.txt'",
  ],
  ['PUT', `${VM}/config`, { scsi1: 'shared:100/x.txt' }, "unable to parse volume filename 'x.txt'"],
  [
    'GET',
    '/nodes/pve1/qemu/999/status',
    {},
    "Configuration file 'nodes/pve1/qemu-server/999.conf' does not exist",
  ],
  ['GET', `${VM}/agent/get-time`, {}, 'No QEMU guest agent configured'],
  ['GET', `${VM}/agent/file-read`, { file: '/x' }, 'No QEMU guest agent configured'],
  [
    'POST',
    `${VM}/move_disk`,
    { disk: 'scsi0', storage: 'shared' },
    "you can't move to the same storage with same format",
  ],
  [
    'POST',
    NEW,
    { vmid: 101, sshkeys: encodeURIComponent('ssh-ed25519 AAAA me') },
    'SSH public key validation error',
  ],
  ['POST', '/access/users', { userid: 'x' }, "user name 'x' is too short"],
  ['GET', '/access/users/no@pve', {}, "no such user ('no@pve')"],
  [
    'POST',
    '/access/users',
    { userid: 'n@pve', groups: 'g' },
    "create user failed: no such group 'g'",
  ],
  [
    'POST',
    '/access/roles',
    { roleid: 'NoAccess' },
    "create role failed: role 'NoAccess' already exists",
  ],
  [
    'PUT',
    '/access/acl',
    { path: '/', roles: 'Nope', users: 'weak@pve' },
    "ACL update failed: role 'Nope' does not exist",
  ],
  [
    'PUT',
    '/access/acl',
    { path: '/', roles: 'PVEAdmin', tokens: 'weak@pve!nope' },
    "ACL update failed: no such token 'nope' for user 'weak@pve'",
  ],
  [
    'PUT',
    '/pools',
    { poolid: 'nope', comment: 'x' },
    "update pools failed: pool 'nope' does not exist",
  ],
  [
    'POST',
    '/pools',
    { poolid: 'a/b' },
    "create pool failed: parent 'a' of pool 'a/b' does not exist",
  ],
  ['POST', '/cluster/ha/resources', { sid: 'vm:999' }, "resource '999' does not exist in cluster"],
  ['DELETE', '/cluster/ha/resources/vm:999', {}, "resource 'vm:999' is not HA managed"],
  [
    'PUT',
    '/cluster/ha/resources/vm:999',
    { state: 'stopped' },
    "update resource failed: no such resource 'vm:999'",
  ],
];

const TASKS: readonly Row[] = [
  [
    'POST',
    '/nodes/pve1/storage/local/download-url',
    { content: 'iso', filename: 'n.iso', url: 'http://x/y', compression: 'rar' },
    'no decompression method found',
  ],
  [
    'POST',
    '/nodes/pve1/qemu/999/status/stop',
    {},
    "unable to find configuration file for VM 999 on node 'pve1'",
  ],
  [
    'POST',
    '/nodes/pve1/qemu/999/status/shutdown',
    {},
    "unable to find configuration file for VM 999 on node 'pve1'",
  ],
  ['PUT', `${VM}/resize`, { disk: 'ide0', size: '+1G' }, "you can't resize a cdrom"],
  ['POST', `${VM}/snapshot`, { snapname: 'aa' }, 'snapshot feature is not available'],
  ['POST', `${VM}/snapshot/aa/rollback`, {}, "snapshot 'aa' does not exist"],
];

describe('API errors', () => {
  it.each([...PARAMETERS, ...FAILURES])('%s %s %o is refused', async (...row) => {
    expect(await resultOf(await createHarness(), row)).toEqual(row[3]);
  });

  it.each(TASKS)('%s %s %o fails in its task', async (...row) => {
    const [method, path, params, end] = row;
    const harness = await createHarness();
    expect(await harness.waitForTask(await harness.call(method, path, params))).toBe(end);
  });

  it.each([
    ['no-route', 'No route to host', 3000],
    ['refused', 'Connection refused', 0],
    ['timed-out', 'Connection timed out', 30_000],
  ] as const)(
    'connections to an offline host fail as configured: %s',
    async (whenOff, reason, ms) => {
      const base = testCluster(3);
      const hosts = base.hosts.map((host) =>
        host.name === 'pve3' ? { ...host, online: false, whenOff } : host,
      );
      const harness = new SimHarness({ cluster: { ...base, hosts } });
      const before = harness.clock.now();
      const response = await harness.call('GET', '/nodes/pve3/qemu');
      expect([response.status, response.reason, response.body]).toEqual([595, reason, '']);
      expect(harness.clock.now() - before).toBe(ms);
    },
  );

  it('accepts the CPU flag nested-virt only from 9.x on', async () => {
    const of = async (version: '8.4' | '9.2') => {
      const row: Row = ['PUT', `${VM}/config`, { cpu: 'host,flags=+nested-virt' }, null];
      return await resultOf(await createHarness(version), row);
    };
    expect(await of('9.2')).toBeNull();
    expect(await of('8.4')).toMatchObject({ cpu: expect.stringContaining('must be a subset of') });
  });
});

describe('written configurations and volumes', () => {
  it('writes a space as empty boot order and treats a cloud-init drive as a CD-ROM', async () => {
    const harness = await createHarness();
    await harness.createVm(101, { cpuunits: 50_000 });
    const { data } = await harness.call('GET', '/nodes/pve1/qemu/101/config');
    expect([data.boot, data.cpuunits]).toEqual([' ', 10_000]);
    expect((await harness.call('GET', `${VM}/config`)).data.boot).toBe('order=scsi0;ide0;net0');
  });

  it.each([
    ['dir', 'vm-101-disk-1.raw', 'vm-101-disk-2.raw'],
    ['nfs', 'vm-101-disk-0.raw', 'vm-101-disk-1.raw'],
  ] as const)('numbers disks on %s storage like Proxmox', async (type, second, third) => {
    const base = testCluster();
    const storages = base.storages.map((storage) =>
      storage.name === 'shared' ? { ...storage, type } : storage,
    );
    const harness = new SimHarness({ cluster: { ...base, storages } });
    await harness.createVm(101, {
      scsi0: 'shared:1,format=qcow2',
      scsi1: 'shared:1',
      scsi2: 'shared:1',
    });
    const { data } = await harness.call('GET', '/nodes/pve1/qemu/101/config');
    expect([data.scsi0, data.scsi1, data.scsi2]).toEqual([
      'shared:101/vm-101-disk-0.qcow2,size=1G',
      `shared:101/${second},size=1G`,
      `shared:101/${third},size=1G`,
    ]);
  });

  it('refuses to delete a base volume with linked clones, with different messages for volume and VM', async () => {
    const harness = await createHarness();
    await harness.waitForTask(await harness.call('POST', `${VM}/template`));
    await harness.waitForTask(await harness.call('POST', `${VM}/clone`, { newid: 200 }));
    const base = '100/base-100-disk-0.raw';
    const path = `/nodes/pve1/storage/shared/content/${base}`;
    expect(await harness.waitForTask(await harness.call('DELETE', path))).toBe(
      `base volume '${base}' is still in use by linked clones`,
    );
    expect(await harness.waitForTask(await harness.call('DELETE', VM))).toBe(
      `base volume 'shared:${base}' is still in use by linked cloned`,
    );
  });

  it('deletes a template with linked clones on LVM-thin', async () => {
    const harness = new SimHarness();
    await harness.createVm(100, { scsi0: 'local-lvm:1' });
    await harness.waitForTask(await harness.call('POST', `${VM}/template`));
    await harness.waitForTask(await harness.call('POST', `${VM}/clone`, { newid: 200 }));
    const { data } = await harness.call('GET', `${NEW}/200/config`);
    expect(data.scsi0).toBe('local-lvm:vm-200-disk-0,size=1G');
    expect(await harness.waitForTask(await harness.call('DELETE', VM))).toBe('OK');
  });

  it('reports the id of a VM on another host as taken only when the clone task writes its config', async () => {
    const harness = await createHarness();
    await harness.waitForTask(await harness.call('POST', '/nodes/pve2/qemu', { vmid: 300 }));
    expect(
      await harness.waitForTask(await harness.call('POST', `${VM}/clone`, { newid: 300 })),
    ).toBe(
      "close (rename) atomic file '/etc/pve/nodes/pve1/qemu-server/300.conf' failed: File exists",
    );
  });

  it('leaves the VM off after a rollback unless start is set', async () => {
    const harness = new SimHarness();
    await harness.createVm(100, { scsi0: 'local-lvm:1', name: 'before' });
    await harness.waitForTask(await harness.call('POST', `${VM}/snapshot`, { snapname: 'aa' }));
    await harness.waitForTask(await harness.call('POST', `${VM}/status/start`));
    await harness.call('PUT', `${VM}/config`, { name: 'after' });
    const back = (params: Params) => harness.call('POST', `${VM}/snapshot/aa/rollback`, params);
    expect(await harness.waitForTask(await back({}))).toBe('OK');
    const { data } = await harness.call('GET', `${VM}/status/current`);
    expect([data.status, data.name]).toEqual(['stopped', 'before']);
    expect(await harness.waitForTask(await back({ start: 1 }))).toBe('OK');
    await harness.clock.advance(5000);
    expect((await harness.call('GET', `${VM}/status/current`)).data.status).toBe('running');
  });

  it.each([
    ['9.2', { memhost: 0 }],
    ['8.4', { diskread: 0, diskwrite: 0 }],
  ] as const)(
    'reports the balloon and pressure only of running VMs, version %s',
    async (version, off) => {
      const harness = new SimHarness({ cluster: { ...testCluster(), version } });
      await harness.createVm(100, { memory: 1024 });
      const status = async () => (await harness.call('GET', `${VM}/status/current`)).data;
      const stopped = await status();
      expect(stopped).toMatchObject(off);
      for (const name of ['balloon', 'ballooninfo', 'proxmox-support', 'pressurecpusome'])
        expect(stopped).not.toHaveProperty(name);
      await harness.waitForTask(await harness.call('POST', `${VM}/status/start`));
      const running = await status();
      expect(running).toMatchObject({
        balloon: 2 ** 30,
        ballooninfo: { actual: 2 ** 30, max_mem: 2 ** 30 },
        'proxmox-support': { 'pbs-dirty-bitmap': true },
        diskread: 0,
      });
      expect('pressurecpusome' in running).toBe(version === '9.2');
    },
  );

  it('refuses a taken id of a VM whatever snippets the new one names', async () => {
    const harness = await createHarness();
    const vm = { vmid: 100, cicustom: 'user=local:iso/debian.iso' };
    expect((await harness.call('POST', '/nodes/pve1/qemu', vm)).reason).toBe(
      "unable to create VM 100 - VM 100 already exists on node 'pve1'",
    );
  });

  it('lists storages of other hosts as not enabled', async () => {
    const base = testCluster(2);
    const storages = [
      ...base.storages,
      { name: 'far', type: 'dir' as const, content: ['images'], size: 1024, hosts: ['pve2'] },
    ];
    const harness = new SimHarness({ cluster: { ...base, storages } });
    const rows = async (params: Params) =>
      (await harness.call('GET', '/nodes/pve1/storage', params)).data.filter(
        (row: { storage: string }) => row.storage === 'far',
      );
    expect(await rows({})).toMatchObject([{ enabled: 0, active: 0, total: 0 }]);
    expect(await rows({ content: 'images' })).toEqual([]);
  });
});
