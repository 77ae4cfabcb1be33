// SPDX-License-Identifier: Apache-2.0
// Whatever frames and header fields a peer makes up: its connection may end, the process does not. An error that nobody
// catches fails the test run by itself.
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { expectUnharmed } from './expectations.ts';
import { FRAME, frame, framed, headerBlock, PREFACE, RawPeer, rpcPath } from './http2-peer.ts';
import { onStage } from './stage.ts';

/** Mostly as it should be: what is wrong at once is never looked at. */
const some = (right: string, ...wrong: readonly string[]) =>
  fc.oneof({ weight: 5, arbitrary: fc.constant(right) }, fc.constantFrom(...wrong, undefined));

const headers = fc
  .record({
    ':method': some('POST', 'GET', 'CONNECT', 'PRI', ''),
    ':scheme': some('http', 'https', 'x', ''),
    ':authority': some('test', '[', '', 'a:99999', '::', '%', 'x@y:z', '\u0001'),
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
    'content-type': some('application/grpc', 'application/grpc+json', 'application/grpc;x', ''),
    'grpc-timeout': some('5S', '0n', '-1S', 'abc', '99999999999S', ''),
    'grpc-encoding': some('identity', 'gzip', ''),
    'grpc-accept-encoding': some('gzip', 'br', 'x', ''),
    'content-length': some('5', '0', '-1', 'x'),
    'x-bin': some('AAA', '!!', ''),
  })
  .map((all) => Object.entries(all).filter((one): one is [string, string] => one[1] !== undefined))
  .map((entries) => headerBlock(Object.fromEntries(entries)));

const bytes = fc.uint8Array({ maxLength: 40 }).map((all) => Buffer.from(all));
const body = fc.oneof(
  bytes.map((message) => framed(message)),
  fc.constant(framed(Buffer.alloc(0))),
  fc.tuple(bytes, fc.nat(3)).map(([message, flags]) => framed(message, flags)),
  bytes,
);

const call = fc
  .record({ payload: headers, body, isEnded: fc.boolean(), reset: fc.option(fc.nat(13)) })
  .map((parts) => (stream: number) => {
    const { payload, isEnded, reset } = parts;
    const last =
      reset === null
        ? []
        : [frame(FRAME.reset, { stream, payload: Buffer.from([0, 0, 0, reset]) })];
    return Buffer.concat([
      frame(FRAME.headers, { flags: 0x4, stream, payload }),
      frame(FRAME.data, { flags: isEnded ? 1 : 0, stream, payload: parts.body }),
      ...last,
    ]);
  });

const anything = fc
  .record({ type: fc.nat(12), flags: fc.nat(255), stream: fc.nat(20), payload: bytes })
  .map(
    ({ type, ...parts }) =>
      () =>
        frame(type, parts),
  );

const conversation = fc
  .array(fc.oneof({ weight: 5, arbitrary: call }, anything), { minLength: 1, maxLength: 12 })
  .map((parts) => Buffer.concat([PREFACE, ...parts.map((make, at) => make(2 * at + 1))]));

it(
  'random frames end a connection at most',
  onStage({}, async (stage) => {
    await fc.assert(
      fc.asyncProperty(conversation, fc.boolean(), async (words, isAbrupt) => {
        const peer = await RawPeer.open(stage.face.port);
        await new Promise<void>((resolve) => peer.socket.write(words, () => resolve()));
        if (isAbrupt) peer.socket.resetAndDestroy();
        else peer.socket.end();
        await peer.closed();
      }),
      { numRuns: 300 },
    );
    expect((await stage.client.call('NodeGroups'))['nodeGroups']).toHaveLength(1);
    await expectUnharmed(stage, 0);
  }),
);
