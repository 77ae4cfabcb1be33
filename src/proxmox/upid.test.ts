// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { parseUpid, requireUpid, toRunningTask, toTaskRef } from './upid.ts';

describe('UPID', () => {
  it('contains host, type, subject and owner', () => {
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
  ])('%s belongs to a task of kind %s with subject %s', (typeAndSubject, kind, subject) => {
    const text = `UPID:pve1:0003E1A4:12345678:66A0B2C3:${typeAndSubject}:a@pve:`;
    expect(toTaskRef(requireUpid(text))).toEqual({ upid: text, kind, host: 'pve1' });
    expect(toRunningTask(requireUpid(text)).subject).toBe(subject);
  });

  it.each(['', 'UPID:pve1', 'UPID:pve1:0003E1A4:12345678:66A0B2C3:x::a@pve', 'nonsense'])(
    '%s is refused',
    (text) => {
      expect(parseUpid(text)).toBeUndefined();
      expect(() => requireUpid(text)).toThrow('invalid task id');
    },
  );
});
