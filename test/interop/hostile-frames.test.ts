// SPDX-License-Identifier: Apache-2.0
// Random frames and header fields: the connection may end, the process must not. An uncaught error fails the test run.
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { expectUnchanged } from './expectations.ts';
import {
  FRAME,
  frameMessage,
  headerBlock,
  http2Frame,
  PREFACE,
  RawPeer,
  rpcPath,
} from './http2-peer.ts';
import { withServer } from './test-server.ts';

/** Mostly valid: a conversation that is invalid from the start tests nothing further. */
const mostly = (right: string, ...wrong: readonly string[]) =>
  fc.oneof({ weight: 5, arbitrary: fc.constant(right) }, fc.constantFrom(...wrong, undefined));

const headers = fc
  .record({
    ':method': mostly('POST', 'GET', 'CONNECT', 'PRI', ''),
    ':scheme': mostly('http', 'https', 'x', ''),
    ':authority': mostly('test', '[', '', 'a:99999', '::', '%', 'x@y:z', '\u0001'),
    ':path': fc.oneof(
      fc
        .constantFrom('NodeGroups', 'NodeGroupForNode', 'NodeGroupDeleteNodes', 'PricingPodPrice')
        .map(rpcPath),
      fc.constantFrom(
        '/grpc.health.v1.Health/Watch',
        '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo',
        '//x',
        '*',
        '/%00',
        '',
      ),
    ),
    'content-type': mostly('application/grpc', 'application/grpc+json', 'application/grpc;x', ''),
    'grpc-timeout': mostly('5S', '0n', '-1S', 'abc', '99999999999S', ''),
    'grpc-encoding': mostly('identity', 'gzip', ''),
    'grpc-accept-encoding': mostly('gzip', 'br', 'x', ''),
    'content-length': mostly('5', '0', '-1', 'x'),
    'x-bin': mostly('AAA', '!!', ''),
  })
  .map((all) => Object.entries(all).filter((one): one is [string, string] => one[1] !== undefined))
  .map((entries) => headerBlock(Object.fromEntries(entries)));

const bytes = fc.uint8Array({ maxLength: 40 }).map((all) => Buffer.from(all));
const body = fc.oneof(
  bytes.map((message) => frameMessage(message)),
  fc.constant(frameMessage(Buffer.alloc(0))),
  fc.tuple(bytes, fc.nat(3)).map(([message, flags]) => frameMessage(message, flags)),
  bytes,
);

const call = fc
  .record({ payload: headers, body, isEnded: fc.boolean(), reset: fc.option(fc.nat(13)) })
  .map((parts) => (stream: number) => {
    const { payload, isEnded, reset } = parts;
    const last =
      reset === null
        ? []
        : [http2Frame(FRAME.reset, { stream, payload: Buffer.from([0, 0, 0, reset]) })];
    return Buffer.concat([
      http2Frame(FRAME.headers, { flags: 0x4, stream, payload }),
      http2Frame(FRAME.data, { flags: isEnded ? 1 : 0, stream, payload: parts.body }),
      ...last,
    ]);
  });

const anything = fc
  .record({ type: fc.nat(12), flags: fc.nat(255), stream: fc.nat(20), payload: bytes })
  .map(
    ({ type, ...parts }) =>
      () =>
        http2Frame(type, parts),
  );

const conversation = fc
  .array(fc.oneof({ weight: 5, arbitrary: call }, anything), { minLength: 1, maxLength: 12 })
  .map((parts) => Buffer.concat([PREFACE, ...parts.map((make, at) => make(2 * at + 1))]));

it(
  'random frames close at most their own connection',
  withServer({}, async (fixture) => {
    await fc.assert(
      fc.asyncProperty(conversation, fc.boolean(), async (sent, isAbrupt) => {
        const peer = await RawPeer.open(fixture.server.port);
        await new Promise<void>((resolve) => peer.socket.write(sent, () => resolve()));
        if (isAbrupt) peer.socket.resetAndDestroy();
        else peer.socket.end();
        await peer.waitForClose();
      }),
      { numRuns: 300 },
    );
    expect((await fixture.client.call('NodeGroups'))['nodeGroups']).toHaveLength(1);
    await expectUnchanged(fixture, 0);
  }),
);
