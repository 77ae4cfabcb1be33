// SPDX-License-Identifier: Apache-2.0
// Hostile or broken clients: each call gets a clear status, nothing changes, and the server keeps running.
import { writeFile } from 'node:fs/promises';
import { connect as connectHttp2, constants } from 'node:http2';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { connect as connectTls } from 'node:tls';
import { credentials } from '@grpc/grpc-js';
import { describe, expect, it } from 'vitest';
import { CertificateAuthority, createAuthority } from '../../src/certs/index.ts';
import { type OddNames, oddCertificate } from '../../src/externalgrpc/testing/odd-certificates.ts';
import { RpcClient } from './client.ts';
import {
  deleteNodes,
  expectUnchanged,
  fakeNode,
  increaseSize,
  listInstanceIds,
  targetSize,
} from './expectations.ts';
import { withServer } from './test-server.ts';
import { tlsClient, tlsOptions, VALIDITY, withTlsFiles } from './tls-files.ts';

const METHOD =
  '/clusterautoscaler.cloudprovider.v1.externalgrpc.CloudProvider/NodeGroupIncreaseSize';

describe('hostile calls', () => {
  it(
    'refuses unknown groups, deltas out of range and foreign nodes with a status',
    withServer({}, async (fixture) => {
      const { client } = fixture;
      await increaseSize(client, 2);
      await fixture.settle();
      const codes = async (rpc: string, ...requests: readonly object[]) =>
        Promise.all(requests.map(async (request) => (await client.expectError(rpc, request)).code));
      const long = 'x'.repeat(100_000);
      for (const rpc of [
        'NodeGroupTargetSize',
        'NodeGroupNodes',
        'NodeGroupTemplateNodeInfo',
        'NodeGroupGetOptions',
      ]) {
        expect(
          await codes(rpc, { id: '' }, { id: 'unknown' }, { id: '__proto__' }, { id: long }),
        ).toEqual([5, 5, 5, 5]);
      }
      const id = 'workers';
      expect(
        await codes(
          'NodeGroupIncreaseSize',
          { id, delta: 0 },
          { id, delta: -1 },
          { id, delta: 2_147_483_647 },
          { id: long, delta: 1 },
        ),
      ).toEqual([3, 3, 8, 5]);
      expect(
        await codes(
          'NodeGroupDecreaseTargetSize',
          { id, delta: 0 },
          { id, delta: 7 },
          { id: 'unknown', delta: -1 },
        ),
      ).toEqual([3, 3, 5]);
      await client.call('NodeGroupDecreaseTargetSize', { id, delta: -2_147_483_648 });
      expect(
        await codes(
          'NodeGroupDeleteNodes',
          { id, nodes: [{}] },
          { id, nodes: [{ name: long }] },
          { id: 'unknown', nodes: [] },
        ),
      ).toEqual([9, 9, 5]);
      expect((await client.expectError('PricingNodePrice', {})).code).toBe(3);
      expect(
        (
          await client.expectError('PricingPodPrice', {
            pod_bytes: Buffer.from('ff'.repeat(40), 'hex'),
          })
        ).code,
      ).toBe(3);
      // Fields of two bytes each: the work must not grow quadratically.
      const parts = Buffer.from('1200'.repeat(40_000), 'hex');
      expect((await client.expectError('PricingPodPrice', { pod_bytes: parts })).code).toBe(3);
      await expectUnchanged(fixture, 2);
    }),
  );

  it(
    'refuses ten thousand nodes with one foreign node among them, and deletes a repeated node once',
    withServer({}, async (fixture) => {
      const { client } = fixture;
      await increaseSize(client, 2);
      await fixture.settle();
      const [first = '', second = ''] = await listInstanceIds(client);
      const many = (last: string) => [
        ...Array.from({ length: 9_999 }, () => fakeNode(first)),
        fakeNode(last),
      ];
      expect(
        (
          await client.expectError('NodeGroupDeleteNodes', {
            id: 'workers',
            nodes: many('aws:///x/y'),
          })
        ).code,
      ).toBe(9);
      await expectUnchanged(fixture, 2);
      await deleteNodes(client, many(second));
      expect(await targetSize(client)).toBe(0);
      expect(
        (await fixture.store.intents.list()).filter(({ value }) => value.kind === 'delete'),
      ).toHaveLength(1);
    }),
  );

  it(
    'answers garbage and a message of 100 MiB with a status',
    withServer({}, async (fixture) => {
      const rejected = async (path: string, bytes: Buffer) => {
        const client = fixture.clientOf('c');
        const code = await client.raw(path, bytes).then(
          () => 0,
          (error: { readonly code: number }) => error.code,
        );
        client.close();
        return code;
      };
      expect(await rejected(METHOD, Buffer.from('ffffffffffffffffff01020304', 'hex'))).toBe(3);
      expect(await rejected(METHOD, Buffer.alloc(100 * 2 ** 20))).toBe(8);
      expect(await rejected('/no.such.Service/Call', Buffer.alloc(0))).toBe(12);
      await expectUnchanged(fixture, 0);
    }),
  );

  it(
    'refuses JSON and gRPC-Web',
    withServer({}, async (fixture) => {
      const session = connectHttp2(`http://127.0.0.1:${fixture.server.port}`);
      const statusOf = (contentType: string) => {
        const { promise, resolve, reject } = Promise.withResolvers<number>();
        const call = session.request({
          ':method': 'POST',
          ':path': METHOD,
          'content-type': contentType,
        });
        call.on('response', (headers) => resolve(Number(headers[constants.HTTP2_HEADER_STATUS])));
        call.on('error', reject);
        call.end('{}');
        return promise;
      };
      for (const type of [
        'application/json',
        'application/grpc-web',
        'application/grpc-web+proto',
        'application/connect+json',
        'application/grpc+json',
      ]) {
        expect(await statusOf(type), type).toBe(415);
      }
      session.close();
      await expectUnchanged(fixture, 0);
    }),
  );

  it(
    'serves other clients while a thousand connections are silent or slow',
    withServer({}, async (fixture) => {
      const sockets: Socket[] = [];
      for (let number = 0; number < 1_000; number += 1) {
        const socket = connect(fixture.server.port, '127.0.0.1');
        socket.on('error', () => undefined);
        sockets.push(socket);
        await new Promise((resolve) => socket.once('connect', resolve));
        if (number % 2 === 0) socket.write('PRI * HTTP/2.0\r\n');
        if (number % 5 === 0) socket.write(Buffer.from('deadbeef'.repeat(20), 'hex'));
      }
      await fixture.client.call('NodeGroups', {}, { deadlineMs: 5_000 });
      await expectUnchanged(fixture, 0);
      for (const socket of sockets) socket.destroy();
    }),
  );
});

describe('the expander port, without client certificates', () => {
  it('limits the number of concurrent calls', () =>
    withTlsFiles((files) =>
      withServer(tlsOptions(files, []), async ({ server }) => {
        const session = connectHttp2(`https://127.0.0.1:${server.expanderPort}`, {
          ca: files.caPem,
        });
        const begin = () =>
          session.request({
            ':method': 'POST',
            ':path': '/grpcplugin.Expander/BestOptions',
            'content-type': 'application/grpc',
          });
        const slow = Array.from({ length: 16 }, begin);
        for (const call of slow) call.on('error', () => undefined);
        const refused = begin();
        const { promise, resolve } = Promise.withResolvers<string>();
        refused.on('response', (headers) => resolve(String(headers['grpc-status'])));
        expect(await promise).toBe('8');
        for (const call of slow) call.close(constants.NGHTTP2_CANCEL);
        await Promise.all(slow.map((call) => new Promise((closed) => call.once('close', closed))));
        const client = new RpcClient(
          `127.0.0.1:${server.expanderPort}`,
          'expander-c.proto',
          credentials.createSsl(Buffer.from(files.caPem)),
        );
        expect((await client.call('BestOptions', { options: [] }))['options']).toEqual([]);
        client.close();
        session.close();
      })(),
    ));
});

describe('client certificates', () => {
  it('are accepted for allowed common names and DNS names only', () =>
    withTlsFiles((files) =>
      withServer(tlsOptions(files, ['cluster-autoscaler']), async ({ server }) => {
        const { authority } = files;
        const good = tlsClient(files, server.port, authority.issueClient('cluster-autoscaler'));
        await good.call('NodeGroups');
        const wrong = tlsClient(files, server.port, authority.issueClient('other-client'));
        expect(await wrong.expectError('NodeGroups')).toEqual({
          code: 7,
          details: expect.stringContaining('other-client'),
        });
        const none = tlsClient(files, server.port);
        expect((await none.expectError('NodeGroups')).code).toBe(14);
        const foreignCa = new CertificateAuthority(createAuthority('other', VALIDITY), VALIDITY);
        const foreign = tlsClient(files, server.port, foreignCa.issueClient('cluster-autoscaler'));
        expect((await foreign.expectError('NodeGroups')).code).toBe(14);
        const plain = new RpcClient(`127.0.0.1:${server.port}`, 'c.proto');
        expect((await plain.expectError('NodeGroups')).code).toBe(14);
        await good.call('NodeGroups');
        for (const client of [good, wrong, none, foreign, plain]) client.close();
      })(),
    ));

  it('with an allowed SPIFFE id as URI are accepted, with the same text as common name refused', () => {
    const id = 'spiffe://cluster.example/ns/pvescaler/sa/cluster-autoscaler';
    return withTlsFiles((files) =>
      withServer(tlsOptions(files, [id]), async ({ server }) => {
        const issuer = { name: 'test CA', keyPem: files.caKeyPem };
        const as = (names: OddNames) =>
          tlsClient(files, server.port, oddCertificate(names, issuer, VALIDITY.notBefore));
        const [good, forged] = [as({ uri: [id] }), as({ common: [id], dns: [`x, URI:${id}`] })];
        await good.call('NodeGroups');
        expect(await forged.expectError('NodeGroups')).toMatchObject({
          code: 7,
          details: expect.stringContaining('spiffe'),
        });
        for (const client of [good, forged]) client.close();
      })(),
    );
  });

  it('are all refused when the allow list is empty', () =>
    withTlsFiles((files) =>
      withServer(tlsOptions(files, []), async ({ server, warnings }) => {
        const client = tlsClient(
          files,
          server.port,
          files.authority.issueClient('cluster-autoscaler'),
        );
        expect((await client.expectError('NodeGroups')).code).toBe(7);
        expect(warnings).toContainEqual(expect.stringContaining('every client is refused'));
        client.close();
      })(),
    ));

  it('of the server are reloaded while it runs; an invalid file changes nothing', () =>
    withTlsFiles((files) =>
      withServer(tlsOptions(files, ['cluster-autoscaler']), async ({ server, clock, warnings }) => {
        const pair = files.authority.issueClient('cluster-autoscaler');
        const serverName = () => {
          const { promise, resolve, reject } = Promise.withResolvers<string>();
          const socket = connectTls(
            {
              port: server.port,
              host: '127.0.0.1',
              ca: files.caPem,
              cert: pair.certPem,
              key: pair.keyPem,
              ALPNProtocols: ['h2'],
            },
            () => {
              resolve(String(socket.getPeerCertificate().subject.CN));
              socket.destroy();
            },
          );
          socket.on('error', reject);
          return promise;
        };
        /** File reads do not follow the virtual clock. */
        const settled = async (isDone: () => Promise<boolean> | boolean) => {
          for (let attempt = 0; attempt < 200 && !(await isDone()); attempt += 1)
            await clock.advance(10_000);
        };
        const open = tlsClient(files, server.port, pair);
        await open.call('NodeGroups');
        expect(await serverName()).toBe('first');
        await files.renewServer('second');
        await settled(async () => (await serverName()) === 'second');
        expect(await serverName()).toBe('second');
        await writeFile(join(files.folder, 'server.crt'), 'broken');
        await settled(() =>
          warnings.some((warning) => warning.includes('keeps its current certificate')),
        );
        expect(warnings).toContainEqual(expect.stringContaining('keeps its current certificate'));
        expect(await serverName()).toBe('second');
        open.close();
      })(),
    ));

  it('of a CA that is no longer trusted are refused on open connections too', () =>
    withTlsFiles((files) =>
      withServer(tlsOptions(files, ['cluster-autoscaler']), async ({ server, clock }) => {
        const client = tlsClient(
          files,
          server.port,
          files.authority.issueClient('cluster-autoscaler'),
        );
        await client.call('NodeGroups');
        await writeFile(join(files.folder, 'ca.crt'), createAuthority('next CA', VALIDITY).certPem);
        const code = () =>
          client.call('NodeGroups').then(
            () => 0,
            (error: { readonly code: number }) => error.code,
          );
        for (let attempt = 0; attempt < 200 && (await code()) === 0; attempt += 1)
          await clock.advance(10_000);
        expect(await code()).toBe(14);
        client.close();
      })(),
    ));

  it('need at least TLS 1.2', () =>
    withTlsFiles((files) =>
      withServer(tlsOptions(files, ['cluster-autoscaler']), async ({ server }) => {
        const { promise, resolve } = Promise.withResolvers<string>();
        const socket = connectTls(
          {
            port: server.port,
            host: '127.0.0.1',
            rejectUnauthorized: false,
            minVersion: 'TLSv1',
            maxVersion: 'TLSv1.1',
            ciphers: 'DEFAULT@SECLEVEL=0',
          },
          () => resolve('connected'),
        );
        socket.on('error', (error) => resolve(error.message));
        expect(await promise).not.toBe('connected');
        socket.destroy();
      })(),
    ));

  it('are not required by the expander, which prefers groups with headroom', () =>
    withTlsFiles((files) =>
      withServer(tlsOptions(files, []), async ({ server }) => {
        for (const file of ['expander-a.proto', 'expander-c.proto']) {
          const client = new RpcClient(
            `127.0.0.1:${server.expanderPort}`,
            file,
            credentials.createSsl(Buffer.from(files.caPem)),
          );
          const options = [
            { nodeGroupId: 'workers', nodeCount: 99, debug: 'too many' },
            { nodeGroupId: 'workers', nodeCount: 3, debug: 'fits' },
          ];
          const response = await client.call('BestOptions', { options });
          expect(response['options'].map((one: { debug: string }) => one.debug)).toEqual(['fits']);
          expect((await client.call('BestOptions', { options: [] }))['options']).toEqual([]);
          client.close();
        }
      })(),
    ));
});
