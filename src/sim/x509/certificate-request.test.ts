// SPDX-License-Identifier: Apache-2.0
import { createPublicKey, verify } from 'node:crypto';
import { AsnConvert } from '@peculiar/asn1-schema';
import { describe, expect, it } from 'vitest';
import { CertificationRequest, requestCertificate } from './certificate-request.ts';

describe('requestCertificate', () => {
  it('creates a PKCS #10 request that its key signed', () => {
    const { requestPem, keyPem } = requestCertificate({
      commonName: 'system:node:a',
      organizations: ['system:nodes'],
    });
    const base64 = requestPem.replace(/-----[A-Z ]+-----/g, '');
    const request = AsnConvert.parse(Buffer.from(base64, 'base64'), CertificationRequest);
    const info = Buffer.from(AsnConvert.serialize(request.info));
    const names = request.info.subject.map(([part]) => part?.value.utf8String);
    expect(names).toEqual(['system:nodes', 'system:node:a']);
    expect(request.info.version).toBe(0);
    // The empty set of attributes, which is mandatory.
    expect(info.subarray(-2)).toEqual(Buffer.from([0xa0, 0x00]));
    const key = createPublicKey(keyPem);
    expect(verify('SHA256', info, key, Buffer.from(request.signature))).toBe(true);
  });
});
