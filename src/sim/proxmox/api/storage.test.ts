// SPDX-License-Identifier: Apache-2.0
import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { SimHarness, testCluster } from '../testing/sim-harness.ts';

const PATH = '/nodes/pve1/storage';
type Params = Parameters<SimHarness['call']>[2];

function multipart(parts: readonly (readonly [string, string, string?])[]): string {
  const body = parts.map(([name, value, file]) => {
    const extra =
      file === undefined ? '' : `; filename="${file}"\r\nContent-Type: application/octet-stream`;
    return `--XX\r\nContent-Disposition: form-data; name="${name}"${extra}\r\n\r\n${value}\r\n`;
  });
  return `${body.join('')}--XX--\r\n`;
}

function upload(harness: SimHarness, parts: Parameters<typeof multipart>[0], storage = 'local') {
  return harness.send({
    method: 'POST',
    target: `/api2/json${PATH}/${storage}/upload`,
    headers: { 'content-type': 'multipart/form-data; boundary=XX' },
    body: multipart(parts),
  });
}

describe('uploads', () => {
  it('store the file under a sanitised name when the task ends', async () => {
    const harness = new SimHarness();
    const checksum = createHash('sha256').update('seed').digest('hex');
    const response = await upload(harness, [
      ['content', 'iso'],
      ['checksum-algorithm', 'sha256'],
      ['checksum', checksum],
      ['filename', 'seed', 'seed b@d.iso'],
    ]);
    expect(response.data).toMatch(/:imgcopy::scaler@pve!sim:$/);
    const list = async () =>
      (await harness.call('GET', `${PATH}/local/content`, { content: 'iso' })).data.map(
        (row: { volid: string }) => row.volid,
      );
    expect(await list()).toEqual(['local:iso/debian.iso']);
    expect(await harness.waitForTask(response)).toBe('OK');
    expect(await list()).toEqual(['local:iso/debian.iso', 'local:iso/seed_b_d.iso']);
    const { data } = await harness.call('GET', `${PATH}/local/content/local:iso/seed_b_d.iso`);
    expect(data).toMatchObject({ path: '/var/lib/vz/template/iso/seed_b_d.iso', size: 4 });
  });

  it.each([
    [
      [
        ['filename', 'x', 'a.iso'],
        ['content', 'iso'],
      ],
      'local',
      400,
      { content: 'property is missing and it is not optional' },
    ],
    [
      [
        ['content', 'iso'],
        ['file', 'x', 'a.iso'],
      ],
      'local',
      500,
      "wrong field name 'file' for file upload, expected 'filename'",
    ],
    [
      [
        ['content', 'iso'],
        ['filename', 'x', 'a.txt'],
      ],
      'local',
      400,
      { filename: 'wrong file extension' },
    ],
    [
      [
        ['content', 'import'],
        ['filename', 'x', 'a.img'],
      ],
      'local',
      400,
      { filename: 'invalid filename or wrong extension' },
    ],
    [
      [
        ['content', 'snippets'],
        ['filename', 'x', 'a.yaml'],
      ],
      'local',
      400,
      {
        content: "value 'snippets' does not have a value in the enumeration 'iso, vztmpl, import'",
      },
    ],
    [
      [
        ['content', 'iso'],
        ['filename', 'x', 'a.iso'],
      ],
      'local-lvm',
      500,
      "can't upload to storage type 'lvmthin'",
    ],
    [
      [
        ['content', 'vztmpl'],
        ['filename', 'x', 'a.tar.zst'],
      ],
      'shared',
      500,
      "storage 'shared' does not support 'vztmpl' content",
    ],
    [[['content', 'iso']], 'local', 501, 'upload failed'],
  ] as const)('%j to storage %s is refused', async (...row) => {
    const [parts, storage, status, problem] = row;
    const response = await upload(new SimHarness(), parts, storage);
    expect(response.status).toBe(status);
    if (typeof problem === 'string') expect(response.reason).toBe(problem);
    else expect(response.errors).toEqual(problem);
  });

  it('fail in the task on a wrong checksum, and with 403 without a body on a missing privilege', async () => {
    const harness = new SimHarness();
    const response = await upload(harness, [
      ['content', 'iso'],
      ['checksum-algorithm', 'md5'],
      ['checksum', 'abc'],
      ['filename', 'x', 'a.iso'],
    ]);
    expect(await harness.waitForTask(response)).toBe(
      "checksum mismatch: got '9dd4e461268c8034f5c8564e155c67a6' != expect 'abc'",
    );
    harness.authorization = 'PVEAPIToken=weak@pve!sep=11111111-1111-4111-8111-111111111111';
    const refused = await upload(harness, [
      ['content', 'iso'],
      ['filename', 'x', 'a.iso'],
    ]);
    expect([refused.status, refused.reason, refused.body]).toEqual([
      403,
      'Permission check failed (/storage/local, Datastore.AllocateTemplate)',
      '',
    ]);
  });
});

describe('uploads that Proxmox refuses in unusual ways', () => {
  const parts = [
    ['content', 'iso'],
    ['filename', 'x', 'a.iso'],
  ] as const;
  const weak = 'PVEAPIToken=weak@pve!sep=11111111-1111-4111-8111-111111111111';

  it('answer 400 without a body when the privilege is missing and the connection was used before', async () => {
    const harness = new SimHarness();
    harness.authorization = weak;
    const request = {
      method: 'POST',
      target: `/api2/json${PATH}/local/upload`,
      headers: { 'content-type': 'multipart/form-data; boundary=XX' },
      body: multipart(parts),
    };
    const refused = await harness.send({ ...request, isConnectionReused: true });
    expect([refused.status, refused.reason, refused.body]).toEqual([400, 'bad request', '']);
    expect((await harness.send(request)).status).toBe(403);
  });

  it.each(['local', 'seeds'])(
    'fail for another host without ssh, and leave a file (%s)',
    async (storage) => {
      const described = testCluster(2);
      const seeds = { name: 'seeds', type: 'nfs', content: ['iso'], size: 2 ** 34 } as const;
      const cluster = { ...described, ssh: false, storages: [...described.storages, seeds] };
      const harness = new SimHarness({ cluster });
      const send = (host: string) =>
        harness.send({
          method: 'POST',
          target: `/api2/json${PATH}/${storage}/upload`,
          headers: { 'content-type': 'multipart/form-data; boundary=XX' },
          body: multipart(parts),
          host,
        });
      const refused = await send('pve2');
      expect(refused.status).toBe(500);
      expect(refused.reason).toMatch(
        new RegExp(
          `^can't activate storage '${storage}' on node 'pve1': command '/usr/bin/ssh .* failed`,
        ),
      );
      expect(harness.sim.inspect().leftUploads).toEqual([
        expect.stringMatching(/^pve2:\/var\/tmp\/pveupload-/),
      ]);
      expect(await harness.waitForTask(await send('pve1'))).toBe('OK');
    },
  );
});

describe('free space', () => {
  it('is less than total minus used on a storage with reserved blocks', async () => {
    const described = testCluster();
    const storages = described.storages.map((one) =>
      one.name === 'local' ? { ...one, used: 2 ** 30, reserved: 2 ** 32 } : one,
    );
    const harness = new SimHarness({ cluster: { ...described, storages } });
    const { data } = await harness.call('GET', PATH);
    const { total, used, avail } = data.find((one: { storage: string }) => one.storage === 'local');
    expect(total - used - avail).toBe(2 ** 32);
    const { data: resources } = await harness.call('GET', '/cluster/resources', {
      type: 'storage',
    });
    const listed = resources.find((one: { storage: string }) => one.storage === 'local');
    expect(listed).toMatchObject({ maxdisk: total, disk: used });
    expect(listed).not.toHaveProperty('avail');
  });
});

describe('downloads', () => {
  const url = 'https://images.example/noble.img';
  const checksum = 'a'.repeat(64);
  const cluster = {
    ...testCluster(),
    urls: [
      {
        url,
        size: 2 ** 20,
        virtualSize: 2 ** 31,
        checksums: { sha256: checksum },
        type: 'application/octet-stream',
      },
      { url: 'https://images.example/gone', status: 404 },
      { url: 'https://self.example/x', untrusted: true, size: 10 },
      { url: 'https://images.example/chained', size: 10, backingFile: 'other' },
    ],
  };
  const startDownload = (harness: SimHarness, params: Params = {}, storage = 'local') =>
    harness.call('POST', `${PATH}/${storage}/download-url`, {
      content: 'import',
      filename: 'noble-abc.qcow2',
      url,
      ...params,
    });

  it('refuse to overwrite a file, but accept an existing one with the right checksum', async () => {
    const harness = new SimHarness({ cluster });
    const sum = { checksum, 'checksum-algorithm': 'sha256' };
    expect(await harness.waitForTask(await startDownload(harness, sum))).toBe('OK');
    expect(await harness.waitForTask(await startDownload(harness, sum))).toBe('OK');
    expect(await harness.waitForTask(await startDownload(harness))).toBe(
      "refusing to override existing file '/var/lib/vz/import/noble-abc.qcow2'",
    );
    expect(
      await harness.waitForTask(await startDownload(harness, { ...sum, checksum: 'b'.repeat(64) })),
    ).toMatch(/mismatch/);
    await harness.createVm(140, { scsi0: 'local-lvm:0,import-from=local:import/noble-abc.qcow2' });
    expect((await harness.call('GET', '/nodes/pve1/qemu/140/config')).data.scsi0).toMatch(
      /size=2G$/,
    );
  });

  it.each([
    [{ url: 'https://images.example/gone' }, 'download failed: exit code 8'],
    [{ url: 'https://nowhere.example/x' }, 'download failed: exit code 4'],
    [{ url: 'https://self.example/x' }, 'download failed: exit code 5'],
    [{ url: 'https://self.example/x', 'verify-certificates': 0 }, 'OK'],
    [
      { checksum: 'c', 'checksum-algorithm': 'sha256' },
      `checksum mismatch: got '${checksum}' != expect 'c'`,
    ],
    [{ compression: 'gz' }, 'decompression not supported for import'],
    [
      { url: 'https://images.example/chained' },
      "backing file not allowed for untrusted image '/var/lib/vz/import/noble-abc.qcow2'!",
    ],
  ])('%j ends with task status %s', async (params, status) => {
    const harness = new SimHarness({ cluster });
    expect(await harness.waitForTask(await startDownload(harness, params))).toBe(status);
  });

  it.each([
    ['https://images.example/gone', /ERROR 404: Not Found\./],
    ['https://nowhere.example/x', /unable to resolve host address 'nowhere\.example'/],
    ['https://self.example/x', /cannot verify self\.example's certificate/],
  ])('of %s log the error of wget', async (failing, line) => {
    const harness = new SimHarness({ cluster });
    const response = await startDownload(harness, { url: failing });
    await harness.waitForTask(response);
    const { data } = await harness.call('GET', `/nodes/pve1/tasks/${response.data}/log`);
    expect(data.map(({ t }: { t: string }) => t).join('\n')).toMatch(line);
  });

  it.each([
    [
      { checksum: 'x' },
      'local',
      { 'checksum-algorithm': "missing property required by 'checksum'" },
    ],
    [{ url: 'ftp://x' }, 'local', { url: 'value does not match the regex pattern' }],
    [{ filename: 'x.img' }, 'local', { filename: 'invalid filename or wrong extension' }],
    [{}, 'local-lvm', "can't upload to storage type 'lvmthin', not a file based storage!"],
    [
      { content: 'vztmpl', filename: 'a.tar' },
      'shared',
      "storage 'shared' is not configured for content-type 'vztmpl'",
    ],
    [{}, 'nosuch', "storage 'nosuch' does not exist"],
  ])('%j to storage %s is refused', async (params, storage, problem) => {
    const response = await startDownload(new SimHarness({ cluster }), params, storage);
    if (typeof problem === 'string') expect(response.reason).toBe(problem);
    else expect(response.errors).toEqual(problem);
  });

  it('query-url-metadata returns name, size and type of a URL', async () => {
    const harness = new SimHarness({ cluster });
    const queryMetadata = (where: string) =>
      harness.call('GET', '/nodes/pve1/query-url-metadata', { url: where });
    expect((await queryMetadata(url)).data).toEqual({
      filename: 'noble.img',
      size: 2 ** 20,
      mimetype: 'application/octet-stream',
    });
    expect((await queryMetadata('https://images.example/gone')).reason).toBe(
      "invalid server response: '404 Not Found'",
    );
  });
});

describe('storages and volumes', () => {
  it('are listed by content type and state', async () => {
    const harness = new SimHarness();
    const names = async (params: Params) =>
      (await harness.call('GET', PATH, params)).data.map((row: { storage: string }) => row.storage);
    expect(await names({})).toEqual(['local', 'local-lvm', 'shared']);
    expect(await names({ content: 'images' })).toEqual(['local-lvm', 'shared']);
    harness.sim.externalChanges.setStorageEnabled('shared', false);
    expect(await names({ enabled: 1 })).toEqual(['local', 'local-lvm']);
    harness.sim.externalChanges.setStorageActive('local', false);
    expect((await harness.call('GET', `${PATH}/local/status`)).data).toMatchObject({
      active: 0,
      total: 0,
    });
    expect((await harness.call('GET', `${PATH}/nosuch/status`)).errors).toEqual({
      storage: 'No such storage.',
    });
    expect((await harness.call('GET', `${PATH}/nosuch/content`)).reason).toBe(
      "storage 'nosuch' does not exist",
    );
  });

  it.each(['local:iso/debian.iso', 'iso/debian.iso', 'local%3Aiso%2Fdebian.iso'])(
    'volume %s can be deleted',
    async (volume) => {
      const harness = new SimHarness();
      const response = await harness.call('DELETE', `${PATH}/local/content/${volume}`);
      expect(response.data).toContain(':imgdel:local:');
      expect(await harness.waitForTask(response)).toBe('OK');
      expect(
        await harness.waitForTask(await harness.call('DELETE', `${PATH}/local/content/${volume}`)),
      ).toBe('OK');
      const waited = await harness.call('DELETE', `${PATH}/local/content/${volume}`, { delay: 5 });
      expect([waited.status, waited.data]).toEqual([200, null]);
    },
  );

  it('DELETE refuses volumes of another storage and invalid names', async () => {
    const harness = new SimHarness();
    expect((await harness.call('DELETE', `${PATH}/local/content/shared:iso/x.iso`)).errors).toEqual(
      {
        volume: 'storage ID mismatch (shared != local)\n',
      },
    );
    expect((await harness.call('DELETE', `${PATH}/local/content/nonsense`)).reason).toBe(
      "unable to parse directory volume name 'nonsense'",
    );
  });

  it('allocates one disk at a time per storage, with a lock timeout for long waits', async () => {
    const harness = new SimHarness();
    const response = await harness.call('POST', `${PATH}/local-lvm/content`, {
      vmid: 100,
      filename: 'vm-100-disk-0',
      size: '1G',
    });
    expect(response.data).toBe('local-lvm:vm-100-disk-0');
    const slow = new SimHarness();
    const orders = await Promise.all(
      Array.from({ length: 40 }, (_, index) =>
        slow.call('POST', '/nodes/pve1/qemu', { vmid: 100 + index, scsi0: 'local-lvm:1' }),
      ),
    );
    const ends = new Set<string>();
    for (const startDownload of orders)
      ends.add((await slow.waitForTask(startDownload)).replace(/^unable to create VM \d+ - /, ''));
    expect([...ends].toSorted()).toEqual([
      'OK',
      "can't lock file '/var/lock/pve-manager/pve-storage-local-lvm' - got timeout",
    ]);
  });
});
