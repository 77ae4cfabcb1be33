// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import type { AclDescription } from '../state/cluster-description.ts';
import { SimHarness, testCluster } from '../testing/sim-harness.ts';

const WEAK = 'PVEAPIToken=weak@pve!sep=11111111-1111-4111-8111-111111111111';
type Params = Parameters<SimHarness['call']>[2];

/** A harness authenticated as a token with privsep; the ACL entries apply to both user and token. */
async function harnessWithPrivileges(
  entries: readonly Omit<AclDescription, 'user'>[],
  roles: readonly { id: string; privs: string[] }[] = [],
): Promise<SimHarness> {
  const base = testCluster(2);
  const acl = entries.flatMap((entry) => [
    { ...entry, user: 'weak@pve' },
    { ...entry, token: 'weak@pve!sep' },
  ]);
  const cluster = {
    ...base,
    roles,
    acl: [...(base.acl ?? []), ...acl],
    pools: [{ id: 'mine', vms: [100] }],
  };
  const harness = new SimHarness({ cluster });
  await harness.createVm(100, { name: 'one' });
  await harness.createVm(200, { name: 'two' });
  harness.authorization = WEAK;
  return harness;
}

async function callReason(
  harness: SimHarness,
  ...args: Parameters<SimHarness['call']>
): Promise<string> {
  return (await harness.call(...args)).reason;
}

describe('permissions', () => {
  it('a caller without privileges gets empty lists and 403 for everything else', async () => {
    const harness = await harnessWithPrivileges([]);
    expect((await harness.call('GET', '/access/permissions')).data).toEqual({});
    expect((await harness.call('GET', '/nodes/pve1/qemu')).data).toEqual([]);
    expect((await harness.call('GET', '/cluster/resources', { type: 'vm' })).data).toEqual([]);
    expect((await harness.call('GET', '/cluster/resources', { type: 'node' })).data[0]).toEqual({
      id: 'node/pve1',
      node: 'pve1',
      type: 'node',
      status: 'online',
    });
    expect(await callReason(harness, 'GET', '/nodes/pve1/qemu/100/config')).toBe(
      'Permission check failed (/vms/100, VM.Audit)',
    );
    expect(await callReason(harness, 'POST', '/nodes/pve1/qemu/100/status/start')).toBe(
      'Permission check failed (/vms/100, VM.PowerMgmt)',
    );
    expect(await callReason(harness, 'POST', '/nodes/pve1/qemu', { vmid: 300 })).toBe(
      'Permission check failed',
    );
    expect(await callReason(harness, 'POST', '/nodes/pve1/qemu/100/clone', { newid: 300 })).toBe(
      'Permission check failed (/vms/100, VM.Clone)',
    );
    expect(await callReason(harness, 'GET', '/nodes/pve1/status')).toBe(
      'Permission check failed (/nodes/pve1, Sys.Audit)',
    );
    expect(
      await callReason(harness, 'GET', '/nodes/pve1/query-url-metadata', { url: 'http://x' }),
    ).toBe('Permission check failed');
    expect(
      await callReason(harness, 'POST', '/nodes/pve1/storage/local/content/x', { target: 'y' }),
    ).toBe('Permission check failed (user != root@pam)');
  });

  it('are checked before parameters', async () => {
    const harness = await harnessWithPrivileges([]);
    expect((await harness.call('PUT', '/nodes/pve1/qemu/100/resize', { nonsense: 1 })).status).toBe(
      403,
    );
  });

  it('of a token with privsep are the intersection with those of its user', async () => {
    const base = testCluster();
    const acl = [
      { path: '/vms', role: 'PVEVMAdmin', user: 'weak@pve' },
      { path: '/vms', role: 'PVEAuditor', token: 'weak@pve!sep' },
      { path: '/storage', role: 'PVEAdmin', token: 'weak@pve!sep' },
    ];
    const harness = new SimHarness({ cluster: { ...base, acl } });
    harness.authorization = WEAK;
    const { data } = await harness.call('GET', '/access/permissions');
    expect(Object.keys(data)).toEqual(['/vms']);
    expect(Object.keys(data['/vms']).toSorted()).toEqual(['VM.Audit', 'VM.GuestAgent.Audit']);
    expect(
      (await harness.call('GET', '/access/permissions', { path: '/vms/777' })).data['/vms/777'],
    ).toHaveProperty('VM.Audit');
    expect(
      (await harness.call('GET', '/access/permissions', { path: '/storage/local' })).data,
    ).toEqual({ '/storage/local': {} });
  });

  it('come from groups and pools, stop at NoAccess and respect propagate', async () => {
    const base = testCluster();
    const cluster = {
      ...base,
      groups: [{ id: 'ops', members: ['weak@pve'] }],
      pools: [{ id: 'mine', vms: [100] }],
      vms: [100, 200, 300].map((id) => ({ id, host: 'pve1' })),
      acl: [
        { path: '/pool/mine', role: 'PVEVMUser', group: 'ops' },
        { path: '/vms/200', role: 'PVEVMUser', user: 'weak@pve', propagate: false },
        { path: '/vms', role: 'PVEAuditor', group: 'ops', propagate: false },
        { path: '/vms/300', role: 'NoAccess', user: 'weak@pve' },
      ],
    };
    const harness = new SimHarness({ cluster });
    harness.authorization = '';
    const { data } = await harness.call('POST', '/access/ticket', {
      username: 'weak',
      realm: 'pve',
      password: 'weak',
    });
    harness.authorization = `PVEAuthCookie=${data.ticket}`;
    const listedIds = (await harness.call('GET', '/nodes/pve1/qemu')).data.map(
      (row: { vmid: number }) => row.vmid,
    );
    expect(listedIds).toEqual([100, 200]);
  });

  it('depend on the VM option', async () => {
    const role = (...privs: string[]) => [{ id: 'R', privs }];
    const grant = [{ path: '/vms/100', role: 'R' }];
    const put = async (privs: string[], params: Params) => {
      const harness = await harnessWithPrivileges(grant, role(...privs));
      return await callReason(harness, 'PUT', '/nodes/pve1/qemu/100/config', params);
    };
    expect(await put(['VM.Config.CPU'], { cores: 2 })).toBe('OK');
    expect(await put(['VM.Config.CPU'], { memory: 512 })).toBe(
      'Permission check failed (/vms/100, VM.Config.Memory)',
    );
    expect(await put(['VM.Config.CPU'], { name: 'x' })).toBe(
      'Permission check failed (/vms/100, VM.Config.Options)',
    );
    expect(await put(['VM.Config.CPU'], { tags: 'x' })).toBe(
      'Permission check failed (/vms/100, VM.Config.Options)',
    );
    expect(await put(['VM.Config.CPU'], { ciuser: 'x' })).toBe(
      'Permission check failed (/vms/100, VM.Config.Cloudinit|VM.Config.Network)',
    );
    expect(await put(['VM.Config.Cloudinit'], { ipconfig0: 'ip=dhcp' })).toBe('OK');
    expect(await put(['VM.Config.Options'], { startup: 'order=1' })).toBe(
      'Permission check failed (/, Sys.Modify)',
    );
    expect(await put(['VM.Config.Network'], { net0: 'virtio,bridge=vmbr0' })).toBe(
      'Permission check failed (/sdn/zones/localnetwork/vmbr0, SDN.Use)',
    );
    expect(await put(['VM.Config.Network'], { net0: 'virtio,bridge=vmbr0,tag=5' })).toBe(
      'Permission check failed (/sdn/zones/localnetwork/vmbr0/5, SDN.Use)',
    );
    expect(await put(['VM.Config.Network'], { net0: 'virtio,bridge=vmbr0,trunks=7;20-22' })).toBe(
      'Permission check failed (/sdn/zones/localnetwork/vmbr0/20, SDN.Use)',
    );
    expect(await put(['VM.Config.Disk'], { scsi0: 'local-lvm:1' })).toBe(
      'Permission check failed (/storage/local-lvm, Datastore.AllocateSpace)',
    );
    expect(await put(['VM.Audit'], { cores: 2 })).toMatch(
      /^Permission check failed \(\/vms\/100, VM\.Config\.Disk\|/,
    );
  });

  it('on storages control use, download and removal of images', async () => {
    const grant = (role: string) =>
      harnessWithPrivileges([
        { path: '/storage/local', role },
        { path: '/vms', role: 'PVEVMAdmin' },
      ]);
    const audit = await grant('PVEDatastoreUser');
    expect(
      await callReason(audit, 'DELETE', '/nodes/pve1/storage/local/content/iso/debian.iso'),
    ).toBe('Permission check failed (/storage/local, Datastore.Allocate)');
    expect((await audit.call('GET', '/nodes/pve1/storage/local/content')).data).toHaveLength(3);
    expect(
      await callReason(audit, 'POST', '/nodes/pve1/qemu', {
        vmid: 300,
        ide2: 'local:iso/debian.iso,media=cdrom',
      }),
    ).toBe('OK');
    expect(
      await callReason(audit, 'POST', '/nodes/pve1/storage/local/download-url', {
        url: 'http://x',
        filename: 'a.iso',
        content: 'iso',
      }),
    ).toBe('Permission check failed (/storage/local, Datastore.AllocateTemplate)');
    const none = await harnessWithPrivileges([{ path: '/vms', role: 'PVEVMAdmin' }]);
    expect(
      await callReason(none, 'POST', '/nodes/pve1/qemu', {
        vmid: 300,
        ide2: 'local:iso/debian.iso,media=cdrom',
      }),
    ).toBe('Permission check failed (/storage/local, Datastore.AllocateSpace|Datastore.Audit)');
  });

  it('for the guest agent differ between 8.x and 9.x', async () => {
    const make = async (version: '8.4' | '9.2', privs: string[]) => {
      const base = testCluster();
      const acl = [{ path: '/vms', role: 'R', user: 'weak@pve' }];
      const cluster = {
        ...base,
        roles: [{ id: 'R', privs }],
        acl,
        vms: [{ id: 100, host: 'pve1' }],
      };
      const harness = new SimHarness({ cluster, version });
      harness.authorization = '';
      const { data } = await harness.call('POST', '/access/ticket', {
        username: 'weak@pve',
        password: 'weak',
      });
      const headers = {
        authorization: `PVEAuthCookie=${data.ticket}`,
        csrfpreventiontoken: data.CSRFPreventionToken,
      };
      return (
        await harness.send({
          method: 'POST',
          target: '/api2/json/nodes/pve1/qemu/100/agent/ping',
          headers,
        })
      ).reason;
    };
    expect(await make('8.4', ['VM.Monitor'])).toBe('No QEMU guest agent configured');
    expect(await make('9.2', ['VM.GuestAgent.Audit'])).toBe('No QEMU guest agent configured');
    expect(await make('9.2', ['VM.Audit'])).toBe(
      'Permission check failed (/vms/100, VM.GuestAgent.Audit|VM.GuestAgent.Unrestricted)',
    );
  });

  it('include everything for a ticket of root, but not for a token of root', async () => {
    const base = testCluster();
    const tokens = [{ id: 't', secret: 's3cret', privsep: false }];
    const cluster = { ...base, users: [{ id: 'root@pam', password: 'simulated', tokens }] };
    const harness = new SimHarness({ cluster });
    harness.authorization = 'PVEAPIToken=root@pam!t=s3cret';
    expect(await callReason(harness, 'POST', '/nodes/pve1/qemu', { vmid: 100, args: '-x' })).toBe(
      "only root can set 'args' config",
    );
    harness.authorization = '';
    const { data } = await harness.call('POST', '/access/ticket', {
      username: 'root@pam',
      password: 'simulated',
    });
    const headers = {
      authorization: `PVEAuthCookie=${data.ticket}`,
      csrfpreventiontoken: data.CSRFPreventionToken,
      'content-type': 'application/x-www-form-urlencoded',
    };
    const response = await harness.send({
      method: 'POST',
      target: '/api2/json/nodes/pve1/qemu',
      headers,
      body: 'vmid=100&args=-x',
    });
    expect(response.status).toBe(200);
    const importFrom = async (vmid: number, path: string) => {
      const body = `vmid=${vmid}&scsi0=${encodeURIComponent(`local-lvm:0,import-from=${path}`)}`;
      const target = '/api2/json/nodes/pve1/qemu';
      const created = await harness.send({ method: 'POST', target, headers, body });
      harness.authorization = headers.authorization;
      return await harness.waitForTask(created);
    };
    expect(await importFrom(101, '/var/lib/vz/import/noble-with-agent.qcow2')).toBe('OK');
    expect(await importFrom(102, '/root/no.qcow2')).toBe(
      "unable to create VM 102 - can't find file '/root/no.qcow2'",
    );
  });

  it('of built-in roles are those of the version', async () => {
    const rolesOf = async (version: '8.4' | '9.2') => {
      const harness = new SimHarness({ cluster: { ...testCluster(), version } });
      const { data } = await harness.call('GET', '/access/roles');
      return new Map<string, string[]>(
        data.map((role: { roleid: string; privs: string }) => [role.roleid, role.privs.split(',')]),
      );
    };
    const agent = (privileges: readonly string[] = []) =>
      privileges.filter((name) => name.startsWith('VM.GuestAgent.')).toSorted();
    const [old, current] = [await rolesOf('8.4'), await rolesOf('9.2')];
    for (const roles of [old, current]) {
      expect(roles.size).toBe(17);
      expect(roles.get('PVEAdmin')).not.toContain('Mapping.Modify');
      expect(roles.get('PVEMappingAdmin')).toContain('Mapping.Modify');
    }
    expect(agent(old.get('PVEVMUser'))).toEqual([]);
    expect(agent(current.get('PVEVMUser'))).toEqual([
      'VM.GuestAgent.Audit',
      'VM.GuestAgent.FileRead',
      'VM.GuestAgent.FileSystemMgmt',
      'VM.GuestAgent.FileWrite',
    ]);
  });

  it('on a path without a slash at its start are none', async () => {
    const { data } = await new SimHarness().call('GET', '/access/permissions', { path: 'vms' });
    expect(data).toEqual({ vms: {} });
  });

  it('can be granted and revoked over the API', async () => {
    const harness = new SimHarness();
    await harness.call('POST', '/access/users', { userid: 'new@pve' });
    const token = await harness.call('POST', '/access/users/new@pve/token/tt', { privsep: 0 });
    expect(token.data['full-tokenid']).toBe('new@pve!tt');
    await harness.call('POST', '/access/roles', {
      roleid: 'Small',
      privs: 'VM.Audit,VM.PowerMgmt',
    });
    await harness.call('PUT', '/access/acl', { path: '/vms/', roles: 'Small', users: 'new@pve' });
    expect((await harness.call('GET', '/access/acl')).data).toContainEqual({
      path: '/vms',
      roleid: 'Small',
      type: 'user',
      ugid: 'new@pve',
      propagate: 1,
    });
    harness.authorization = `PVEAPIToken=new@pve!tt=${token.data.value}`;
    expect((await harness.call('GET', '/access/permissions', { path: '/vms' })).data).toEqual({
      '/vms': { 'VM.Audit': 1, 'VM.PowerMgmt': 1 },
    });
    // A token is not its user and cannot list it.
    expect((await harness.call('GET', '/access/users')).data).toEqual([]);
    harness.authorization = 'PVEAPIToken=scaler@pve!sim=00000000-0000-4000-8000-000000000001';
    expect(
      (await harness.call('POST', '/access/roles', { roleid: 'Bad', privs: 'VM.Monitor' })).errors,
    ).toEqual({
      privs: "invalid format - invalid privilege 'VM.Monitor'\n",
    });
    await harness.call('PUT', '/access/acl', {
      path: '/vms',
      roles: 'Small',
      users: 'new@pve',
      delete: 1,
    });
    expect((await harness.call('DELETE', '/access/users/new@pve/token/tt')).status).toBe(200);
    expect((await harness.call('GET', '/access/users/new@pve/token')).data).toEqual([]);
  });
});
