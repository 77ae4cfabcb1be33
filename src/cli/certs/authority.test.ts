// SPDX-License-Identifier: Apache-2.0
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { Authority, makeAuthority } from './authority.ts';

const FROM = Date.parse('2026-01-01T00:00:00Z');
const validity = { from: FROM, until: FROM + 86_400_000 };

describe('certificates', () => {
  const ca = makeAuthority('test CA', validity);
  const authority = new Authority(ca, validity);

  it('are signed by the CA, and have their keys, names and validity', () => {
    const root = new X509Certificate(ca.certPem);
    const server = authority.server(['pvescaler.pvescaler.svc', '10.0.0.5', '2001:db8::1', '::1']);
    const certificate = new X509Certificate(server.certPem);
    expect(certificate.verify(root.publicKey)).toBe(true);
    expect(certificate.checkIssued(root)).toBe(true);
    expect(certificate.checkPrivateKey(createPrivateKey(server.keyPem))).toBe(true);
    expect(certificate.checkHost('pvescaler.pvescaler.svc')).toBe('pvescaler.pvescaler.svc');
    expect(certificate.checkHost('elsewhere')).toBeUndefined();
    expect(certificate.checkIP('10.0.0.5')).toBe('10.0.0.5');
    expect(certificate.checkIP('2001:db8::1')).toBe('2001:db8::1');
    expect(certificate.checkIP('::1')).toBe('::1');
    expect(certificate.ca).toBe(false);
    expect(root.ca).toBe(true);
    expect(Date.parse(certificate.validFrom)).toBe(validity.from);
    expect(Date.parse(certificate.validTo)).toBe(validity.until);
    expect(certificate.keyUsage).toEqual(['1.3.6.1.5.5.7.3.1']);
    expect(new X509Certificate(authority.client('me').certPem).keyUsage).toEqual([
      '1.3.6.1.5.5.7.3.2',
    ]);
  });

  it('reach beyond 2049', () => {
    const late = makeAuthority('late', { from: FROM, until: Date.parse('2060-02-03T04:05:06Z') });
    expect(Date.parse(new X509Certificate(late.certPem).validTo)).toBe(
      Date.parse('2060-02-03T04:05:06Z'),
    );
  });

  it('are not made with a CA whose key is another one', () => {
    const other = makeAuthority('other', validity);
    expect(() => new Authority({ certPem: ca.certPem, keyPem: other.keyPem }, validity)).toThrow(
      'no CA',
    );
    expect(() => new Authority({ certPem: 'x', keyPem: 'y' }, validity)).toThrow('no CA');
  });
});
