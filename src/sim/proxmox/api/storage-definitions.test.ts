// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { SimHarness, testCluster } from '../testing/sim-harness.ts';

async function statusLine(
  harness: SimHarness,
  line: string,
  params: Record<string, string | number> = {},
) {
  const [method = '', path = ''] = line.split(' ');
  const { status, reason } = await harness.call(method, path, params);
  return `${status} ${reason}`;
}

describe('storage definitions', () => {
  it('accept a new content type, which VMs can then use', async () => {
    const harness = new SimHarness();
    const scsi0 = 'local:1';
    const order = { vmid: 150, scsi0 };
    expect((await harness.call('POST', '/nodes/pve1/qemu', order)).errors).toEqual({
      storage: "storage 'local' does not support vm images",
    });
    const { data } = await harness.call('PUT', '/storage/local', { content: 'iso,import,images' });
    expect(data).toEqual({ storage: 'local', type: 'dir' });
    expect((await harness.call('GET', '/storage/local')).data.content).toBe('iso,import,images');
    expect(await harness.waitForTask(await harness.call('POST', '/nodes/pve1/qemu', order))).toBe(
      'OK',
    );
  });

  it('share one digest, which changes with every definition', async () => {
    const harness = new SimHarness();
    const { digest } = (await harness.call('GET', '/storage/local')).data;
    expect(await statusLine(harness, 'PUT /storage/shared', { disable: 1, digest })).toBe('200 OK');
    expect(await statusLine(harness, 'PUT /storage/local', { nodes: 'pve1', digest })).toBe(
      '500 update storage failed: detected modified configuration - file changed by other user? Try again.',
    );
    expect(await statusLine(harness, 'GET /nodes/pve1/storage/shared/content')).toBe(
      "500 storage 'shared' is disabled",
    );
    expect(await statusLine(harness, 'PUT /storage/shared', { delete: 'disable' })).toBe('200 OK');
    expect(await statusLine(harness, 'GET /nodes/pve1/storage/shared/content')).toBe('200 OK');
  });

  it('can be created, used and removed', async () => {
    const harness = new SimHarness();
    const definition = {
      storage: 'extra',
      type: 'dir',
      path: '/mnt/extra',
      content: 'images',
      nodes: 'pve1',
    };
    expect((await harness.call('POST', '/storage', definition)).data).toEqual({
      storage: 'extra',
      type: 'dir',
    });
    await harness.createVm(150, { scsi0: 'extra:1' });
    expect(await statusLine(harness, 'POST /storage', definition)).toBe(
      "500 create storage failed: storage ID 'extra' already defined",
    );
    expect((await harness.call('DELETE', '/storage/extra')).data).toBeNull();
    expect(await statusLine(harness, 'DELETE /storage/extra')).toBe(
      "500 delete storage failed: storage 'extra' does not exist",
    );
  });

  it.each([
    [
      'POST /storage',
      { storage: 'x1', type: 'dir' },
      "500 missing value for required option 'path'",
    ],
    [
      'POST /storage',
      { storage: 'x1', type: 'dir', path: '/a b' },
      '500 illegal path for directory storage: /a b',
    ],
    [
      'POST /storage',
      { storage: 'x1', type: 'dir', path: '/a', vgname: 'pve' },
      "500 unexpected property 'vgname'",
    ],
    [
      'POST /storage',
      { storage: 'x1', type: 'nfs', server: 'a' },
      "500 missing value for required option 'export'",
    ],
    [
      'POST /storage',
      { storage: 'x1', type: 'dir', path: '/a', content: 'none,iso' },
      "500 unable to combine 'none' with other content types",
    ],
    ['POST /storage', { storage: 'x1', type: 'floppy' }, '400 Parameter verification failed.'],
    [
      'PUT /storage/none',
      { content: 'iso' },
      "500 update storage failed: storage 'none' does not exist",
    ],
    [
      'PUT /storage/local',
      { content: 'iso', delete: 'content' },
      "500 update storage failed: cannot set and delete property 'content' at the same time!",
    ],
    [
      'PUT /storage/local',
      { delete: 'path' },
      "500 update storage failed: unable to delete required option 'path'",
    ],
    [
      'PUT /storage/local',
      { delete: 'vgname' },
      "500 update storage failed: no such option 'vgname'",
    ],
    [
      'PUT /storage/local-lvm',
      { content: 'iso' },
      "500 update storage failed: storage does not support content type 'none'",
    ],
  ])('%s %o returns %s', async (line, params, expected) => {
    expect(await statusLine(new SimHarness(), line, params)).toBe(expected);
  });

  it('verify the format of every option', async () => {
    const given = {
      storage: 'x1',
      type: 'nfs',
      path: 'a',
      server: 'a_b',
      export: ';',
      vgname: '-',
    };
    expect((await new SimHarness().call('POST', '/storage', given)).errors).toEqual({
      path: 'invalid format - value does not look like a valid absolute path\n',
      export: 'invalid format - value does not look like a valid absolute path\n',
      server: 'invalid format - value does not look like a valid server name or IP address\n',
      vgname: "invalid format - lvm name '-' contains illegal characters\n",
    });
  });

  it('need Datastore.Allocate on /storage', async () => {
    const harness = new SimHarness();
    harness.authorization = 'PVEAPIToken=weak@pve!sep=11111111-1111-4111-8111-111111111111';
    expect(await statusLine(harness, 'PUT /storage/local', { content: 'iso' })).toBe(
      '403 Permission check failed (/storage, Datastore.Allocate)',
    );
  });

  it('are part of the saved state', async () => {
    const before = new SimHarness();
    await before.call('PUT', '/storage/local', { content: 'iso' });
    await before.call('POST', '/storage', { storage: 'extra', type: 'dir', path: '/mnt/extra' });
    const after = new SimHarness({ cluster: testCluster() });
    after.sim.loadState(JSON.parse(JSON.stringify(before.sim.saveState())));
    expect((await after.call('GET', '/storage/local')).data.content).toBe('iso');
    expect((await after.call('GET', '/storage/extra')).data.path).toBe('/mnt/extra');
  });
});
