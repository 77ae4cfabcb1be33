// SPDX-License-Identifier: Apache-2.0
import { create, toBinary } from '@bufbuild/protobuf';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { VirtualClock } from '../../ports/fakes/virtual-clock.ts';
import { NodeGroupTargetSizeRequestSchema } from '../gen/externalgrpc/cloud_provider_pb.js';
import { planOf } from './message-plan.ts';
import { MessageRoom } from './message-room.ts';
import { MESSAGE_MAX_BYTES, SMALL_BYTES, wholeMessages } from './messages.ts';

function framed(id: string): Uint8Array {
  const schema = NodeGroupTargetSizeRequestSchema;
  const message = toBinary(schema, create(schema, { id }));
  const bytes = new Uint8Array(5 + message.length);
  new DataView(bytes.buffer).setUint32(1, message.length);
  bytes.set(message, 5);
  return bytes;
}

async function* inPieces(bytes: Uint8Array, sizes: Iterable<number>): AsyncGenerator<Uint8Array> {
  let at = 0;
  for (const size of sizes) {
    if (at >= bytes.length) return;
    yield bytes.subarray(at, at + size);
    at += size;
  }
  if (at < bytes.length) yield bytes.subarray(at);
}

async function read(body: AsyncIterable<Uint8Array>, room = new MessageRoom(2 ** 26)) {
  const share = room.share();
  const messages: Uint8Array[] = [];
  const plan = planOf(NodeGroupTargetSizeRequestSchema);
  for await (const message of wholeMessages(body, { plan, share, clock: new VirtualClock() }))
    messages.push(Uint8Array.from(message));
  return { messages, share };
}

describe('messages', () => {
  it('come out whole, whatever pieces they came in', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.string({ maxLength: 300 }), { maxLength: 5 }),
        fc.array(fc.integer({ min: 0, max: 90 }), { maxLength: 40 }),
        async (ids, sizes) => {
          const all = ids.map(framed);
          const { messages } = await read(inPieces(Buffer.concat(all), sizes));
          expect(messages).toEqual(all);
        },
      ),
    );
  });

  it('grow up to the largest that is taken', async () => {
    const largest = framed('x'.repeat(MESSAGE_MAX_BYTES - 5));
    expect(largest).toHaveLength(5 + MESSAGE_MAX_BYTES);
    const { messages } = await read(inPieces(largest, Array<number>(300).fill(16_384)));
    expect(messages).toEqual([largest]);
    const larger = framed('x'.repeat(MESSAGE_MAX_BYTES - 4));
    await expect(read(inPieces(larger, [5]))).rejects.toThrow('more than 4194304');
  });

  it('that come in very many pieces are refused', async () => {
    const bytes = framed('x'.repeat(20_000));
    const ones = Array<number>(bytes.length).fill(1);
    await expect(read(inPieces(bytes, ones))).rejects.toThrow('more than 16384 pieces');
  });

  it('share the room until it is given back; what is promised takes none', async () => {
    const room = new MessageRoom(SMALL_BYTES);
    const large = framed('x'.repeat(SMALL_BYTES + 1_000));
    const promised = read(inPieces(large.subarray(0, 100), [100]), room);
    await expect(promised).rejects.toThrow('has no end');
    const first = await read(inPieces(large, [100, 1_000]), room);
    const larger = framed('x'.repeat(2 * SMALL_BYTES));
    await expect(read(inPieces(larger, [100]), room)).rejects.toThrow('other calls are under way');
    await expect(read(inPieces(framed('small'), []), room)).resolves.toBeDefined();
    first.share.giveBack();
    await expect(read(inPieces(larger.subarray(0, 1), []), room)).rejects.toThrow('has no end');
    await expect(read(inPieces(large, []), room)).resolves.toBeDefined();
  });
});
