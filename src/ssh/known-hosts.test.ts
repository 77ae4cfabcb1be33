// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { findKnownKeys, formatKnownHost } from './known-hosts.ts';

const KEY = 'AAAAC3NzaC1lZDI1NTE5AAAAIGV4YW1wbGU';
const found = (text: string, host: string, port = 22) =>
  findKnownKeys(text, { host, port }).map(({ type, isRevoked }) => [type, isRevoked]);
const KNOWN = [['ssh-ed25519', false]];

describe('findKnownKeys', () => {
  it.each([
    ['pve1', 'pve1', 22],
    ['pve1,192.0.2.1', '192.0.2.1', 22],
    ['PVE1', 'pve1', 22],
    ['pve1', 'PVE1', 22],
    ['*.lab', 'pve1.lab', 22],
    ['pve?', 'pve1', 22],
    ['[pve1]:2222', 'pve1', 2222],
    // `ssh-keygen -H` of a line for pve1.
    ['|1|c2FsdHNhbHRzYWx0c2FsdHM=|HASH', 'pve1', 22],
  ])('finds the key of the line for %s for %s, port %i', async (pattern, host, port) => {
    const { createHmac } = await import('node:crypto');
    const salt = Buffer.from('c2FsdHNhbHRzYWx0c2FsdHM=', 'base64');
    const hash = createHmac('sha1', salt).update('pve1').digest('base64');
    const line = `${pattern.replace('HASH', hash)} ssh-ed25519 ${KEY} comment\n`;
    expect(found(`# comment\n\n${line}`, host, port)).toEqual(KNOWN);
  });

  it.each([
    ['pve1', 'pve2', 22],
    ['pve1', 'pve1', 2222],
    ['[pve1]:2222', 'pve1', 22],
    ['*.lab,!pve1.lab', 'pve1.lab', 22],
    ['!pve1', 'pve2', 22],
    ['pve.1', 'pvex1', 22],
    ['|1|c2FsdA==|aGFzaA==', 'pve1', 22],
    ['@cert-authority *', 'pve1', 22],
  ])('finds no key in the line for %s for %s, port %i', (pattern, host, port) => {
    expect(found(`${pattern} ssh-ed25519 ${KEY}\n`, host, port)).toEqual([]);
  });

  it('reports revoked keys as revoked and ignores lines without a key', () => {
    expect(found(`@revoked pve1 ssh-ed25519 ${KEY}\npve1 ssh-ed25519\nx\n`, 'pve1')).toEqual([
      ['ssh-ed25519', true],
    ]);
  });

  it('writes a name with another port in brackets', () => {
    expect(formatKnownHost({ host: 'pve1', port: 22 })).toBe('pve1');
    expect(formatKnownHost({ host: 'pve1', port: 2222 })).toBe('[pve1]:2222');
  });
});
