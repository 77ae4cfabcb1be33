// SPDX-License-Identifier: Apache-2.0
// Connections without calls, and connections that flood the server with frames.
import { describe, expect, it } from 'vitest';
import { expectUnchanged } from './expectations.ts';
import {
  CALL_HEADERS,
  callUnary,
  FRAME,
  frameMessage,
  headerBlock,
  http2Frame,
  openCall,
  openSession,
  PREFACE,
  RawPeer,
  readStatus,
  rpcPath,
  waitForClose,
} from './http2-peer.ts';
import { type ServerFixture, withServer } from './test-server.ts';
import { tlsOptions, withTlsFiles } from './tls-files.ts';

const HEADERS_END = 0x4;
const ACKNOWLEDGED = 0x1;

function call(stream: number): Buffer {
  const payload = headerBlock(CALL_HEADERS);
  return http2Frame(FRAME.headers, { flags: HEADERS_END, stream, payload });
}

/** Advances the clock after the server has received everything sent so far. */
async function advance({ clock, client }: ServerFixture, ms: number): Promise<void> {
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
      Buffer.concat([PREFACE, http2Frame(FRAME.ping, { payload: Buffer.alloc(8) })]),
    ],
  ])('are closed after 30 s when the client has sent %s', async (_what, sent) =>
    withServer({}, async (fixture) => {
      const peer = await RawPeer.open(fixture.server.port);
      if (sent.length > 0) peer.send(sent);
      await advance(fixture, 25_000);
      expect(peer.isClosed).toBe(false);
      await advance(fixture, 10_000);
      await fixture.clock.advance(5_000);
      await peer.waitForClose();
      await expectUnchanged(fixture, 0);
    })(),
  );

  it('are closed under TLS too, as are those whose calls were all refused', () =>
    withTlsFiles((files) =>
      withServer(tlsOptions(files, ['cluster-autoscaler']), async ({ server, clock }) => {
        const as = (name: string) => {
          const { certPem: cert, keyPem: key } = files.authority.issueClient(name);
          return openSession(`https://127.0.0.1:${server.port}`, { ca: files.caPem, cert, key });
        };
        const [silent, refused, allowed] = [
          as('cluster-autoscaler'),
          as('x'),
          as('cluster-autoscaler'),
        ];
        await new Promise((resolve) => silent.once('remoteSettings', resolve));
        expect((await callUnary(refused, rpcPath('NodeGroups'))).code).toBe('7');
        expect((await callUnary(allowed, rpcPath('NodeGroups'))).code).toBe('0');
        const closed = [silent, refused].map(
          (one) => new Promise((resolve) => one.once('close', resolve)),
        );
        await clock.advance(40_000);
        await Promise.all(closed);
        expect((await callUnary(allowed, rpcPath('NodeGroups'))).code).toBe('0');
        allowed.close();
      })(),
    ));

  it(
    'stay open after a call until an hour without calls; a gRPC client reconnects by itself',
    withServer({}, async (fixture) => {
      const session = openSession(`http://127.0.0.1:${fixture.server.port}`);
      expect((await callUnary(session, rpcPath('NodeGroups'))).code).toBe('0');
      let receivedGoAway = false;
      session.on('goaway', (code) => {
        expect(code).toBe(0);
        receivedGoAway = true;
      });
      await fixture.clock.advance(3_590_000);
      expect((await callUnary(session, rpcPath('NodeGroups'))).code).toBe('0');
      await fixture.clock.advance(3_590_000);
      expect((await callUnary(session, rpcPath('NodeGroups'))).code).toBe('0');
      expect(receivedGoAway).toBe(false);
      await fixture.client.call('Refresh');
      const closed = new Promise((resolve) => session.once('close', resolve));
      await fixture.clock.advance(3_700_000);
      await closed;
      expect(receivedGoAway).toBe(true);
      await fixture.client.call('Refresh');
    }),
  );

  it(
    'stay open while a call is in progress',
    withServer({}, async (fixture) => {
      const session = openSession(`http://127.0.0.1:${fixture.server.port}`);
      const watch = openCall(session, '/grpc.health.v1.Health/Watch');
      watch.end(frameMessage(Buffer.alloc(0)));
      await new Promise((resolve) => watch.once('data', resolve));
      await fixture.clock.advance(3_700_000);
      expect((await callUnary(session, rpcPath('NodeGroups'))).code).toBe('0');
      expect(watch.closed).toBe(false);
      watch.close();
      await waitForClose(watch);
      session.close();
    }),
  );

  it(
    'are evicted when the connection limit is reached',
    withServer({}, async (fixture) => {
      await fixture.client.call('NodeGroups');
      const peers: RawPeer[] = [];
      for (let number = 0; number < 2_000; number += 1)
        peers.push(await RawPeer.open(fixture.server.port));
      const late = fixture.clientOf('c');
      await late.call('NodeGroups', {}, { deadlineMs: 5_000 });
      await peers[0]?.waitForClose();
      expect(peers.at(-1)?.isClosed).toBe(false);
      await fixture.client.call('NodeGroups');
      for (const peer of peers) peer.socket.destroy();
      await expectUnchanged(fixture, 0);
    }),
  );
});

describe('a flood of frames closes the connection and not the server', () => {
  const many = (count: number, make: (number: number) => Buffer) =>
    Array.from({ length: count }, (_, number) => make(number));
  const resets = many(5_000, (number) => {
    const stream = 2 * number + 1;
    return Buffer.concat([
      call(stream),
      http2Frame(FRAME.reset, { stream, payload: Buffer.from([0, 0, 0, 8]) }),
    ]);
  });
  const pieces = many(100, () =>
    http2Frame(FRAME.continuation, { stream: 1, payload: headerBlock({ a: 'b'.repeat(100) }) }),
  );
  const unended = http2Frame(FRAME.headers, { stream: 1, payload: headerBlock(CALL_HEADERS) });
  const large = many(120, (number) => headerBlock({ [`x-${number}`]: 'v'.repeat(120) }));

  it.each([
    ['calls that are opened and reset', resets],
    ['endless header fields', [unended, ...pieces]],
    [
      'frames of a stream that does not exist',
      many(5_000, () => http2Frame(FRAME.data, { stream: 99, payload: Buffer.alloc(1) })),
    ],
    [
      'too many settings',
      [
        http2Frame(FRAME.settings, {
          payload: Buffer.concat(many(200, () => Buffer.from([0, 9, 0, 0, 0, 1]))),
        }),
      ],
    ],
  ])('%s', async (_what, frames) =>
    withServer({}, async (fixture) => {
      const peer = await RawPeer.open(fixture.server.port);
      peer.send(PREFACE, ...frames);
      await peer.waitForClose();
      await fixture.client.call('NodeGroups', {}, { deadlineMs: 5_000 });
      await expectUnchanged(fixture, 0);
    })(),
  );

  it.each([
    ['settings', http2Frame(FRAME.settings, { payload: Buffer.from([0, 4, 0, 0, 255, 255]) })],
    ['pings', http2Frame(FRAME.ping, { payload: Buffer.alloc(8) })],
  ])('%s whose acknowledgements are not read', async (_what, one) =>
    withServer({}, async (fixture) => {
      const peer = await RawPeer.open(fixture.server.port);
      peer.socket.pause();
      peer.send(PREFACE);
      const flood = Buffer.concat(many(20_000, () => one));
      for (let batch = 0; batch < 40 && !peer.socket.destroyed; batch += 1) {
        await new Promise((resolve) => peer.socket.write(flood, resolve));
      }
      expect(peer.socket.destroyed).toBe(true);
      await fixture.client.call('NodeGroups', {}, { deadlineMs: 5_000 });
      await expectUnchanged(fixture, 0);
    })(),
  );

  it(
    'refuses oversized headers without closing other calls',
    withServer({}, async (fixture) => {
      const session = openSession(`http://127.0.0.1:${fixture.server.port}`);
      // The client respects the limits once it has received the settings.
      expect((await callUnary(session, rpcPath('NodeGroups'))).code).toBe('0');
      const bomb = openCall(session, rpcPath('NodeGroups'), { 'x-bomb': 'v'.repeat(30_000) });
      bomb.end(frameMessage(Buffer.alloc(0)));
      expect((await readStatus(bomb)).code).not.toBe('0');
      const peer = await RawPeer.open(fixture.server.port);
      const payload = Buffer.concat([headerBlock(CALL_HEADERS), ...large]);
      peer.send(
        PREFACE,
        http2Frame(FRAME.headers, { flags: HEADERS_END | ACKNOWLEDGED, stream: 1, payload }),
      );
      await fixture.client.call('NodeGroups', {}, { deadlineMs: 5_000 });
      await expectUnchanged(fixture, 0);
      peer.socket.destroy();
      session.destroy();
    }),
  );

  it('limits the memory for responses that clients do not read', () => {
    const labels = { tier: 'x'.repeat(2 ** 20) };
    return withServer({ group: { labels } }, async (fixture) => {
      const sessions = Array.from({ length: 4 }, () =>
        openSession(`http://127.0.0.1:${fixture.server.port}`, {
          settings: { initialWindowSize: 0 },
        }),
      );
      const workers = frameMessage(Buffer.from('0a07776f726b657273', 'hex'));
      const requestTemplate = (session: (typeof sessions)[number]) => {
        const call = openCall(session, rpcPath('NodeGroupTemplateNodeInfo'));
        call.end(workers);
        return call;
      };
      const stalled: ReturnType<typeof requestTemplate>[] = [];
      // Each connection has its own limit; together they reach the limit of the listener.
      for (let number = 0; number < 36; number += 1) {
        const call = requestTemplate(sessions[number % 4] as never);
        stalled.push(call);
        await new Promise((resolve) => call.once('response', resolve));
      }
      const refused = openSession(`http://127.0.0.1:${fixture.server.port}`);
      expect(await readStatus(requestTemplate(refused))).toMatchObject({
        code: '8',
        message: expect.stringContaining('not read yet'),
      });
      for (const call of stalled) call.close();
      await Promise.all(stalled.map(waitForClose));
      expect((await readStatus(requestTemplate(refused))).code).toBe('0');
      for (const session of [...sessions, refused]) session.destroy();
      await expectUnchanged(fixture, 0);
    })();
  });
});
