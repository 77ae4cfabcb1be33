// SPDX-License-Identifier: Apache-2.0
// Client authorization over TLS, and connections while the client CA changes.
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { CertificateAuthority, createAuthority } from '../../src/certs/index.ts';
import { type TlsFiles, tlsOptions, VALIDITY, withTlsFiles } from '../interop/tls-files.ts';
import { VERSIONS } from './build.ts';
import type { Dial } from './go-client.ts';
import { serverAddress, withGoClient } from './with-go-client.ts';

const AUTOSCALER = 'cluster-autoscaler';

function dialOf(
  { caPem }: TlsFiles,
  target: string,
  pair?: { readonly certPem: string; readonly keyPem: string },
): Dial {
  return { target, ca: caPem, ...(pair && { cert: pair.certPem, key: pair.keyPem }) };
}

describe.each(VERSIONS)('grpc-go %s over TLS', (_name, version) => {
  it('makes sequential and concurrent calls', () =>
    withTlsFiles((files) =>
      withGoClient(version, tlsOptions(files, [AUTOSCALER]), async (fixture) => {
        const pair = files.authority.issueClient(AUTOSCALER);
        const go = await fixture.process.dial(dialOf(files, serverAddress(fixture), pair));
        expect((await go.call('NodeGroups', { count: 1_000 })).codes).toEqual({ OK: 1_000 });
        const { codes } = await go.call('NodeGroups', { parallel: 200, timeoutNs: 60e9 });
        expect(codes).toEqual({ OK: 200 });
        expect(await go.stats()).toMatchObject({ connections: 1 });
      })(),
    ));

  it('gets PermissionDenied with its names when they are not allowed', () =>
    withTlsFiles((files) =>
      withGoClient(version, tlsOptions(files, [AUTOSCALER]), async (fixture) => {
        const pair = files.authority.issueClient('other-client');
        const go = await fixture.process.dial(dialOf(files, serverAddress(fixture), pair));
        const { codes, message } = await go.call('NodeGroups', { count: 3 });
        expect({ codes, message }).toEqual({
          codes: { PermissionDenied: 3 },
          message:
            'the names ["other-client","other-client"] of the client certificate are not in grpc.tls.allow',
        });
      })(),
    ));

  it('cannot connect without a certificate or with one of another CA', () =>
    withTlsFiles((files) =>
      withGoClient(version, tlsOptions(files, [AUTOSCALER]), async (fixture) => {
        const others = new CertificateAuthority(createAuthority('other CA', VALIDITY), VALIDITY);
        for (const pair of [undefined, others.issueClient(AUTOSCALER)]) {
          const go = await fixture.process.dial(dialOf(files, serverAddress(fixture), pair));
          expect((await go.call('NodeGroups')).code).toBe('Unavailable');
        }
      })(),
    ));

  it('calls the expander without a certificate', () =>
    withTlsFiles((files) =>
      withGoClient(version, tlsOptions(files, [AUTOSCALER]), async (fixture) => {
        const target = `127.0.0.1:${fixture.server.expanderPort}`;
        const go = await fixture.process.dial(dialOf(files, target));
        const { code } = await go.call('/grpcplugin.Expander/BestOptions');
        expect(code).toBe('OK');
      })(),
    ));

  it('continues its calls on a new connection while the client CA changes', () =>
    withTlsFiles((files) =>
      withGoClient(version, tlsOptions(files, [AUTOSCALER]), async (fixture) => {
        const pair = files.authority.issueClient(AUTOSCALER);
        const go = await fixture.process.dial(dialOf(files, serverAddress(fixture), pair));
        await go.call('NodeGroups');
        const calls = go.begin('NodeGroups', { count: 400, parallel: 4 });
        let bundle = files.caPem;
        for (let change = 0; change < 5; change += 1) {
          bundle += createAuthority(`CA ${change}`, VALIDITY).certPem;
          await writeFile(join(files.folder, 'ca.crt'), bundle);
          await fixture.clock.advance(10_000);
          // Calls continue until the file is read.
          expect((await go.call('NodeGroups', { count: 30 })).codes).toEqual({ OK: 30 });
        }
        const { codes, message } = await calls.outcome;
        expect({ codes, message }).toEqual({ codes: { OK: 1_600 }, message: '' });
        const { connections } = await go.stats();
        expect(connections).toBeGreaterThan(2);
      })(),
    ));
});
