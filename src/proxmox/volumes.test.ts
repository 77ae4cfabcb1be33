// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import type { RecordedRequest } from '../ports/fakes/scripted-transport.ts';
import type { Transport } from '../ports/transport.ts';
import {
  createScriptedRegion,
  errorResponse,
  failConnection,
  okResponse,
  TASK,
  UPID,
} from './scripted-region.fixture.ts';

describe('a refusal that names no privilege', () => {
  const file = { host: 'pve1', storage: 'local', name: 'a.iso', bytes: new Uint8Array(3) };
  const order = {
    host: 'pve1',
    storage: 'local',
    url: 'https://images.example/a',
    fileName: 'a.qcow2',
    verifyCertificates: true,
  };
  const permissions =
    (...granted: string[]) =>
    ({ url }: RecordedRequest) => {
      const path = url.searchParams.get('path') ?? '';
      return okResponse({ [path]: Object.fromEntries(granted.map((name) => [name, 1])) });
    };

  it.each([
    [403, ''],
    [400, 'bad request'],
  ])('of an upload (%i %s) names the missing privilege and its path', async (status, text) => {
    const region = createScriptedRegion({
      'POST /nodes/pve1/storage/local/upload': { status, reason: text, body: '' },
      'GET /access/permissions': permissions('Datastore.Audit'),
    });
    await expect(region.hypervisor.uploadIso(file)).rejects.toMatchObject({
      code: 'PERMISSION_MISSING',
      message: expect.stringContaining('lack Datastore.AllocateTemplate on /storage/local'),
      facts: { privilege: 'Datastore.AllocateTemplate', path: '/storage/local' },
    });
  });

  it('of a download names only what is missing', async () => {
    const region = createScriptedRegion({
      'POST /nodes/pve1/storage/local/download-url': errorResponse(403, 'Permission check failed'),
      'GET /access/permissions': permissions('Datastore.AllocateTemplate'),
    });
    const refused = region.hypervisor.downloadImage(order);
    await expect(refused).rejects.toThrow(/lack Sys\.AccessNetwork on \/nodes\/pve1$/);
  });

  it('names all that is needed when the permissions cannot be read', async () => {
    const region = createScriptedRegion({
      'POST /nodes/pve1/storage/local/download-url': errorResponse(403, 'Permission check failed'),
      'GET /access/permissions': errorResponse(403, 'Permission check failed'),
    });
    const refused = region.hypervisor.downloadImage(order);
    await expect(refused).rejects.toThrow(/AllocateTemplate on .* and Sys\.AccessNetwork on/);
  });

  it('stays as it is when a bad request has another cause', async () => {
    const region = createScriptedRegion({
      'POST /nodes/pve1/storage/local/upload': { status: 400, reason: 'bad request', body: '' },
      'GET /access/permissions': permissions('Datastore.AllocateTemplate'),
    });
    const refused = region.hypervisor.uploadIso(file);
    await expect(refused).rejects.toMatchObject({ code: 'PARAMETER_REFUSED' });
  });
});

describe('volumes', () => {
  it('are listed by content type', async () => {
    const region = createScriptedRegion({
      'GET /nodes/pve1/storage/local/content': okResponse([
        { volid: 'local:iso/a.iso', size: 5, content: 'iso', format: 'iso' },
        { volid: 'local:100/x.raw', size: '7', content: 'images', vmid: '100' },
      ]),
    });
    await expect(region.hypervisor.volumes('pve1', 'local', 'iso')).resolves.toEqual([
      { id: 'local:iso/a.iso', name: 'a.iso', bytes: 5, content: 'iso' },
      { id: 'local:100/x.raw', name: 'x.raw', bytes: 7, content: 'images', vmId: 100 },
    ]);
    expect(region.lastRequest().url.search).toBe('?content=iso');
  });

  it('are deleted when deleteVolume resolves, and a missing one is a success', async () => {
    const DELETE = 'DELETE /nodes/pve1/storage/local/content/local:iso/a.iso';
    const status = { status: 'stopped', exitstatus: 'OK' };
    const region = createScriptedRegion({
      [DELETE]: okResponse(UPID),
      [`GET /nodes/pve1/tasks/${UPID}/status`]: () => okResponse(status),
    });
    const remove = () =>
      region.advanceUntil(region.hypervisor.deleteVolume('pve1', 'local:iso/a.iso'));
    await expect(remove()).resolves.toBeUndefined();
    status.exitstatus = "volume 'local:iso/a.iso' does not exist";
    await expect(remove()).resolves.toBeUndefined();
    status.exitstatus = "cfs-lock 'storage-local' error: got lock request timeout";
    await expect(remove()).rejects.toMatchObject({ code: 'LOCK_TIMED_OUT' });
    const withoutTask = createScriptedRegion({ [DELETE]: okResponse(null) });
    await withoutTask.hypervisor.deleteVolume('pve1', 'local:iso/a.iso');
    const forbidden = createScriptedRegion({
      [DELETE]: errorResponse(403, 'Permission check failed (/storage/local, Datastore.Allocate)'),
    });
    await expect(
      forbidden.hypervisor.deleteVolume('pve1', 'local:iso/a.iso'),
    ).rejects.toMatchObject({
      code: 'PERMISSION_MISSING',
      hint: expect.stringContaining('Datastore.Allocate on /storage/local'),
    });
  });
});

describe('storageSpace', () => {
  it('reads what disks can use on the active storages of a host, within ten seconds', async () => {
    const region = createScriptedRegion({
      'GET /nodes/pve1/storage': okResponse([
        { storage: 'local', avail: 58_700, total: 300_000, used: 69_000, active: 1 },
        { storage: 'nfs', avail: 0, total: 0, used: 0, active: 0 },
      ]),
    });
    const space = await region.hypervisor.storageSpace('pve1');
    expect(space).toEqual(new Map([['local', 58_700]]));
    expect(region.lastRequest().url.search).toBe('?content=images&enabled=1');
    const hung = createScriptedRegion({
      'GET /nodes/pve1/storage': () => new Promise(() => undefined),
    });
    const read = hung.advanceUntil(hung.hypervisor.storageSpace('pve1'));
    await expect(read).rejects.toMatchObject({ code: 'REQUEST_TIMED_OUT' });
    expect(hung.clock.monotonic()).toBeLessThan(11_000);
  });
});

describe('image downloads', () => {
  const order = {
    host: 'pve1',
    storage: 'local',
    url: 'https://cloud.example/debian.img',
    fileName: 'debian-0123.qcow2',
    checksum: { algorithm: 'sha512', hex: 'ab' },
    verifyCertificates: false,
  } as const;
  const AT = 'POST /nodes/pve1/storage/local/download-url';

  it('are downloaded by Proxmox with content type import', async () => {
    const region = createScriptedRegion({ [AT]: okResponse(UPID) });
    await region.hypervisor.downloadImage(order);
    expect(region.lastForm()).toEqual({
      content: 'import',
      filename: 'debian-0123.qcow2',
      url: 'https://cloud.example/debian.img',
      checksum: 'ab',
      'checksum-algorithm': 'sha512',
      'verify-certificates': '0',
    });
    const { checksum: _, ...unchecked } = order;
    await region.hypervisor.downloadImage(unchecked);
    expect(region.lastForm()).not.toHaveProperty('checksum-algorithm');
  });

  it('are refused with an invalid file name and before Proxmox VE 8.4', async () => {
    const region = createScriptedRegion({ 'GET /version': okResponse({ version: '8.3.0' }) });
    for (const fileName of ['debian.img', 'a b.qcow2', 'x.QCOW2', '../x.qcow2']) {
      await expect(region.hypervisor.downloadImage({ ...order, fileName })).rejects.toMatchObject({
        code: 'PARAMETER_REFUSED',
      });
    }
    await expect(region.hypervisor.downloadImage(order)).rejects.toMatchObject({
      code: 'PVE_TOO_OLD',
    });
    expect(region.requestLines()).toEqual([]);
  });

  it('do not reveal the password of their URL in errors', async () => {
    const region = createScriptedRegion({
      [AT]: errorResponse(500, 'cannot reach https://u:hidden@x'),
    });
    await expect(
      region.hypervisor.downloadImage({ ...order, url: 'https://u:hidden@x/i' }),
    ).rejects.toMatchObject({ message: expect.not.stringContaining('hidden') });
  });
});

describe('uploadIso', () => {
  it('sends the fields first and the file last', async () => {
    const region = createScriptedRegion({
      'POST /nodes/pve1/storage/local/upload': okResponse(UPID),
    });
    const bytes = new Uint8Array([0, 255, 13, 10, 45, 45]);
    const file = { host: 'pve1', storage: 'local', name: 'seed-160.iso', bytes };
    await expect(region.hypervisor.uploadIso(file)).resolves.toEqual(TASK);
    const sent = region.lastRequest();
    const boundary = sent.headers['content-type']?.replace('multipart/form-data; boundary=', '');
    const head =
      `--${boundary}\r\nContent-Disposition: form-data; name="content"\r\n\r\niso\r\n` +
      `--${boundary}\r\nContent-Disposition: form-data; name="filename"; filename="seed-160.iso"\r\n` +
      'Content-Type: application/octet-stream\r\n\r\n';
    const tail = `\r\n--${boundary}--\r\n`;
    const encoder = new TextEncoder();
    expect([...sent.bytes]).toEqual([...encoder.encode(head), ...bytes, ...encoder.encode(tail)]);
  });

  it.each([
    [1, 36],
    [20, 55],
    [2_000, 635],
  ])('of %i MiB has at most %i s', async (mebibytes, seconds) => {
    const limits: number[] = [];
    const transport: Transport = {
      request: async ({ timeoutMs }) => {
        limits.push(timeoutMs);
        return failConnection(true);
      },
      close: () => Promise.resolve(),
    };
    const region = createScriptedRegion({}, { transport });
    // Only the length matters; the content is not allocated.
    const bytes = Object.defineProperty(new Uint8Array(), 'length', { value: mebibytes * 2 ** 20 });
    const file = { host: 'pve1', storage: 'local', name: 'seed.iso', bytes };
    await expect(region.hypervisor.uploadIso(file)).rejects.toMatchObject({
      code: 'PVE_UNREACHABLE',
    });
    expect(limits.map((ms) => Math.round(ms / 1_000))).toEqual([seconds]);
  });

  it('refuses a name that Proxmox would change', async () => {
    const region = createScriptedRegion({});
    for (const name of ['seed b.iso', 'seed.txt', 'a/b.iso']) {
      const file = { host: 'pve1', storage: 'local', name, bytes: new Uint8Array() };
      await expect(region.hypervisor.uploadIso(file)).rejects.toMatchObject({
        code: 'PARAMETER_REFUSED',
      });
    }
  });
});
