// SPDX-License-Identifier: Apache-2.0
// Certificates with unusual names, each really signed by a CA, checked against an allow list.
import { generateKeyPairSync, X509Certificate } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type OddNames, oddCertificate } from '../testing/odd-certificates.ts';
import { isAllowed, readCertificateNames } from './allow-list.ts';

const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const ISSUER = {
  name: 'test CA',
  keyPem: String(privateKey.export({ type: 'pkcs8', format: 'pem' })),
};
const FROM = Date.parse('2026-01-01T00:00:00Z');

/** With the names as Node reports them to the listener. */
function isClientAllowed(names: OddNames, allow: readonly string[]): boolean {
  const { certPem } = oddCertificate(names, ISSUER, FROM);
  const certificate = new X509Certificate(certPem).toLegacyObject();
  return isAllowed(readCertificateNames(certificate), allow);
}

const V4 = Buffer.from([10, 0, 0, 7]);
const V6 = Buffer.from('20010db8000000000000000000000001', 'hex');
const ID = 'spiffe://cluster.example/ns/pvescaler/sa/cluster-autoscaler';

describe('the allow list accepts', () => {
  it.each<[string, OddNames, string]>([
    ['a common name', { common: ['cluster-autoscaler'] }, 'cluster-autoscaler'],
    ['one of several common names', { common: ['x', 'cluster-autoscaler'] }, 'cluster-autoscaler'],
    ['a DNS name', { common: ['x'], dns: ['y', 'ca.example'] }, 'ca.example'],
    ['a SPIFFE id without any common name', { uri: [ID] }, ID],
    ['a URI with a comma', { uri: ['urn://a,b'] }, 'urn://a,b'],
    ['an e-mail address', { email: ['ca@example.org'] }, 'ca@example.org'],
    ['an IPv4 address', { ip: [V4] }, '10.0.0.7'],
    ['an IPv6 address in another notation', { ip: [V6] }, '2001:DB8:0::1'],
    ['a name of Kubernetes’ own form', { common: ['system:node:a'] }, 'system:node:a'],
  ])('%s', (_what, names, entry) => {
    expect(isClientAllowed(names, [entry])).toBe(true);
    expect(isClientAllowed(names, [`${entry}x`, entry.slice(0, -1), entry.slice(1), ''])).toBe(
      false,
    );
  });
});

describe('the allow list refuses', () => {
  it.each<[string, OddNames, string]>([
    ['a URI in a common name', { common: [ID] }, ID],
    ['a URI in a DNS name', { dns: [ID] }, ID],
    ['a URI in an e-mail address', { email: [ID] }, ID],
    ['an address in a common name', { common: ['10.0.0.7'] }, '10.0.0.7'],
    ['an address in a DNS name', { dns: ['10.0.0.7'] }, '10.0.0.7'],
    ['an e-mail address in a common name', { common: ['a@b'] }, 'a@b'],
    ['an e-mail address in a URI', { uri: ['a@b'] }, 'a@b'],
    ['a name in a URI', { uri: ['ca'] }, 'ca'],
    ['a name in an e-mail address', { email: ['ca'] }, 'ca'],
    ['a name in a directory name', { directory: ['ca'] }, 'ca'],
    ['another field of the subject', { organization: 'ca' }, 'ca'],
    ['a common name within another field', { organization: 'x\nCN=ca' }, 'ca'],
    ['a prefix in a common name', { common: ['DNS:ca'] }, 'ca'],
    ['a list in a common name', { common: ['x, DNS:ca'] }, 'ca'],
    ['a list in a DNS name', { dns: ['x, DNS:ca'] }, 'ca'],
    ['a list in a URI', { uri: [`x, URI:${ID}`] }, ID],
    ['a list in an e-mail address', { email: ['x@y, DNS:ca'] }, 'ca'],
    ['a list in a directory name', { directory: ['x, DNS:ca'] }, 'ca'],
    ['a name before a NUL', { common: ['ca\0.evil'], dns: ['ca\0.evil'] }, 'ca'],
    ['a name after a line end', { dns: ['x\nDNS:ca'] }, 'ca'],
    ['a quoted name', { dns: ['"ca"'], common: ['"ca"'] }, 'ca'],
    ['a name with a space', { dns: [' ca', 'ca '], common: ['ca '] }, 'ca'],
    ['a name in another case', { dns: ['CA'], common: ['Ca'] }, 'ca'],
    ['a wildcard', { dns: ['*', '*.example'] }, 'ca.example'],
    ['an address of a wrong length', { ip: [Buffer.from([10, 0, 0])] }, '10.0.0.0'],
    [
      'an IPv4 address within an IPv6 one',
      { ip: [Buffer.concat([Buffer.alloc(10), Buffer.from([255, 255]), V4])] },
      '10.0.0.7',
    ],
    ['a certificate without names', {}, 'ca'],
    ['empty names', { common: [''], dns: [''], uri: [''], email: [''] }, 'ca'],
  ])('%s', (_what, names, entry) => {
    expect(isClientAllowed(names, [entry])).toBe(false);
  });

  it('every certificate without a field that equals the entry', () => {
    const odd = fc.string({
      unit: fc.constantFrom('c', 'a', ',', ' ', '"', '\\', '\0', ':', 'DNS:', 'URI:', '\n', 'ü'),
      maxLength: 8,
    });
    const names = fc.array(odd, { maxLength: 3 });
    fc.assert(
      fc.property(
        fc.record({ common: names, dns: names, uri: names, email: names, directory: names }),
        (fields) => {
          const isNamed = [...fields.common, ...fields.dns].includes('ca');
          expect(isClientAllowed(fields, ['ca'])).toBe(isNamed);
        },
      ),
      { numRuns: 200 },
    );
  });
});
