// SPDX-License-Identifier: Apache-2.0
// Who is let in over TLS, and what becomes of a connection when the authority of the clients changes.
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Authority, makeAuthority } from '../../src/cli/index.ts';
import { type Files, tlsOf, VALIDITY, withFiles } from '../interop/tls-files.ts';
import { VERSIONS } from './build.ts';
import type { Dial } from './go-client.ts';
import { targetOf, withGo } from './on-stage.ts';

const AUTOSCALER = 'cluster-autoscaler';

function dialOf(
  { caPem }: Files,
  target: string,
  pair?: { readonly certPem: string; readonly keyPem: string },
): Dial {
  return { target, ca: caPem, ...(pair && { cert: pair.certPem, key: pair.keyPem }) };
}

describe.each(VERSIONS)('grpc-go %s over TLS', (_name, version) => {
  it('is answered, one call after the other and many at once', () =>
    withFiles((files) =>
      withGo(version, tlsOf(files, [AUTOSCALER]), async (stage) => {
        const pair = files.authority.client(AUTOSCALER);
        const go = await stage.process.dial(dialOf(files, targetOf(stage), pair));
        expect((await go.call('NodeGroups', { count: 1_000 })).codes).toEqual({ OK: 1_000 });
        const { codes } = await go.call('NodeGroups', { parallel: 200, timeoutNs: 60e9 });
        expect(codes).toEqual({ OK: 200 });
        expect(await go.seen()).toMatchObject({ connections: 1 });
      })(),
    ));

  it('is refused in words when its name is not on the list', () =>
    withFiles((files) =>
      withGo(version, tlsOf(files, [AUTOSCALER]), async (stage) => {
        const pair = files.authority.client('somebody');
        const go = await stage.process.dial(dialOf(files, targetOf(stage), pair));
        const { codes, message } = await go.call('NodeGroups', { count: 3 });
        expect({ codes, message }).toEqual({
          codes: { PermissionDenied: 3 },
          message: 'client certificate of ["somebody","somebody"] is not on the list',
        });
      })(),
    ));

  it('gets no connection without a certificate, or with one of another authority', () =>
    withFiles((files) =>
      withGo(version, tlsOf(files, [AUTOSCALER]), async (stage) => {
        const others = new Authority(makeAuthority('other CA', VALIDITY), VALIDITY);
        for (const pair of [undefined, others.client(AUTOSCALER)]) {
          const go = await stage.process.dial(dialOf(files, targetOf(stage), pair));
          expect((await go.call('NodeGroups')).code).toBe('Unavailable');
        }
      })(),
    ));

  it('speaks to the expander without a certificate', () =>
    withFiles((files) =>
      withGo(version, tlsOf(files, [AUTOSCALER]), async (stage) => {
        const target = `127.0.0.1:${stage.face.expanderPort}`;
        const go = await stage.process.dial(dialOf(files, target));
        const { code } = await go.call('/grpcplugin.Expander/BestOptions');
        expect(code).toBe('OK');
      })(),
    ));

  it('goes on with its calls while the authority of the clients changes, over a new connection', () =>
    withFiles((files) =>
      withGo(version, tlsOf(files, [AUTOSCALER]), async (stage) => {
        const pair = files.authority.client(AUTOSCALER);
        const go = await stage.process.dial(dialOf(files, targetOf(stage), pair));
        await go.call('NodeGroups');
        const calls = go.begin('NodeGroups', { count: 400, parallel: 4 });
        let bundle = files.caPem;
        for (let change = 0; change < 5; change += 1) {
          bundle += makeAuthority(`CA ${change}`, VALIDITY).certPem;
          await writeFile(join(files.folder, 'ca.crt'), bundle);
          await stage.clock.advance(10_000);
          // Until it was read; calls go on meanwhile.
          expect((await go.call('NodeGroups', { count: 30 })).codes).toEqual({ OK: 30 });
        }
        const { codes, message } = await calls.outcome;
        expect({ codes, message }).toEqual({ codes: { OK: 1_600 }, message: '' });
        const { connections } = await go.seen();
        expect(connections).toBeGreaterThan(2);
      })(),
    ));
});
