// SPDX-License-Identifier: Apache-2.0
// Messages that cost more than they weigh, or that do not come: each ends with a clear status before it is decoded.
import { constants } from 'node:http2';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { expectUnharmed } from './expectations.ts';
import { begin, closeOf, framed, openSession, rpcPath, statusOf, unary } from './http2-peer.ts';
import { onStage, type Stage } from './stage.ts';
import { tlsOf, withFiles } from './tls-files.ts';

const MAX = 4 * 2 ** 20;

function parts(hex: string, bytes = MAX): Buffer {
  return Buffer.from(hex.repeat(Math.floor(bytes / (hex.length / 2))), 'hex');
}

/** As one length-delimited field. */
function field(tag: number, content: Buffer): Buffer {
  const head = [tag];
  for (let rest = content.length; ; rest >>>= 7) {
    head.push(rest > 0x7f ? (rest & 0x7f) | 0x80 : rest);
    if (rest <= 0x7f) return Buffer.concat([Buffer.from(head), content]);
  }
}

function sessionOf({ face }: Stage) {
  return openSession(`http://127.0.0.1:${face.port}`);
}

describe('millions of parts in four megabytes', () => {
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
    onStage({}, async (stage) => {
      const session = sessionOf(stage);
      const status = await unary(session, rpcPath(rpc), message);
      expect(status).toMatchObject({
        code,
        message: expect.stringMatching(/more than|wire type|no end/),
      });
      expect((await unary(session, rpcPath('NodeGroups'))).code).toBe('0');
      session.close();
      await expectUnharmed(stage, 0);
    })(),
  );

  it('are refused on the expander’s port too', () =>
    withFiles((files) =>
      onStage(tlsOf(files, []), async ({ face }) => {
        const session = openSession(`https://127.0.0.1:${face.expanderPort}`, { ca: files.caPem });
        const path = '/grpcplugin.Expander/BestOptions';
        for (const message of [
          parts('0a00'),
          parts('1a00'),
          parts('1200'),
          field(0x0a, parts('2a00', MAX - 8)),
          field(0x0a, parts('2200', MAX - 8)),
        ]) {
          expect((await unary(session, path, message)).code).toBe('8');
        }
        expect((await unary(session, path, parts('0a020a00', 10_000 * 4))).code).toBe('0');
        session.close();
      })(),
    ));
});

describe('messages in a form that the autoscaler never uses', () => {
  it(
    'compressed ones are not read, and what is read is said',
    onStage({}, async (stage) => {
      const session = sessionOf(stage);
      const bomb = gzipSync(Buffer.alloc(2 ** 20));
      for (const encoding of ['gzip', 'br', 'deflate', 'x']) {
        const call = begin(session, rpcPath('NodeGroups'), { 'grpc-encoding': encoding });
        call.end(framed(bomb, 1));
        const status = await statusOf(call);
        expect(status).toMatchObject({
          code: '12',
          message: expect.stringContaining(encoding),
          headers: { 'grpc-accept-encoding': 'identity' },
        });
      }
      for (const flags of [1, 2, 255]) {
        const call = begin(session, rpcPath('NodeGroups'));
        call.end(framed(bomb, flags));
        expect((await statusOf(call)).code).toBe('13');
      }
      const plain = begin(session, rpcPath('NodeGroups'), { 'grpc-encoding': 'identity' });
      plain.end(framed(Buffer.alloc(0)));
      expect((await statusOf(plain)).code).toBe('0');
      session.close();
      await expectUnharmed(stage, 0);
    }),
  );

  it(
    'to a host that is none: answered, since nobody asks for its name',
    onStage({}, async (stage) => {
      const session = sessionOf(stage);
      for (const authority of ['[', '[::1', 'a:b', '%']) {
        const call = begin(session, rpcPath('NodeGroups'), { ':authority': authority });
        call.end(framed(Buffer.alloc(0)));
        expect((await statusOf(call)).code, authority).toBe('0');
      }
      session.close();
      await expectUnharmed(stage, 0);
    }),
  );

  it(
    'two in a call for one, or half a one, are refused',
    onStage({}, async (stage) => {
      const session = sessionOf(stage);
      const two = begin(session, rpcPath('NodeGroups'));
      two.end(Buffer.concat([framed(Buffer.alloc(0)), framed(Buffer.alloc(0))]));
      expect((await statusOf(two)).code).toBe('12');
      for (const half of [Buffer.alloc(3), framed(Buffer.alloc(9)).subarray(0, 8)]) {
        const call = begin(session, rpcPath('NodeGroups'));
        call.end(half);
        expect((await statusOf(call)).code).toBe('3');
      }
      session.close();
      await expectUnharmed(stage, 0);
    }),
  );
});

describe('messages that do not come as they should', () => {
  it(
    'a bad one after an answer ends the call with a status, though the client would go on',
    onStage({}, async (stage) => {
      const session = sessionOf(stage);
      for (let round = 0; round < 20; round += 1) {
        const call = begin(session, '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo');
        const status = statusOf(call);
        call.write(framed(Buffer.from('3a00', 'hex')));
        await new Promise((resolve) => call.once('data', resolve));
        call.write(framed(Buffer.from('0b', 'hex')));
        expect((await status).code).toBe('3');
      }
      session.close();
    }),
  );

  it(
    'a hundred megabytes leave the connection as it was, wherever they are refused',
    onStage({}, async (stage) => {
      const session = sessionOf(stage);
      const huge = framed(Buffer.alloc(100 * 2 ** 20));
      const cases = [
        [rpcPath('NodeGroupDeleteNodes'), {}, '8'],
        ['/no.such.Service/Call', {}, '12'],
        [rpcPath('NodeGroups'), { 'grpc-encoding': 'gzip' }, '12'],
        [rpcPath('NodeGroups'), { 'content-type': 'application/json' }, 'none'],
      ] as const;
      for (const [path, headers, code] of [...cases, ...cases]) {
        const call = begin(session, path, headers);
        call.end(huge);
        expect((await statusOf(call)).code, path).toBe(code);
        expect((await unary(session, rpcPath('NodeGroups'))).code, path).toBe('0');
      }
      // The window that all calls share is as wide as before.
      const large = parts('0a020a00', 10_000 * 4);
      expect((await unary(session, rpcPath('NodeGroupDeleteNodes'), large)).code).toBe('5');
      session.close();
      await expectUnharmed(stage, 0);
    }),
  );

  it(
    'nor do calls that a gRPC client makes after it',
    onStage({}, async ({ client }) => {
      for (let round = 0; round < 3; round += 1) {
        const huge = client.raw(rpcPath('NodeGroupDeleteNodes'), Buffer.alloc(100 * 2 ** 20));
        await expect(huge).rejects.toMatchObject({ code: 8 });
        await client.call('NodeGroups', {}, { deadlineMs: 5_000 });
      }
    }),
  );

  it(
    'one that is begun and never ended is given up after half a minute',
    onStage({}, async (stage) => {
      const session = sessionOf(stage);
      const call = begin(session, rpcPath('NodeGroups'));
      call.write(framed(Buffer.alloc(1_000)).subarray(0, 500));
      const ends = statusOf(call);
      // Its first bytes are there when an answer to what was sent after them is.
      expect((await unary(session, rpcPath('NodeGroups'))).code).toBe('0');
      await stage.clock.advance(29_000);
      expect((await unary(session, rpcPath('NodeGroups'))).code).toBe('0');
      expect(call.closed).toBe(false);
      await stage.clock.advance(2_000);
      expect(await ends).toMatchObject({
        code: '4',
        message: expect.stringContaining('30 seconds'),
      });
      expect((await unary(session, rpcPath('NodeGroups'))).code).toBe('0');
      session.close();
    }),
  );

  it(
    'large ones have so much room together and no more; small ones always have theirs',
    onStage({}, async (stage) => {
      const session = sessionOf(stage);
      const large = framed(field(0x0a, Buffer.alloc(MAX - 8, 'x')));
      const held = Array.from({ length: 8 }, () => begin(session, rpcPath('NodeGroupTargetSize')));
      for (const call of held) call.write(large.subarray(0, -1));
      const refused = begin(session, rpcPath('NodeGroupTargetSize'));
      refused.write(large.subarray(0, -1));
      const first = await Promise.race([...held, refused].map(statusOf));
      expect(first).toMatchObject({ code: '8', message: expect.stringContaining('under way') });
      expect((await unary(session, rpcPath('NodeGroups'))).code).toBe('0');
      for (const call of held) call.close(constants.NGHTTP2_CANCEL);
      await Promise.all(held.map(closeOf));
      expect((await unary(session, rpcPath('NodeGroupTargetSize'), large.subarray(5))).code).toBe(
        '5',
      );
      session.close();
    }),
  );
});
