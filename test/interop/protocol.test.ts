// SPDX-License-Identifier: Apache-2.0
// The gRPC protocol where an ordinary client hides it: deadlines enforced by the server, statuses, streams.
import { once } from 'node:events';
import { type ClientHttp2Stream, constants } from 'node:http2';
import { describe, expect, it } from 'vitest';
import {
  frameMessage,
  openCall,
  openSession,
  readStatus,
  rpcPath,
  waitForClose,
} from './http2-peer.ts';
import { type ServerFixture, withServer } from './test-server.ts';

const WATCH = '/grpc.health.v1.Health/Watch';
const REFLECTION = '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo';
/** In real time. Long enough that the first message arrives in time on a loaded machine. */
const STALL_MS = 1_000;

function field(number: number, text: string): Buffer {
  return Buffer.concat([Buffer.from([(number << 3) | 2, text.length]), Buffer.from(text)]);
}

const LIST_SERVICES = field(7, '*');
const FILE_OF_PROVIDER = field(4, 'clusterautoscaler.cloudprovider.v1.externalgrpc.CloudProvider');

function sessionOf({ server }: ServerFixture) {
  return openSession(`http://127.0.0.1:${server.port}`);
}

/** A message with one text field. */
function messageWithId(id: string): Buffer {
  const text = Buffer.from(id);
  return frameMessage(Buffer.concat([Buffer.from([0x0a, text.length]), text]));
}

async function firstResponse(call: ClientHttp2Stream): Promise<void> {
  await once(call, 'data');
}

describe('a deadline', () => {
  it(
    'is enforced by the server',
    withServer({}, async (fixture) => {
      const session = sessionOf(fixture);
      const slow = openCall(session, rpcPath('NodeGroups'), { 'grpc-timeout': '200m' });
      const ended = readStatus(slow);
      // The response to a later call proves that the headers have arrived.
      const other = openCall(session, rpcPath('NodeGroups'));
      other.end(frameMessage(Buffer.alloc(0)));
      expect((await readStatus(other)).code).toBe('0');
      await fixture.clock.advance(199);
      expect(slow.closed).toBe(false);
      await fixture.clock.advance(1);
      expect(await ended).toMatchObject({ code: '4', message: 'the deadline has passed' });
      session.close();
    }),
  );

  it(
    'is accepted in gRPC units only',
    withServer({}, async (fixture) => {
      const session = sessionOf(fixture);
      const codeWith = async (timeout: string) => {
        const call = openCall(session, rpcPath('NodeGroups'), { 'grpc-timeout': timeout });
        call.end(frameMessage(Buffer.alloc(0)));
        return (await readStatus(call)).code;
      };
      for (const good of ['1H', '60M', '99999999S', '5000m', '5000000u', '99999999n'])
        expect(await codeWith(good), good).toBe('0');
      for (const bad of ['', '5', 'S', '5s', '-5S', '123456789S', '5 S', '1e3S'])
        expect(await codeWith(bad), bad).toBe('3');
      session.close();
    }),
  );
});

describe('a response', () => {
  it(
    'percent-encodes non-ASCII text in its status message',
    withServer({}, async (fixture) => {
      const session = sessionOf(fixture);
      const id = 'Gruppe "ä" 100% 🤖; x';
      const call = openCall(session, rpcPath('NodeGroupTargetSize'));
      call.end(messageWithId(id));
      const { code, message, headers } = await readStatus(call);
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
    'to a request that is not gRPC is an HTTP status',
    withServer({}, async (fixture) => {
      const session = sessionOf(fixture);
      const others: readonly (readonly [Record<string, string>, number])[] = [
        [{ ':method': 'GET' }, 405],
        [{ 'content-type': 'application/json' }, 415],
      ];
      for (const [headers, status] of others) {
        const call = openCall(session, rpcPath('NodeGroups'), headers);
        call.end();
        expect((await readStatus(call)).headers[':status']).toBe(status);
      }
      session.close();
    }),
  );

  it(
    'to a call without a message is Unimplemented',
    withServer({}, async (fixture) => {
      const session = sessionOf(fixture);
      for (const path of [rpcPath('NodeGroups'), WATCH]) {
        const call = openCall(session, path);
        call.end();
        expect((await readStatus(call)).code, path).toBe('12');
      }
      session.close();
    }),
  );
});

describe('a stalled client', () => {
  it(
    'fails its call after the timeout while the server waits for its data',
    withServer({ isReady: false, serve: { stallTimeoutMs: STALL_MS } }, async (fixture) => {
      const session = sessionOf(fixture);
      const watching = openCall(session, WATCH);
      watching.end(frameMessage(Buffer.alloc(0)));
      await firstResponse(watching);
      // These calls stall later than the watch: when they fail, the watch has passed the timeout too.
      const silent = openCall(session, rpcPath('NodeGroups'));
      const open = openCall(session, REFLECTION);
      open.write(frameMessage(LIST_SERVICES));
      await firstResponse(open);
      for (const status of await Promise.all([readStatus(silent), readStatus(open)])) {
        expect(status).toMatchObject({ code: '4', message: 'no data received for 1 seconds' });
      }
      const next = once(watching, 'data');
      await fixture.reconcile();
      await fixture.clock.advance(1_000);
      expect([...((await next)[0] as Buffer)]).toEqual([0, 0, 0, 0, 2, 8, 1]);
      watching.close();
      session.close();
    }),
  );

  it(
    'has its stream reset when it does not read the responses',
    withServer({ serve: { stallTimeoutMs: STALL_MS } }, async (fixture) => {
      const session = openSession(`http://127.0.0.1:${fixture.server.port}`);
      const call = openCall(session, REFLECTION);
      call.on('error', () => undefined);
      call.pause();
      // Far more than the flow-control window of a stream.
      for (let index = 0; index < 60; index += 1) call.write(frameMessage(FILE_OF_PROVIDER));
      call.end();
      await waitForClose(call);
      expect(call.rstCode).toBe(constants.NGHTTP2_CANCEL);
      session.close();
    }),
  );
});

describe('a stream', () => {
  it(
    'sends health changes until the client cancels',
    withServer({ isReady: false }, async (fixture) => {
      const session = sessionOf(fixture);
      const call = openCall(session, WATCH);
      call.end(frameMessage(Buffer.alloc(0)));
      const [first] = await once(call, 'data');
      expect([...(first as Buffer)]).toEqual([0, 0, 0, 0, 2, 8, 2]);
      const second = once(call, 'data');
      await fixture.reconcile();
      await fixture.clock.advance(1_000);
      expect([...((await second)[0] as Buffer)]).toEqual([0, 0, 0, 0, 2, 8, 1]);
      call.close();
      await waitForClose(call);
      session.close();
    }),
  );

  it(
    'ends with OK when the server shuts down',
    withServer({}, async (fixture) => {
      const session = sessionOf(fixture);
      const call = openCall(session, WATCH);
      call.end(frameMessage(Buffer.alloc(0)));
      await firstResponse(call);
      const ended = readStatus(call);
      const closing = fixture.server.close();
      expect((await ended).code).toBe('0');
      session.close();
      await fixture.clock.advance(10_000);
      await closing;
    }),
  );
});
