// SPDX-License-Identifier: Apache-2.0
import { inspect } from 'node:util';
import { describe, expect, it } from 'vitest';
import {
  isSecretKey,
  mayBeSecret,
  quoteKey,
  quoteValue,
  removeQuotedValue,
} from './detect-secret.ts';
import { resolveSecret, type SecretReaders } from './resolve-secret.ts';
import { Secret } from './secret.ts';
import { describeSecretSource } from './secret-source.ts';

const readers = (more: Partial<SecretReaders> = {}): SecretReaders => ({
  readFile: () => Promise.reject(Object.assign(new Error('ENOENT: /x'), { code: 'ENOENT' })),
  environment: {},
  ...more,
});

describe('Secret', () => {
  it('shows its value only through reveal()', () => {
    const secret = new Secret('hunter2');
    expect(secret.reveal()).toBe('hunter2');
    const accidents = [
      String(secret),
      JSON.stringify({ secret }),
      inspect(secret),
      inspect({ secret }),
    ];
    expect(accidents.join()).not.toContain('hunter2');
    expect(String(secret)).toBe('••••');
  });
});

describe('resolveSecret', () => {
  it('removes one trailing line break of a file', async () => {
    const readFile = () => Promise.resolve({ text: 'abc \n\n', mode: 0o600 });
    const { secret, warnings } = await resolveSecret(
      { kind: 'file', path: '/t' },
      readers({ readFile }),
    );
    expect(secret.reveal()).toBe('abc \n');
    expect(warnings).toEqual([]);
  });

  it('warns about a world-readable file', async () => {
    const readFile = () => Promise.resolve({ text: 'abc', mode: 0o644 });
    const { warnings } = await resolveSecret({ kind: 'file', path: '/t' }, readers({ readFile }));
    expect(warnings).toEqual([
      'secret file /t is readable by every user of this machine; run chmod 600 on it',
    ]);
  });

  it('reads variables and Kubernetes Secrets', async () => {
    const fromVariable = await resolveSecret(
      { kind: 'environment', variable: 'X' },
      readers({ environment: { X: 'v' } }),
    );
    expect(fromVariable.secret.reveal()).toBe('v');
    const ref = { kind: 'kubernetes', namespace: 'n', name: 's', key: 'k' } as const;
    const fromCluster = await resolveSecret(
      ref,
      readers({ readKubernetesSecret: ({ name, key }) => Promise.resolve(`${name}/${key}`) }),
    );
    expect(fromCluster.secret.reveal()).toBe('s/k');
  });

  it.each([
    [{ kind: 'file', path: '/etc/token' }, {}, 'file /etc/token cannot be read (ENOENT)'],
    [
      { kind: 'file', path: '/etc/token' },
      { readFile: () => Promise.resolve({ text: '\n' }) },
      'file /etc/token is empty',
    ],
    [
      { kind: 'file', path: '/etc/1f0c2b9e-7d35-4c8e-9a43-0b6f52d9c1aa' },
      {},
      'secret file (name not shown) cannot be read (ENOENT)',
    ],
    [{ kind: 'environment', variable: 'X' }, {}, 'variable X is not set'],
    [{ kind: 'environment', variable: 'X' }, { environment: { X: '' } }, 'variable X is empty'],
    [
      { kind: 'kubernetes', namespace: 'n', name: 's', key: 'k' },
      {},
      'key k of Secret n/s cannot be read without access to Kubernetes; set cluster.kubeconfig, or run in a pod',
    ],
    [
      { kind: 'kubernetes', namespace: 'n', name: 's', key: 'k' },
      { readKubernetesSecret: () => Promise.resolve('\n') },
      'key k of Secret n/s is empty',
    ],
  ] as const)('refuses %j', async (source, more, message) => {
    await expect(resolveSecret(source, readers(more))).rejects.toMatchObject({
      code: 'SECRET_UNREADABLE',
      message,
    });
  });

  it('describes the source of a secret', () => {
    expect(describeSecretSource({ kind: 'environment', variable: 'X' })).toBe('variable X');
  });
});

describe('detection of secrets in text', () => {
  it.each([
    '1f0c2b9e-7d35-4c8e-9a43-0b6f52d9c1aa',
    'K10abc::server:def',
    'abcdef.0123456789abcdef',
    'eyJhbGciOiJIUzI1NiJ9.e30.x',
    '-----BEGIN PRIVATE KEY-----',
    'https://user:pass@host/',
    'user@pve!name=1234',
    'my-secret',
    'ZmFrZWtleTEyMzQ1Njc4OTA',
  ])('hides %s', (text) => {
    expect(mayBeSecret(text)).toBe(true);
    expect(quoteValue(text)).toBe('(not shown)');
  });

  it('shows ordinary words', () => {
    expect(quoteValue('jammy')).toBe("'jammy'");
    expect(quoteKey('cluster_token')).toBe("'cluster_token'");
    expect(quoteKey('a\nb')).toBe('(not shown)');
    expect(quoteKey('x'.repeat(65))).toBe('(not shown)');
  });

  it('distinguishes keys of secrets from keys that refer to a secret', () => {
    expect(['password', 'token', 'cluster_token', 'apiKey', 'privateKey'].every(isSecretKey)).toBe(
      true,
    );
    expect(['secretFile', 'passwordEnv', 'secretRef', 'tokenTtl', 'name'].some(isSecretKey)).toBe(
      false,
    );
  });

  it('removes the value from the message of a parser', () => {
    expect(removeQuotedValue("unknown suffix 'gb'", '5gb')).toBe("unknown suffix 'gb'");
    expect(
      removeQuotedValue("taint 'hunter2' has no effect; write 'hunter2:NoSchedule'", 'hunter2'),
    ).toBe("taint has no effect; write '…:NoSchedule'");
    expect(removeQuotedValue('is empty', '')).toBe('is empty');
    expect(removeQuotedValue('x', 3)).toBe('x');
  });
});
