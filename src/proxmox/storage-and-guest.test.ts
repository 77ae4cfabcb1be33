// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { aRegion, cut, ok, refused, TASK, UPID } from './scripted-region.fixture.ts';

const VM = { vmId: 160, host: 'pve1' };
const AGENT = '/nodes/pve1/qemu/160/agent';

describe('volumes', () => {
  it('are listed by content', async () => {
    const region = aRegion({
      'GET /nodes/pve1/storage/local/content': ok([
        { volid: 'local:iso/a.iso', size: 5, content: 'iso', format: 'iso' },
        { volid: 'local:100/x.raw', size: '7', content: 'images', vmid: '100' },
      ]),
    });
    await expect(region.hypervisor.volumes('pve1', 'local', 'iso')).resolves.toEqual([
      { id: 'local:iso/a.iso', name: 'a.iso', bytes: 5, content: 'iso' },
      { id: 'local:100/x.raw', name: 'x.raw', bytes: 7, content: 'images', vmId: 100 },
    ]);
    expect(region.last().url.search).toBe('?content=iso');
  });

  it('are deleted to the end of the task; gone is done', async () => {
    const DELETE = 'DELETE /nodes/pve1/storage/local/content/local:iso/a.iso';
    const status = { status: 'stopped', exitstatus: 'OK' };
    const region = aRegion({
      [DELETE]: ok(UPID),
      [`GET /nodes/pve1/tasks/${UPID}/status`]: () => ok(status),
    });
    const remove = () => region.settled(region.hypervisor.deleteVolume('pve1', 'local:iso/a.iso'));
    await expect(remove()).resolves.toBeUndefined();
    status.exitstatus = "volume 'local:iso/a.iso' does not exist";
    await expect(remove()).resolves.toBeUndefined();
    status.exitstatus = "cfs-lock 'storage-local' error: got lock request timeout";
    await expect(remove()).rejects.toMatchObject({ code: 'LOCK_TIMED_OUT' });
    const atOnce = aRegion({ [DELETE]: ok(null) });
    await atOnce.hypervisor.deleteVolume('pve1', 'local:iso/a.iso');
    const forbidden = aRegion({
      [DELETE]: refused(403, 'Permission check failed (/storage/local, Datastore.Allocate)'),
    });
    await expect(
      forbidden.hypervisor.deleteVolume('pve1', 'local:iso/a.iso'),
    ).rejects.toMatchObject({
      code: 'PERMISSION_MISSING',
      hint: expect.stringContaining('Datastore.Allocate on /storage/local'),
    });
  });
});

describe('images', () => {
  const order = {
    host: 'pve1',
    storage: 'local',
    url: 'https://cloud.example/debian.img',
    fileName: 'debian-0123.qcow2',
    checksum: { algorithm: 'sha512', hex: 'ab' },
    verifyCertificates: false,
  } as const;
  const AT = 'POST /nodes/pve1/storage/local/download-url';

  it('are downloaded by Proxmox itself, as import', async () => {
    const region = aRegion({ [AT]: ok(UPID) });
    await region.hypervisor.downloadImage(order);
    expect(region.form()).toEqual({
      content: 'import',
      filename: 'debian-0123.qcow2',
      url: 'https://cloud.example/debian.img',
      checksum: 'ab',
      'checksum-algorithm': 'sha512',
      'verify-certificates': '0',
    });
    const { checksum: _, ...unchecked } = order;
    await region.hypervisor.downloadImage(unchecked);
    expect(region.form()).not.toHaveProperty('checksum-algorithm');
  });

  it('are refused under a name that Proxmox refuses, and before 8.4', async () => {
    const region = aRegion({ 'GET /version': ok({ version: '8.3.0' }) });
    for (const fileName of ['debian.img', 'a b.qcow2', 'x.QCOW2', '../x.qcow2']) {
      await expect(region.hypervisor.downloadImage({ ...order, fileName })).rejects.toMatchObject({
        code: 'PARAMETER_REFUSED',
      });
    }
    await expect(region.hypervisor.downloadImage(order)).rejects.toMatchObject({
      code: 'PVE_TOO_OLD',
    });
    expect(region.calls()).toEqual([]);
  });

  it('show no password of their address', async () => {
    const region = aRegion({ [AT]: refused(500, 'cannot reach https://u:hidden@x') });
    await expect(
      region.hypervisor.downloadImage({ ...order, url: 'https://u:hidden@x/i' }),
    ).rejects.toMatchObject({ message: expect.not.stringContaining('hidden') });
  });
});

describe('an ISO', () => {
  it('is uploaded with the fields first and the file last', async () => {
    const region = aRegion({ 'POST /nodes/pve1/storage/local/upload': ok(UPID) });
    const bytes = new Uint8Array([0, 255, 13, 10, 45, 45]);
    const file = { host: 'pve1', storage: 'local', name: 'seed-160.iso', bytes };
    await expect(region.hypervisor.uploadIso(file)).resolves.toEqual(TASK);
    const sent = region.last();
    const boundary = sent.headers['content-type']?.replace('multipart/form-data; boundary=', '');
    const head =
      `--${boundary}\r\nContent-Disposition: form-data; name="content"\r\n\r\niso\r\n` +
      `--${boundary}\r\nContent-Disposition: form-data; name="filename"; filename="seed-160.iso"\r\n` +
      'Content-Type: application/octet-stream\r\n\r\n';
    const tail = `\r\n--${boundary}--\r\n`;
    const encoder = new TextEncoder();
    expect([...sent.bytes]).toEqual([...encoder.encode(head), ...bytes, ...encoder.encode(tail)]);
  });

  it('keeps its name or is refused', async () => {
    const region = aRegion({});
    for (const name of ['seed b.iso', 'seed.txt', 'a/b.iso']) {
      const file = { host: 'pve1', storage: 'local', name, bytes: new Uint8Array() };
      await expect(region.hypervisor.uploadIso(file)).rejects.toMatchObject({
        code: 'PARAMETER_REFUSED',
      });
    }
  });
});

describe('the guest agent', () => {
  it.each([
    'No QEMU guest agent configured',
    'VM 160 is not running',
    'QEMU guest agent is not running',
  ])('is not up: %s', async (text) => {
    const region = aRegion({
      [`POST ${AGENT}/ping`]: refused(500, text),
      [`GET ${AGENT}/network-get-interfaces`]: refused(500, text),
    });
    await expect(region.hypervisor.guestIsUp(VM)).resolves.toBe(false);
    await expect(region.hypervisor.guestInterfaces(VM)).rejects.toMatchObject({
      code: 'GUEST_AGENT_SILENT',
      class: 'Unreachable',
    });
  });

  it('is up, or cannot be asked', async () => {
    const up = aRegion({ [`POST ${AGENT}/ping`]: ok({ result: {} }) });
    await expect(up.hypervisor.guestIsUp(VM)).resolves.toBe(true);
    const down = aRegion({ [`POST ${AGENT}/ping`]: { status: 595, reason: 'No route to host' } });
    await expect(down.hypervisor.guestIsUp(VM)).rejects.toMatchObject({
      code: 'PVE_HOST_UNREACHABLE',
    });
  });

  it('tells the addresses that are of use outside', async () => {
    const region = aRegion({
      [`GET ${AGENT}/network-get-interfaces`]: ok({
        result: [
          { name: 'lo', 'ip-addresses': [{ 'ip-address': '127.0.0.1', prefix: 8 }] },
          {
            name: 'eth0',
            'hardware-address': 'bc:24:11:00:00:01',
            'ip-addresses': [
              { 'ip-address': '10.0.0.5', prefix: 24, 'ip-address-type': 'ipv4' },
              { 'ip-address': 'fe80::1', prefix: 64 },
              { 'ip-address': '169.254.3.4', prefix: 16 },
              { 'ip-address': 'fd00::5', prefix: 64 },
            ],
          },
          { name: 'eth1' },
        ],
      }),
    });
    await expect(region.hypervisor.guestInterfaces(VM)).resolves.toEqual([
      { name: 'eth0', mac: 'bc:24:11:00:00:01', addresses: ['10.0.0.5/24', 'fd00::5/64'] },
      { name: 'eth1', mac: undefined, addresses: [] },
    ]);
  });

  const EXEC = `POST ${AGENT}/exec`;
  const EXEC_STATUS = `GET ${AGENT}/exec-status`;
  const command = { command: ['/bin/sh', '-s'], input: 'echo hi', timeoutMs: 10_000 };

  it('runs a command to its end, through silence', async () => {
    const answers = [
      ok({ exited: 0 }),
      refused(500, 'QEMU guest agent is not running'),
      ok({ exited: 1, exitcode: 3, 'out-data': 'out', 'err-data': 'err' }),
    ];
    const region = aRegion({
      [EXEC]: ok({ pid: 77 }),
      [EXEC_STATUS]: () => answers.shift() ?? cut(true),
    });
    await expect(region.settled(region.hypervisor.guestExec(VM, command))).resolves.toEqual({
      exitCode: 3,
      output: 'out',
      errorOutput: 'err',
    });
    expect(region.transport.requests[0]?.text).toBe(
      'command=%2Fbin%2Fsh&command=-s&input-data=echo%20hi',
    );
    expect(region.last().url.search).toBe('?pid=77');
  });

  it('says when the result was lost: it can be read once', async () => {
    let asked = 0;
    const region = aRegion({
      [EXEC]: ok({ pid: 77 }),
      [EXEC_STATUS]: () => {
        asked += 1;
        return asked === 1 ? cut(true) : refused(500, "Agent error: Invalid parameter 'pid'");
      },
    });
    await expect(region.settled(region.hypervisor.guestExec(VM, command))).rejects.toMatchObject({
      code: 'GUEST_AGENT_SILENT',
      message: expect.stringContaining('was lost'),
    });
  });

  it('gives up in time, and takes a signal for an exit code', async () => {
    const status: Record<string, number> = { exited: 0 };
    const region = aRegion({ [EXEC]: ok({ pid: 77 }), [EXEC_STATUS]: () => ok(status) });
    await expect(region.settled(region.hypervisor.guestExec(VM, command))).rejects.toMatchObject({
      class: 'TimedOut',
      facts: { pid: 77 },
    });
    Object.assign(status, { exited: 1, signal: 9 });
    await expect(region.settled(region.hypervisor.guestExec(VM, command))).resolves.toMatchObject({
      exitCode: 137,
    });
  });

  it('sends input and reads output byte by byte, as Proxmox does', async () => {
    const answer = { exited: 1, exitcode: 0, 'out-data': 'Ã¼', 'err-data': '☃' };
    const region = aRegion({ [EXEC]: ok({ pid: 77 }), [EXEC_STATUS]: ok(answer) });
    const umlaut = { ...command, input: 'ü' };
    await expect(region.settled(region.hypervisor.guestExec(VM, umlaut))).resolves.toMatchObject({
      output: 'ü',
      errorOutput: '☃',
    });
    expect(region.transport.requests[0]?.text).toContain('input-data=%C3%83%C2%BC');
    const words = { ...command, command: ['/bin/echo', 'ü'] };
    await expect(aRegion({}).hypervisor.guestExec(VM, words)).rejects.toMatchObject({
      code: 'PARAMETER_REFUSED',
    });
  });

  it('takes no more input than Proxmox does', async () => {
    const long = { ...command, input: 'x'.repeat(65_537) };
    await expect(aRegion({}).hypervisor.guestExec(VM, long)).rejects.toMatchObject({
      code: 'PARAMETER_REFUSED',
    });
  });
});
