// SPDX-License-Identifier: Apache-2.0
// Connections that are opened for nothing, or used to keep the server busy with everything but calls.
import { describe, expect, it } from 'vitest';
import { expectUnharmed } from './expectations.ts';
import {
  begin,
  CALL_HEADERS,
  closeOf,
  FRAME,
  frame,
  framed,
  headerBlock,
  openSession,
  PREFACE,
  RawPeer,
  rpcPath,
  statusOf,
  unary,
} from './http2-peer.ts';
import { onStage, type Stage } from './stage.ts';
import { tlsOf, withFiles } from './tls-files.ts';

const HEADERS_END = 0x4;
const ACKNOWLEDGED = 0x1;

function call(stream: number): Buffer {
  const payload = headerBlock(CALL_HEADERS);
  return frame(FRAME.headers, { flags: HEADERS_END, stream, payload });
}

/** Time passes only when what was sent before has arrived. */
async function pass({ clock, client }: Stage, ms: number): Promise<void> {
  await client.call('NodeGroups');
  await clock.advance(ms);
  await client.call('NodeGroups');
}

describe('connections without a call', () => {
  it.each([
    ['nothing', Buffer.alloc(0)],
    ['half of the preface', PREFACE.subarray(0, 10)],
    ['the preface', PREFACE],
    [
      'settings and a ping',
      Buffer.concat([PREFACE, frame(FRAME.ping, { payload: Buffer.alloc(8) })]),
    ],
  ])('are closed half a minute after they said %s', async (_what, words) =>
    onStage({}, async (stage) => {
      const peer = await RawPeer.open(stage.face.port);
      if (words.length > 0) peer.send(words);
      await pass(stage, 25_000);
      expect(peer.isClosed).toBe(false);
      await pass(stage, 10_000);
      await stage.clock.advance(5_000);
      await peer.closed();
      await expectUnharmed(stage, 0);
    })(),
  );

  it('are closed under TLS too, and those whose calls are all refused', () =>
    withFiles((files) =>
      onStage(tlsOf(files, ['cluster-autoscaler']), async ({ face, clock }) => {
        const as = (name: string) => {
          const { certPem: cert, keyPem: key } = files.authority.client(name);
          return openSession(`https://127.0.0.1:${face.port}`, { ca: files.caPem, cert, key });
        };
        const [silent, stranger, good] = [
          as('cluster-autoscaler'),
          as('x'),
          as('cluster-autoscaler'),
        ];
        await new Promise((resolve) => silent.once('remoteSettings', resolve));
        expect((await unary(stranger, rpcPath('NodeGroups'))).code).toBe('7');
        expect((await unary(good, rpcPath('NodeGroups'))).code).toBe('0');
        const closed = [silent, stranger].map(
          (one) => new Promise((resolve) => one.once('close', resolve)),
        );
        await clock.advance(40_000);
        await Promise.all(closed);
        expect((await unary(good, rpcPath('NodeGroups'))).code).toBe('0');
        good.close();
      })(),
    ));

  it(
    'stay where calls have been made, until an hour without any; a gRPC client notices nothing',
    onStage({}, async (stage) => {
      const session = openSession(`http://127.0.0.1:${stage.face.port}`);
      expect((await unary(session, rpcPath('NodeGroups'))).code).toBe('0');
      let wasToldToGo = false;
      session.on('goaway', (code) => {
        expect(code).toBe(0);
        wasToldToGo = true;
      });
      await stage.clock.advance(3_590_000);
      expect((await unary(session, rpcPath('NodeGroups'))).code).toBe('0');
      await stage.clock.advance(3_590_000);
      expect((await unary(session, rpcPath('NodeGroups'))).code).toBe('0');
      expect(wasToldToGo).toBe(false);
      await stage.client.call('Refresh');
      const closed = new Promise((resolve) => session.once('close', resolve));
      await stage.clock.advance(3_700_000);
      await closed;
      expect(wasToldToGo).toBe(true);
      await stage.client.call('Refresh');
    }),
  );

  it(
    'stay while a call is under way',
    onStage({}, async (stage) => {
      const session = openSession(`http://127.0.0.1:${stage.face.port}`);
      const watch = begin(session, '/grpc.health.v1.Health/Watch');
      watch.end(framed(Buffer.alloc(0)));
      await new Promise((resolve) => watch.once('data', resolve));
      await stage.clock.advance(3_700_000);
      expect((await unary(session, rpcPath('NodeGroups'))).code).toBe('0');
      expect(watch.closed).toBe(false);
      watch.close();
      await closeOf(watch);
      session.close();
    }),
  );

  it(
    'give way to others when there are very many',
    onStage({}, async (stage) => {
      await stage.client.call('NodeGroups');
      const peers: RawPeer[] = [];
      for (let number = 0; number < 2_000; number += 1)
        peers.push(await RawPeer.open(stage.face.port));
      const late = stage.clientOf('c');
      await late.call('NodeGroups', {}, { deadlineMs: 5_000 });
      await peers[0]?.closed();
      expect(peers.at(-1)?.isClosed).toBe(false);
      await stage.client.call('NodeGroups');
      for (const peer of peers) peer.socket.destroy();
      await expectUnharmed(stage, 0);
    }),
  );
});

describe('floods of frames end the connection, not the server', () => {
  const many = (count: number, make: (number: number) => Buffer) =>
    Array.from({ length: count }, (_, number) => make(number));
  const resets = many(5_000, (number) => {
    const stream = 2 * number + 1;
    return Buffer.concat([
      call(stream),
      frame(FRAME.reset, { stream, payload: Buffer.from([0, 0, 0, 8]) }),
    ]);
  });
  const pieces = many(100, () =>
    frame(FRAME.continuation, { stream: 1, payload: headerBlock({ a: 'b'.repeat(100) }) }),
  );
  const unended = frame(FRAME.headers, { stream: 1, payload: headerBlock(CALL_HEADERS) });
  const large = many(120, (number) => headerBlock({ [`x-${number}`]: 'v'.repeat(120) }));

  it.each([
    ['calls that are begun and taken back', resets],
    ['header fields without an end', [unended, ...pieces]],
    [
      'frames of a stream that is none',
      many(5_000, () => frame(FRAME.data, { stream: 99, payload: Buffer.alloc(1) })),
    ],
    [
      'settings that are too many',
      [
        frame(FRAME.settings, {
          payload: Buffer.concat(many(200, () => Buffer.from([0, 9, 0, 0, 0, 1]))),
        }),
      ],
    ],
  ])('%s', async (_what, frames) =>
    onStage({}, async (stage) => {
      const peer = await RawPeer.open(stage.face.port);
      peer.send(PREFACE, ...frames);
      await peer.closed();
      await stage.client.call('NodeGroups', {}, { deadlineMs: 5_000 });
      await expectUnharmed(stage, 0);
    })(),
  );

  it.each([
    ['settings', frame(FRAME.settings, { payload: Buffer.from([0, 4, 0, 0, 255, 255]) })],
    ['pings', frame(FRAME.ping, { payload: Buffer.alloc(8) })],
  ])('%s whose answers are not read', async (_what, one) =>
    onStage({}, async (stage) => {
      const peer = await RawPeer.open(stage.face.port);
      peer.socket.pause();
      peer.send(PREFACE);
      const flood = Buffer.concat(many(20_000, () => one));
      for (let round = 0; round < 40 && !peer.socket.destroyed; round += 1) {
        await new Promise((resolve) => peer.socket.write(flood, resolve));
      }
      expect(peer.socket.destroyed).toBe(true);
      await stage.client.call('NodeGroups', {}, { deadlineMs: 5_000 });
      await expectUnharmed(stage, 0);
    })(),
  );

  it(
    'headers that are too large are refused, one call at a time',
    onStage({}, async (stage) => {
      const session = openSession(`http://127.0.0.1:${stage.face.port}`);
      // Limits hold from when the client has seen them.
      expect((await unary(session, rpcPath('NodeGroups'))).code).toBe('0');
      const bomb = begin(session, rpcPath('NodeGroups'), { 'x-bomb': 'v'.repeat(30_000) });
      bomb.end(framed(Buffer.alloc(0)));
      expect((await statusOf(bomb)).code).not.toBe('0');
      const peer = await RawPeer.open(stage.face.port);
      const payload = Buffer.concat([headerBlock(CALL_HEADERS), ...large]);
      peer.send(
        PREFACE,
        frame(FRAME.headers, { flags: HEADERS_END | ACKNOWLEDGED, stream: 1, payload }),
      );
      await stage.client.call('NodeGroups', {}, { deadlineMs: 5_000 });
      await expectUnharmed(stage, 0);
      peer.socket.destroy();
      session.destroy();
    }),
  );

  it('answers that nobody reads have so much room and no more', () => {
    const labels = { tier: 'x'.repeat(2 ** 20) };
    return onStage({ group: { labels } }, async (stage) => {
      const sessions = Array.from({ length: 4 }, () =>
        openSession(`http://127.0.0.1:${stage.face.port}`, { settings: { initialWindowSize: 0 } }),
      );
      const workers = framed(Buffer.from('0a07776f726b657273', 'hex'));
      const ask = (session: (typeof sessions)[number]) => {
        const call = begin(session, rpcPath('NodeGroupTemplateNodeInfo'));
        call.end(workers);
        return call;
      };
      const stalled: ReturnType<typeof ask>[] = [];
      // A connection has a bound of its own; together they reach the one for all.
      for (let number = 0; number < 36; number += 1) {
        const call = ask(sessions[number % 4] as never);
        stalled.push(call);
        await new Promise((resolve) => call.once('response', resolve));
      }
      const refused = openSession(`http://127.0.0.1:${stage.face.port}`);
      expect(await statusOf(ask(refused))).toMatchObject({
        code: '8',
        message: expect.stringContaining('not read yet'),
      });
      for (const call of stalled) call.close();
      await Promise.all(stalled.map(closeOf));
      expect((await statusOf(ask(refused))).code).toBe('0');
      for (const session of [...sessions, refused]) session.destroy();
      await expectUnharmed(stage, 0);
    })();
  });
});
