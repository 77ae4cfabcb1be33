// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { VirtualClock } from '../ports/fakes/virtual-clock.ts';
import { Endpoints } from './endpoints.ts';
import { encodeForm, encodeSshKeys } from './form.ts';
import { Gate } from './limits.ts';
import {
  formatDiskSize,
  formatProperties,
  parseDiskSize,
  parseProperties,
} from './property-string.ts';
import { secretsIn } from './secret-parameters.ts';
import { parseUpid, runningTaskOf, taskRefOf, upidOf } from './upid.ts';
import { isAtLeast } from './version.ts';

describe('form encoding', () => {
  it('encodes every value whole, booleans as digits, arrays as repeated keys', () => {
    expect(
      encodeForm({
        net0: 'virtio,bridge=vmbr0',
        tags: 'a;b',
        full: true,
        purge: false,
        cores: 4,
        command: ['/bin/sh', '-c', 'echo a&b'],
        pool: undefined,
        description: 'two words\nand ü',
      }),
    ).toBe(
      'net0=virtio%2Cbridge%3Dvmbr0&tags=a%3Bb&full=1&purge=0&cores=4' +
        '&command=%2Fbin%2Fsh&command=-c&command=echo%20a%26b' +
        '&description=two%20words%0Aand%20%C3%BC',
    );
  });

  it('encodes SSH keys once more, unless Proxmox did', () => {
    const key = 'ssh-ed25519 AAAA+b/c= me@here\n';
    const once = 'ssh-ed25519%20AAAA%2Bb%2Fc%3D%20me%40here';
    expect(encodeSshKeys(key)).toBe(once);
    expect(encodeSshKeys(once)).toBe(once);
    expect(encodeForm({ sshkeys: encodeSshKeys(key) })).toBe(
      `sshkeys=${once.replaceAll('%', '%25')}`,
    );
  });

  it('knows which parameters hold secrets', () => {
    expect(secretsIn({ password: 'pw', 'input-data': 'one\ntwo', cores: 4, name: 'x' })).toEqual([
      'pw',
      'pw',
      'one\ntwo',
      'one',
      'two',
    ]);
    expect(secretsIn({ url: 'https://u:p%40w@mirror.example/x' })).toEqual(['p%40w', 'p@w']);
    expect(secretsIn({ url: 'https://mirror.example/x' })).toEqual([]);
  });
});

describe('property strings', () => {
  it('are read with the key that is left out', () => {
    expect(Object.fromEntries(parseProperties('virtio,bridge=vmbr0, tag=5', 'model'))).toEqual({
      model: 'virtio',
      bridge: 'vmbr0',
      tag: '5',
    });
    expect(parseProperties('', 'model').size).toBe(0);
    expect(parseProperties('local:1/vm-1-disk-0.raw,size=2G', 'file').get('size')).toBe('2G');
  });

  it('are written without what is undefined', () => {
    expect(formatProperties('local:0', { iothread: true, discard: 'on', cache: undefined })).toBe(
      'local:0,iothread=1,discard=on',
    );
    expect(formatProperties(undefined, { uuid: 'x' })).toBe('uuid=x');
  });

  it('size disks in binary units, never below what was asked', () => {
    expect(parseDiskSize('32G')).toBe(32 * 2 ** 30);
    expect(parseDiskSize('2252M')).toBe(2_252 * 2 ** 20);
    expect(parseDiskSize('1.5T')).toBe(1.5 * 2 ** 40);
    expect(parseDiskSize('512')).toBe(512);
    expect(parseDiskSize('10GB')).toBeUndefined();
    expect(formatDiskSize(20 * 2 ** 30)).toBe('20G');
    expect(formatDiskSize(20 * 2 ** 30 + 1)).toBe('20481M');
  });
});

describe('UPID', () => {
  it('tells host, type, subject and owner', () => {
    expect(
      parseUpid('UPID:pve1:0003E1A4:1234567AB:66A0B2C3:qmclone:9000:root@pam!scaler:'),
    ).toMatchObject({
      host: 'pve1',
      startedAtSeconds: 0x66a0b2c3,
      type: 'qmclone',
      subject: '9000',
      owner: 'root@pam!scaler',
    });
    expect(parseUpid('UPID:pve1:0003E1A4:12345678:66A0B2C3:imgcopy::a@pve:')?.subject).toBe('');
  });

  it.each([
    ['qmclone:9000', 'clone', 9_000],
    ['qmcreate:160', 'create', 160],
    ['imgcopy:', 'upload', undefined],
    ['download:debian.qcow2', 'download', 'debian.qcow2'],
    ['vzdump:100', 'other', 100],
  ])('with %s is of a task of kind %s with subject %s', (typeAndSubject, kind, subject) => {
    const text = `UPID:pve1:0003E1A4:12345678:66A0B2C3:${typeAndSubject}:a@pve:`;
    expect(taskRefOf(upidOf(text))).toEqual({ upid: text, kind, host: 'pve1' });
    expect(runningTaskOf(upidOf(text)).subject).toBe(subject);
  });

  it.each(['', 'UPID:pve1', 'UPID:pve1:0003E1A4:12345678:66A0B2C3:x::a@pve', 'nonsense'])(
    'refuses %s',
    (text) => {
      expect(parseUpid(text)).toBeUndefined();
      expect(() => upidOf(text)).toThrow('not a task id');
    },
  );
});

describe('versions', () => {
  it('are compared as numbers', () => {
    expect(isAtLeast('8.4.1', '8.4')).toBe(true);
    expect(isAtLeast('8.10', '8.4')).toBe(true);
    expect(isAtLeast('9.0~beta2', '8.4')).toBe(true);
    expect(isAtLeast('8.3.5', '8.4')).toBe(false);
    expect(isAtLeast('7.4', '8.2')).toBe(false);
  });
});

describe('Gate', () => {
  it('lets in so many at once, the rest in order, and forgets who gave up', async () => {
    const gate = new Gate(2);
    const log: string[] = [];
    const open: (() => void)[] = [];
    const enter = (name: string, signal?: AbortSignal) =>
      gate.run(async () => {
        log.push(name);
        await new Promise<void>((resolve) => {
          open.push(resolve);
        });
      }, signal);
    const abort = new AbortController();
    const first = enter('a');
    const second = enter('b');
    const gaveUp = enter('c', abort.signal);
    const fourth = enter('d');
    await Promise.resolve();
    abort.abort();
    await expect(gaveUp).rejects.toMatchObject({
      code: 'CANCELLED',
      facts: { requestSent: false },
    });
    expect(log).toEqual(['a', 'b']);
    open[0]?.();
    await first;
    await Promise.resolve();
    expect(log).toEqual(['a', 'b', 'd']);
    open[1]?.();
    open[2]?.();
    await Promise.all([second, fourth]);
    expect(gate.inside).toBe(0);
    await expect(enter('e', abort.signal)).rejects.toMatchObject({ code: 'CANCELLED' });
  });

  it('frees the place of one that failed', async () => {
    const gate = new Gate(1);
    await expect(gate.run(() => Promise.reject(new Error('x')))).rejects.toThrow('x');
    await expect(gate.run(() => Promise.resolve(1))).resolves.toBe(1);
  });
});

describe('Endpoints', () => {
  const clock = new VirtualClock();
  const make = (...origins: string[]) =>
    new Endpoints(origins, { clock, restMs: 30_000, requestsAtOnce: 2 });

  it('adds what is left out of an address', () => {
    const origins = (list: Endpoints) => list.inOrder().map((one) => one.origin);
    expect(origins(make('pve1.example', 'https://10.0.0.1/', 'https://x:443', '[::1]:99'))).toEqual(
      ['https://pve1.example:8006', 'https://10.0.0.1:8006', 'https://x', 'https://[::1]:99'],
    );
    expect(() => make('https://')).toThrow('not an address');
    expect(() => make()).toThrow('at least one');
  });

  it('puts one that failed last, for a while, and the one that is asked about first', async () => {
    const list = make('pve1', 'pve2.lan', 'pve3');
    const names = (near?: string) => list.inOrder(near).map((one) => one.hostname);
    expect(names('pve2')).toEqual(['pve2.lan', 'pve1', 'pve3']);
    const [first] = list.inOrder();
    list.failed(first!);
    expect(names()).toEqual(['pve2.lan', 'pve3', 'pve1']);
    expect(names('pve1')).toEqual(['pve2.lan', 'pve3', 'pve1']);
    await clock.advance(30_000);
    expect(names()).toEqual(['pve1', 'pve2.lan', 'pve3']);
    list.failed(first!);
    list.answered(first!);
    expect(names()[0]).toBe('pve1');
  });
});
