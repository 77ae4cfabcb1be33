// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { encodeForm, encodeSshKeys, findSecretValues } from './wire-values.ts';

describe('encodeForm', () => {
  it('percent-encodes values, writes booleans as digits and arrays as repeated keys', () => {
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

  it('sends SSH keys encoded twice, also if Proxmox returned them encoded', () => {
    const key = 'ssh-ed25519 AAAA+b/c= me@here\n';
    const once = 'ssh-ed25519%20AAAA%2Bb%2Fc%3D%20me%40here';
    expect(encodeSshKeys(key)).toBe(once);
    expect(encodeSshKeys(once)).toBe(once);
    expect(encodeForm({ sshkeys: encodeSshKeys(key) })).toBe(
      `sshkeys=${once.replaceAll('%', '%25')}`,
    );
  });

  it('findSecretValues returns the values of secret parameters and passwords in URLs', () => {
    expect(
      findSecretValues({ password: 'pw', 'input-data': 'one\ntwo', cores: 4, name: 'x' }),
    ).toEqual(['pw', 'pw', 'one\ntwo', 'one', 'two']);
    expect(findSecretValues({ url: 'https://u:p%40w@mirror.example/x' })).toEqual(['p%40w', 'p@w']);
    expect(findSecretValues({ url: 'https://mirror.example/x' })).toEqual([]);
  });
});
