// SPDX-License-Identifier: Apache-2.0
// Messages that would cost far more memory than their size, or that never arrive: each ends with a clear status before
// it is decoded.
import { constants } from 'node:http2';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { expectUnchanged } from './expectations.ts';
import {
  callUnary,
  frameMessage,
  openCall,
  openSession,
  readStatus,
  rpcPath,
  waitForClose,
} from './http2-peer.ts';
import { type ServerFixture, withServer } from './test-server.ts';
import { tlsOptions, withTlsFiles } from './tls-files.ts';

const MAX = 4 * 2 ** 20;

function parts(hex: string, bytes = MAX): Buffer {
  return Buffer.from(hex.repeat(Math.floor(bytes / (hex.length / 2))), 'hex');
}

/** One length-delimited field. */
function field(tag: number, content: Buffer): Buffer {
  const head = [tag];
  for (let rest = content.length; ; rest >>>= 7) {
    head.push(rest > 0x7f ? (rest & 0x7f) | 0x80 : rest);
    if (rest <= 0x7f) return Buffer.concat([Buffer.from(head), content]);
  }
}

function sessionOf({ server }: ServerFixture) {
  return openSession(`http://127.0.0.1:${server.port}`);
}

describe('millions of tiny fields in 4 MiB', () => {
  const pod = field(0x22, field(0x12, parts('12024200', MAX - 16)));
  const labels = field(0x0a, parts('1a030a0161', MAX - 8));
  it.each([
    { what: 'empty nodes', rpc: 'NodeGroupDeleteNodes', message: parts('0a00'), code: '8' },
    { what: 'labels of many', rpc: 'NodeGroupDeleteNodes', message: parts('0a021a00'), code: '8' },
    { what: 'labels of one node', rpc: 'NodeGroupForNode', message: labels, code: '8' },
    { what: 'the same node again', rpc: 'NodeGroupForNode', message: parts('0a00'), code: '8' },
    { what: 'the same id again', rpc: 'NodeGroupTargetSize', message: parts('0a00'), code: '8' },
    { what: 'deltas', rpc: 'NodeGroupIncreaseSize', message: parts('0801'), code: '8' },
    { what: 'unknown fields', rpc: 'NodeGroups', message: parts('0801'), code: '8' },
    { what: 'durations', rpc: 'NodeGroupGetOptions', message: parts('12021a00'), code: '8' },
    { what: 'groups', rpc: 'NodeGroups', message: parts('0b0c'), code: '3' },
    { what: 'groups in groups', rpc: 'NodeGroups', message: parts('0b'), code: '3' },
    { what: 'containers of a pod', rpc: 'PricingPodPrice', message: pod, code: '3' },
  ])('$what are refused', async ({ rpc, message, code }) =>
    withServer({}, async (fixture) => {
      const session = sessionOf(fixture);
      const status = await callUnary(session, rpcPath(rpc), message);
      expect(status).toMatchObject({
        code,
        message: expect.stringMatching(/more than|wire type/),
      });
      expect((await callUnary(session, rpcPath('NodeGroups'))).code).toBe('0');
      session.close();
      await expectUnchanged(fixture, 0);
    })(),
  );

  it('are refused on the expander port too', () =>
    withTlsFiles((files) =>
      withServer(tlsOptions(files, []), async ({ server }) => {
        const session = openSession(`https://127.0.0.1:${server.expanderPort}`, {
          ca: files.caPem,
        });
        const path = '/grpcplugin.Expander/BestOptions';
        for (const message of [
          parts('0a00'),
          parts('1a00'),
          parts('1200'),
          field(0x0a, parts('2a00', MAX - 8)),
          field(0x0a, parts('2200', MAX - 8)),
        ]) {
          expect((await callUnary(session, path, message)).code).toBe('8');
        }
        expect((await callUnary(session, path, parts('0a020a00', 10_000 * 4))).code).toBe('0');
        session.close();
      })(),
    ));
});

describe('messages in an unsupported form', () => {
  it(
    'refuses compressed messages and reports the accepted encoding',
    withServer({}, async (fixture) => {
      const session = sessionOf(fixture);
      const bomb = gzipSync(Buffer.alloc(2 ** 20));
      for (const encoding of ['gzip', 'br', 'deflate', 'x']) {
        const call = openCall(session, rpcPath('NodeGroups'), { 'grpc-encoding': encoding });
        call.end(frameMessage(bomb, 1));
        const status = await readStatus(call);
        expect(status).toMatchObject({
          code: '12',
          message: expect.stringContaining(encoding),
          headers: { 'grpc-accept-encoding': 'identity' },
        });
      }
      for (const flags of [1, 2, 255]) {
        const call = openCall(session, rpcPath('NodeGroups'));
        call.end(frameMessage(bomb, flags));
        expect((await readStatus(call)).code).toBe('13');
      }
      const plain = openCall(session, rpcPath('NodeGroups'), { 'grpc-encoding': 'identity' });
      plain.end(frameMessage(Buffer.alloc(0)));
      expect((await readStatus(plain)).code).toBe('0');
      session.close();
      await expectUnchanged(fixture, 0);
    }),
  );

  it(
    'ignores an invalid :authority header',
    withServer({}, async (fixture) => {
      const session = sessionOf(fixture);
      for (const authority of ['[', '[::1', 'a:b', '%']) {
        const call = openCall(session, rpcPath('NodeGroups'), { ':authority': authority });
        call.end(frameMessage(Buffer.alloc(0)));
        expect((await readStatus(call)).code, authority).toBe('0');
      }
      session.close();
      await expectUnchanged(fixture, 0);
    }),
  );

  it(
    'refuses two messages, or a truncated one, in a unary call',
    withServer({}, async (fixture) => {
      const session = sessionOf(fixture);
      const two = openCall(session, rpcPath('NodeGroups'));
      two.end(Buffer.concat([frameMessage(Buffer.alloc(0)), frameMessage(Buffer.alloc(0))]));
      expect((await readStatus(two)).code).toBe('12');
      for (const half of [Buffer.alloc(3), frameMessage(Buffer.alloc(9)).subarray(0, 8)]) {
        const call = openCall(session, rpcPath('NodeGroups'));
        call.end(half);
        expect((await readStatus(call)).code).toBe('3');
      }
      session.close();
      await expectUnchanged(fixture, 0);
    }),
  );
});

describe('messages that arrive incomplete, late or oversized', () => {
  it(
    'ends a stream with a status when a malformed message follows a valid one',
    withServer({}, async (fixture) => {
      const session = sessionOf(fixture);
      for (let attempt = 0; attempt < 20; attempt += 1) {
        const call = openCall(session, '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo');
        const status = readStatus(call);
        call.write(frameMessage(Buffer.from('3a00', 'hex')));
        await new Promise((resolve) => call.once('data', resolve));
        call.write(frameMessage(Buffer.from('0b', 'hex')));
        expect((await status).code).toBe('3');
      }
      session.close();
    }),
  );

  it(
    'keeps the connection usable after refusing a message of 100 MiB',
    withServer({}, async (fixture) => {
      const session = sessionOf(fixture);
      const huge = frameMessage(Buffer.alloc(100 * 2 ** 20));
      const cases = [
        [rpcPath('NodeGroupDeleteNodes'), {}, '8'],
        ['/no.such.Service/Call', {}, '12'],
        [rpcPath('NodeGroups'), { 'grpc-encoding': 'gzip' }, '12'],
        [rpcPath('NodeGroups'), { 'content-type': 'application/json' }, 'none'],
      ] as const;
      for (const [path, headers, code] of [...cases, ...cases]) {
        const call = openCall(session, path, headers);
        call.end(huge);
        expect((await readStatus(call)).code, path).toBe(code);
        expect((await callUnary(session, rpcPath('NodeGroups'))).code, path).toBe('0');
      }
      // The flow-control window of the connection is as large as before.
      const large = parts('0a020a00', 10_000 * 4);
      expect((await callUnary(session, rpcPath('NodeGroupDeleteNodes'), large)).code).toBe('5');
      session.close();
      await expectUnchanged(fixture, 0);
    }),
  );

  it(
    'serves later calls of a gRPC client after refusing its 100 MiB message',
    withServer({}, async ({ client }) => {
      for (let attempt = 0; attempt < 3; attempt += 1) {
        const huge = client.raw(rpcPath('NodeGroupDeleteNodes'), Buffer.alloc(100 * 2 ** 20));
        await expect(huge).rejects.toMatchObject({ code: 8 });
        await client.call('NodeGroups', {}, { deadlineMs: 5_000 });
      }
    }),
  );

  it(
    'fails a call whose message is not complete after 30 s',
    withServer({}, async (fixture) => {
      const session = sessionOf(fixture);
      const call = openCall(session, rpcPath('NodeGroups'));
      call.write(frameMessage(Buffer.alloc(1_000)).subarray(0, 500));
      const ends = readStatus(call);
      // The response to a later call proves that the first bytes have arrived.
      expect((await callUnary(session, rpcPath('NodeGroups'))).code).toBe('0');
      await fixture.clock.advance(29_000);
      expect((await callUnary(session, rpcPath('NodeGroups'))).code).toBe('0');
      expect(call.closed).toBe(false);
      await fixture.clock.advance(2_000);
      expect(await ends).toMatchObject({
        code: '4',
        message: expect.stringContaining('30 seconds'),
      });
      expect((await callUnary(session, rpcPath('NodeGroups'))).code).toBe('0');
      session.close();
    }),
  );

  it(
    'limits the memory for large messages over all calls and always accepts small ones',
    withServer({}, async (fixture) => {
      const session = sessionOf(fixture);
      const large = frameMessage(field(0x0a, Buffer.alloc(MAX - 8, 'x')));
      const held = Array.from({ length: 8 }, () =>
        openCall(session, rpcPath('NodeGroupTargetSize')),
      );
      for (const call of held) call.write(large.subarray(0, -1));
      const refused = openCall(session, rpcPath('NodeGroupTargetSize'));
      refused.write(large.subarray(0, -1));
      const first = await Promise.race([...held, refused].map(readStatus));
      expect(first).toMatchObject({ code: '8', message: expect.stringContaining('in progress') });
      expect((await callUnary(session, rpcPath('NodeGroups'))).code).toBe('0');
      for (const call of held) call.close(constants.NGHTTP2_CANCEL);
      await Promise.all(held.map(waitForClose));
      expect(
        (await callUnary(session, rpcPath('NodeGroupTargetSize'), large.subarray(5))).code,
      ).toBe('5');
      session.close();
    }),
  );
});
