// SPDX-License-Identifier: Apache-2.0
// What a hostile or broken client may try: each gets a clear status, nothing changes, the server lives.
import { writeFile } from 'node:fs/promises';
import { connect as connectHttp2, constants } from 'node:http2';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { connect as connectTls } from 'node:tls';
import { credentials } from '@grpc/grpc-js';
import { describe, expect, it } from 'vitest';
import { Authority, makeAuthority } from '../../src/cli/index.ts';
import { type OddNames, oddCertificate } from '../../src/externalgrpc/testing/odd-certificates.ts';
import { RpcClient } from './client.ts';
import { expectUnharmed, fakeNode, grow, ids, remove, target } from './expectations.ts';
import { onStage } from './stage.ts';
import { clientWith, tlsOf, VALIDITY, withFiles } from './tls-files.ts';

const METHOD =
  '/clusterautoscaler.cloudprovider.v1.externalgrpc.CloudProvider/NodeGroupIncreaseSize';

describe('hostile calls', () => {
  it(
    'unknown groups, deltas out of range and foreign nodes are refused with a status',
    onStage({}, async (stage) => {
      const { client } = stage;
      await grow(client, 2);
      await stage.rest();
      const codes = async (rpc: string, ...requests: readonly object[]) =>
        Promise.all(requests.map(async (request) => (await client.failure(rpc, request)).code));
      const long = 'x'.repeat(100_000);
      for (const rpc of [
        'NodeGroupTargetSize',
        'NodeGroupNodes',
        'NodeGroupTemplateNodeInfo',
        'NodeGroupGetOptions',
      ]) {
        expect(
          await codes(rpc, { id: '' }, { id: 'nobody' }, { id: '__proto__' }, { id: long }),
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
          { id: 'nobody', delta: -1 },
        ),
      ).toEqual([3, 3, 5]);
      await client.call('NodeGroupDecreaseTargetSize', { id, delta: -2_147_483_648 });
      expect(
        await codes(
          'NodeGroupDeleteNodes',
          { id, nodes: [{}] },
          { id, nodes: [{ name: long }] },
          { id: 'nobody', nodes: [] },
        ),
      ).toEqual([9, 9, 5]);
      expect((await client.failure('PricingNodePrice', {})).code).toBe(3);
      expect(
        (
          await client.failure('PricingPodPrice', {
            pod_bytes: Buffer.from('ff'.repeat(40), 'hex'),
          })
        ).code,
      ).toBe(3);
      // Parts of two bytes each: work must not grow with their square.
      const parts = Buffer.from('1200'.repeat(40_000), 'hex');
      expect((await client.failure('PricingPodPrice', { pod_bytes: parts })).code).toBe(3);
      await expectUnharmed(stage, 2);
    }),
  );

  it(
    'ten thousand nodes in one call: refused whole with one stranger among them, taken once if it is always the same',
    onStage({}, async (stage) => {
      const { client } = stage;
      await grow(client, 2);
      await stage.rest();
      const [first = '', second = ''] = await ids(client);
      const many = (last: string) => [
        ...Array.from({ length: 9_999 }, () => fakeNode(first)),
        fakeNode(last),
      ];
      expect(
        (await client.failure('NodeGroupDeleteNodes', { id: 'workers', nodes: many('aws:///x/y') }))
          .code,
      ).toBe(9);
      await expectUnharmed(stage, 2);
      await remove(client, many(second));
      expect(await target(client)).toBe(0);
      expect(
        (await stage.store.intents.list()).filter(({ value }) => value.kind === 'delete'),
      ).toHaveLength(1);
    }),
  );

  it(
    'garbage and a message of a hundred megabytes end with a status',
    onStage({}, async (stage) => {
      const rejected = async (path: string, bytes: Buffer) => {
        const client = stage.clientOf('c');
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
      await expectUnharmed(stage, 0);
    }),
  );

  it(
    'speaks neither JSON nor gRPC-Web',
    onStage({}, async (stage) => {
      const session = connectHttp2(`http://127.0.0.1:${stage.face.port}`);
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
      await expectUnharmed(stage, 0);
    }),
  );

  it(
    'a thousand connections, half of them silent or slow, keep nobody else waiting',
    onStage({}, async (stage) => {
      const sockets: Socket[] = [];
      for (let number = 0; number < 1_000; number += 1) {
        const socket = connect(stage.face.port, '127.0.0.1');
        socket.on('error', () => undefined);
        sockets.push(socket);
        await new Promise((resolve) => socket.once('connect', resolve));
        if (number % 2 === 0) socket.write('PRI * HTTP/2.0\r\n');
        if (number % 5 === 0) socket.write(Buffer.from('deadbeef'.repeat(20), 'hex'));
      }
      await stage.client.call('NodeGroups', {}, { deadlineMs: 5_000 });
      await expectUnharmed(stage, 0);
      for (const socket of sockets) socket.destroy();
    }),
  );
});

describe('the expander’s port, where nobody shows a certificate', () => {
  it('takes so many calls at once and no more', () =>
    withFiles((files) =>
      onStage(tlsOf(files, []), async ({ face }) => {
        const session = connectHttp2(`https://127.0.0.1:${face.expanderPort}`, {
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
          `127.0.0.1:${face.expanderPort}`,
          'expander-c.proto',
          credentials.createSsl(Buffer.from(files.caPem)),
        );
        expect((await client.call('BestOptions', { options: [] }))['options']).toEqual([]);
        client.close();
        session.close();
      })(),
    ));
});

describe('certificates', () => {
  it('let in whom the list names, by common name or DNS name, and nobody else', () =>
    withFiles((files) =>
      onStage(tlsOf(files, ['cluster-autoscaler']), async ({ face }) => {
        const { authority } = files;
        const good = clientWith(files, face.port, authority.client('cluster-autoscaler'));
        await good.call('NodeGroups');
        const wrong = clientWith(files, face.port, authority.client('somebody'));
        expect(await wrong.failure('NodeGroups')).toEqual({
          code: 7,
          details: expect.stringContaining('somebody'),
        });
        const none = clientWith(files, face.port);
        expect((await none.failure('NodeGroups')).code).toBe(14);
        const foreignCa = new Authority(makeAuthority('other', VALIDITY), VALIDITY);
        const foreign = clientWith(files, face.port, foreignCa.client('cluster-autoscaler'));
        expect((await foreign.failure('NodeGroups')).code).toBe(14);
        const plain = new RpcClient(`127.0.0.1:${face.port}`, 'c.proto');
        expect((await plain.failure('NodeGroups')).code).toBe(14);
        await good.call('NodeGroups');
        for (const client of [good, wrong, none, foreign, plain]) client.close();
      })(),
    ));

  it('a SPIFFE id opens the door, the same text as a common name does not', () => {
    const id = 'spiffe://cluster.example/ns/pvescaler/sa/cluster-autoscaler';
    return withFiles((files) =>
      onStage(tlsOf(files, [id]), async ({ face }) => {
        const issuer = { name: 'test CA', keyPem: files.caKeyPem };
        const as = (names: OddNames) =>
          clientWith(files, face.port, oddCertificate(names, issuer, VALIDITY.from));
        const [good, odd] = [as({ uri: [id] }), as({ common: [id], dns: [`x, URI:${id}`] })];
        await good.call('NodeGroups');
        expect(await odd.failure('NodeGroups')).toMatchObject({
          code: 7,
          details: expect.stringContaining('spiffe'),
        });
        for (const client of [good, odd]) client.close();
      })(),
    );
  });

  it('let in nobody by an empty list', () =>
    withFiles((files) =>
      onStage(tlsOf(files, []), async ({ face, warnings }) => {
        const client = clientWith(files, face.port, files.authority.client('cluster-autoscaler'));
        expect((await client.failure('NodeGroups')).code).toBe(7);
        expect(warnings).toContainEqual(expect.stringContaining('no client is let in'));
        client.close();
      })(),
    ));

  it('are read again while the server runs; a broken one changes nothing', () =>
    withFiles((files) =>
      onStage(tlsOf(files, ['cluster-autoscaler']), async ({ face, clock, warnings }) => {
        const pair = files.authority.client('cluster-autoscaler');
        const shown = () => {
          const { promise, resolve, reject } = Promise.withResolvers<string>();
          const socket = connectTls(
            {
              port: face.port,
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
        /** Files are read outside virtual time. */
        const settled = async (isDone: () => Promise<boolean> | boolean) => {
          for (let look = 0; look < 200 && !(await isDone()); look += 1)
            await clock.advance(10_000);
        };
        const open = clientWith(files, face.port, pair);
        await open.call('NodeGroups');
        expect(await shown()).toBe('first');
        await files.renewServer('second');
        await settled(async () => (await shown()) === 'second');
        expect(await shown()).toBe('second');
        await writeFile(join(files.folder, 'server.crt'), 'broken');
        await settled(() =>
          warnings.some((words) => words.includes('keeps the certificate it has')),
        );
        expect(warnings).toContainEqual(expect.stringContaining('keeps the certificate it has'));
        expect(await shown()).toBe('second');
        open.close();
      })(),
    ));

  it('of a CA that is no longer trusted end, also on connections that are open', () =>
    withFiles((files) =>
      onStage(tlsOf(files, ['cluster-autoscaler']), async ({ face, clock }) => {
        const client = clientWith(files, face.port, files.authority.client('cluster-autoscaler'));
        await client.call('NodeGroups');
        await writeFile(join(files.folder, 'ca.crt'), makeAuthority('next CA', VALIDITY).certPem);
        const code = () =>
          client.call('NodeGroups').then(
            () => 0,
            (error: { readonly code: number }) => error.code,
          );
        for (let look = 0; look < 200 && (await code()) === 0; look += 1)
          await clock.advance(10_000);
        expect(await code()).toBe(14);
        client.close();
      })(),
    ));

  it('are at least of TLS 1.2', () =>
    withFiles((files) =>
      onStage(tlsOf(files, ['cluster-autoscaler']), async ({ face }) => {
        const { promise, resolve } = Promise.withResolvers<string>();
        const socket = connectTls(
          {
            port: face.port,
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

  it('are not asked of clients of the expander, which prefers groups with room', () =>
    withFiles((files) =>
      onStage(tlsOf(files, []), async ({ face }) => {
        for (const file of ['expander-a.proto', 'expander-c.proto']) {
          const client = new RpcClient(
            `127.0.0.1:${face.expanderPort}`,
            file,
            credentials.createSsl(Buffer.from(files.caPem)),
          );
          const options = [
            { nodeGroupId: 'workers', nodeCount: 99, debug: 'too many' },
            { nodeGroupId: 'workers', nodeCount: 3, debug: 'fits' },
          ];
          const answer = await client.call('BestOptions', { options });
          expect(answer['options'].map((one: { debug: string }) => one.debug)).toEqual(['fits']);
          expect((await client.call('BestOptions', { options: [] }))['options']).toEqual([]);
          client.close();
        }
      })(),
    ));
});
