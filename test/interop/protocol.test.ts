// SPDX-License-Identifier: Apache-2.0
// gRPC's protocol, as far as an ordinary client does not show it: deadlines that the server keeps, statuses, streams.
import { once } from 'node:events';
import { type ClientHttp2Stream, constants } from 'node:http2';
import { describe, expect, it } from 'vitest';
import { begin, closeOf, framed, openSession, rpcPath, statusOf } from './http2-peer.ts';
import { onStage, type Stage } from './stage.ts';

const WATCH = '/grpc.health.v1.Health/Watch';
const REFLECTION = '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo';

function field(number: number, text: string): Buffer {
  return Buffer.concat([Buffer.from([(number << 3) | 2, text.length]), Buffer.from(text)]);
}

const LIST_SERVICES = field(7, '*');
const FILE_OF_PROVIDER = field(4, 'clusterautoscaler.cloudprovider.v1.externalgrpc.CloudProvider');

function sessionOf({ face }: Stage) {
  return openSession(`http://127.0.0.1:${face.port}`);
}

/** One field of text. */
function named(id: string): Buffer {
  const text = Buffer.from(id);
  return framed(Buffer.concat([Buffer.from([0x0a, text.length]), text]));
}

async function answered(call: ClientHttp2Stream): Promise<void> {
  await once(call, 'data');
}

describe('a deadline', () => {
  it(
    'is kept by the server, whatever the client does',
    onStage({}, async (stage) => {
      const session = sessionOf(stage);
      const slow = begin(session, rpcPath('NodeGroups'), { 'grpc-timeout': '200m' });
      const ended = statusOf(slow);
      // Its headers are there when another call of the same connection has been answered.
      const other = begin(session, rpcPath('NodeGroups'));
      other.end(framed(Buffer.alloc(0)));
      expect((await statusOf(other)).code).toBe('0');
      await stage.clock.advance(199);
      expect(slow.closed).toBe(false);
      await stage.clock.advance(1);
      expect(await ended).toMatchObject({ code: '4', message: 'the deadline has passed' });
      session.close();
    }),
  );

  it(
    'is in gRPC’s units, or refused',
    onStage({}, async (stage) => {
      const session = sessionOf(stage);
      const codeWith = async (timeout: string) => {
        const call = begin(session, rpcPath('NodeGroups'), { 'grpc-timeout': timeout });
        call.end(framed(Buffer.alloc(0)));
        return (await statusOf(call)).code;
      };
      for (const good of ['1H', '60M', '99999999S', '5000m', '5000000u', '99999999n'])
        expect(await codeWith(good), good).toBe('0');
      for (const bad of ['', '5', 'S', '5s', '-5S', '123456789S', '5 S', '1e3S'])
        expect(await codeWith(bad), bad).toBe('3');
      session.close();
    }),
  );
});

describe('an answer', () => {
  it(
    'is said in any letters, in headers that hold plain ones only',
    onStage({}, async (stage) => {
      const session = sessionOf(stage);
      const id = 'Gruppe "ä" 100% 🤖; x';
      const call = begin(session, rpcPath('NodeGroupTargetSize'));
      call.end(named(id));
      const { code, message, headers } = await statusOf(call);
      expect({ code, message }).toEqual({
        code: '5',
        message: `no node group ${JSON.stringify(id)}`,
      });
      expect(headers['grpc-message']).toMatch(/^[\u0020-\u007e]*$/);
      expect(headers['content-type']).toBe('application/grpc');
      session.close();
    }),
  );

  it(
    'to something that is no call is one of HTTP',
    onStage({}, async (stage) => {
      const session = sessionOf(stage);
      const others: readonly (readonly [Record<string, string>, number])[] = [
        [{ ':method': 'GET' }, 405],
        [{ 'content-type': 'application/json' }, 415],
      ];
      for (const [headers, status] of others) {
        const call = begin(session, rpcPath('NodeGroups'), headers);
        call.end();
        expect((await statusOf(call)).headers[':status']).toBe(status);
      }
      session.close();
    }),
  );

  it(
    'to no request at all is a refusal',
    onStage({}, async (stage) => {
      const session = sessionOf(stage);
      for (const path of [rpcPath('NodeGroups'), WATCH]) {
        const call = begin(session, path);
        call.end();
        expect((await statusOf(call)).code, path).toBe('12');
      }
      session.close();
    }),
  );
});

describe('a client that is still', () => {
  it(
    'is waited for only where it has something to send',
    onStage({ isReady: false, serve: { stillMaxMs: 100 } }, async (stage) => {
      const session = sessionOf(stage);
      const watching = begin(session, WATCH);
      watching.end(framed(Buffer.alloc(0)));
      await answered(watching);
      // These begin to be still after the other one did, and are told so: its time is over too.
      const silent = begin(session, rpcPath('NodeGroups'));
      const asking = begin(session, REFLECTION);
      asking.write(framed(LIST_SERVICES));
      await answered(asking);
      for (const status of await Promise.all([statusOf(silent), statusOf(asking)])) {
        expect(status).toMatchObject({ code: '4', message: 'nothing came for 0.1 seconds' });
      }
      const next = once(watching, 'data');
      await stage.round();
      await stage.clock.advance(1_000);
      expect([...((await next)[0] as Buffer)]).toEqual([0, 0, 0, 0, 2, 8, 1]);
      watching.close();
      session.close();
    }),
  );

  it(
    'does not keep what it does not read',
    onStage({ serve: { stillMaxMs: 100 } }, async (stage) => {
      const session = openSession(`http://127.0.0.1:${stage.face.port}`);
      const call = begin(session, REFLECTION);
      call.on('error', () => undefined);
      call.pause();
      // Far more than the window of a stream.
      for (let index = 0; index < 60; index += 1) call.write(framed(FILE_OF_PROVIDER));
      call.end();
      await closeOf(call);
      expect(call.rstCode).toBe(constants.NGHTTP2_CANCEL);
      session.close();
    }),
  );
});

describe('a stream', () => {
  it(
    'tells of changes until the client goes away',
    onStage({ isReady: false }, async (stage) => {
      const session = sessionOf(stage);
      const call = begin(session, WATCH);
      call.end(framed(Buffer.alloc(0)));
      const [first] = await once(call, 'data');
      expect([...(first as Buffer)]).toEqual([0, 0, 0, 0, 2, 8, 2]);
      const second = once(call, 'data');
      await stage.round();
      await stage.clock.advance(1_000);
      expect([...((await second)[0] as Buffer)]).toEqual([0, 0, 0, 0, 2, 8, 1]);
      call.close();
      await closeOf(call);
      session.close();
    }),
  );

  it(
    'ends well when the server does',
    onStage({}, async (stage) => {
      const session = sessionOf(stage);
      const call = begin(session, WATCH);
      call.end(framed(Buffer.alloc(0)));
      await answered(call);
      const ended = statusOf(call);
      const closing = stage.face.close();
      expect((await ended).code).toBe('0');
      session.close();
      await stage.clock.advance(10_000);
      await closing;
    }),
  );
});
