// SPDX-License-Identifier: Apache-2.0
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { CertificateAuthority, createAuthority } from './authority.ts';

const FROM = Date.parse('2026-01-01T00:00:00Z');
const validity = { notBefore: FROM, notAfter: FROM + 86_400_000 };

describe('CertificateAuthority', () => {
  const ca = createAuthority('test CA', validity);
  const authority = new CertificateAuthority(ca, validity);

  it('issues certificates with the given names, purpose and validity, signed by the CA', () => {
    const root = new X509Certificate(ca.certPem);
    const server = authority.issueServer([
      'pvescaler.pvescaler.svc',
      '10.0.0.5',
      '2001:db8::1',
      '::1',
      '::ffff:10.0.0.6',
    ]);
    const certificate = new X509Certificate(server.certPem);
    expect(certificate.verify(root.publicKey)).toBe(true);
    expect(certificate.checkIssued(root)).toBe(true);
    expect(certificate.checkPrivateKey(createPrivateKey(server.keyPem))).toBe(true);
    expect(certificate.checkHost('pvescaler.pvescaler.svc')).toBe('pvescaler.pvescaler.svc');
    expect(certificate.checkHost('elsewhere')).toBeUndefined();
    expect(certificate.checkIP('10.0.0.5')).toBe('10.0.0.5');
    expect(certificate.checkIP('2001:db8::1')).toBe('2001:db8::1');
    expect(certificate.checkIP('::1')).toBe('::1');
    expect(certificate.checkIP('::ffff:10.0.0.6')).toBe('::ffff:10.0.0.6');
    expect(certificate.ca).toBe(false);
    expect(root.ca).toBe(true);
    expect(Date.parse(certificate.validFrom)).toBe(validity.notBefore);
    expect(Date.parse(certificate.validTo)).toBe(validity.notAfter);
    expect(certificate.keyUsage).toEqual(['1.3.6.1.5.5.7.3.1']);
    expect(new X509Certificate(authority.issueClient('me').certPem).keyUsage).toEqual([
      '1.3.6.1.5.5.7.3.2',
    ]);
  });

  it('issues certificates that are valid after 2049', () => {
    const late = createAuthority('late', {
      notBefore: FROM,
      notAfter: Date.parse('2060-02-03T04:05:06Z'),
    });
    expect(Date.parse(new X509Certificate(late.certPem).validTo)).toBe(
      Date.parse('2060-02-03T04:05:06Z'),
    );
  });

  it('rejects a CA certificate with another key, and text that is no certificate', () => {
    const other = createAuthority('other', validity);
    expect(
      () => new CertificateAuthority({ certPem: ca.certPem, keyPem: other.keyPem }, validity),
    ).toThrow('are not a CA');
    expect(() => new CertificateAuthority({ certPem: 'x', keyPem: 'y' }, validity)).toThrow(
      'are not a CA',
    );
  });
});
