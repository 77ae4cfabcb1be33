// SPDX-License-Identifier: Apache-2.0
import { create, toBinary } from '@bufbuild/protobuf';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { NodeGroupTargetSizeRequestSchema } from '../gen/externalgrpc/cloud_provider_pb.js';
import { planOf } from './message-plan.ts';
import { MessageRoom } from './message-room.ts';
import { MESSAGE_MAX_BYTES, MessageReader, SMALL_BYTES } from './messages.ts';

function framed(id: string): Uint8Array {
  const schema = NodeGroupTargetSizeRequestSchema;
  const message = toBinary(schema, create(schema, { id }));
  const bytes = new Uint8Array(5 + message.length);
  new DataView(bytes.buffer).setUint32(1, message.length);
  bytes.set(message, 5);
  return bytes;
}

function* inPieces(bytes: Uint8Array, sizes: Iterable<number>): Generator<Uint8Array> {
  let at = 0;
  for (const size of sizes) {
    if (at >= bytes.length) return;
    yield bytes.subarray(at, at + size);
    at += size;
  }
  if (at < bytes.length) yield bytes.subarray(at);
}

function read(body: Iterable<Uint8Array>, room = new MessageRoom(2 ** 26)) {
  const share = room.share();
  const reader = new MessageReader({ plan: planOf(NodeGroupTargetSizeRequestSchema), share });
  const messages = Array.from(body, (piece) =>
    reader.take(piece).map((one) => Uint8Array.from(one)),
  );
  reader.end();
  return { messages: messages.flat(), share };
}

describe('messages', () => {
  it('come out whole, whatever pieces they came in', () => {
    fc.assert(
      fc.property(
        fc.array(fc.string({ maxLength: 300 }), { maxLength: 5 }),
        fc.array(fc.integer({ min: 0, max: 90 }), { maxLength: 40 }),
        (ids, sizes) => {
          const all = ids.map(framed);
          const { messages } = read(inPieces(Buffer.concat(all), sizes));
          expect(messages).toEqual(all.map((one) => one.subarray(5)));
        },
      ),
    );
  });

  it('grow up to the largest that is taken', () => {
    const largest = framed('x'.repeat(MESSAGE_MAX_BYTES - 5));
    expect(largest).toHaveLength(5 + MESSAGE_MAX_BYTES);
    const { messages } = read(inPieces(largest, Array<number>(300).fill(16_384)));
    expect(messages).toEqual([largest.subarray(5)]);
    const larger = framed('x'.repeat(MESSAGE_MAX_BYTES - 4));
    expect(() => read(inPieces(larger, [5]))).toThrow('more than 4194304');
  });

  it('that come in very many pieces are refused', () => {
    const bytes = framed('x'.repeat(20_000));
    const ones = Array<number>(bytes.length).fill(1);
    expect(() => read(inPieces(bytes, ones))).toThrow('more than 16384 pieces');
  });

  it('share the room until it is given back; what is promised takes none', () => {
    const room = new MessageRoom(SMALL_BYTES);
    const large = framed('x'.repeat(SMALL_BYTES + 1_000));
    expect(() => read(inPieces(large.subarray(0, 100), [100]), room)).toThrow('has no end');
    const first = read(inPieces(large, [100, 1_000]), room);
    const larger = framed('x'.repeat(2 * SMALL_BYTES));
    expect(() => read(inPieces(larger, [100]), room)).toThrow('other calls are in progress');
    expect(read(inPieces(framed('small'), []), room)).toBeDefined();
    first.share.giveBack();
    expect(() => read(inPieces(larger.subarray(0, 1), []), room)).toThrow('has no end');
    expect(read(inPieces(large, []), room)).toBeDefined();
  });
});
