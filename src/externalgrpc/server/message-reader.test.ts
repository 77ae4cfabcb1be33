// SPDX-License-Identifier: Apache-2.0
import { create, toBinary } from '@bufbuild/protobuf';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { NodeGroupTargetSizeRequestSchema } from '../gen/externalgrpc/cloud_provider_pb.js';
import {
  MAX_MESSAGE_BYTES,
  MessageBudget,
  MessageReader,
  UNCOUNTED_BYTES,
} from './message-reader.ts';
import { buildLayout } from './scan.ts';

function frameRequest(id: string): Uint8Array {
  const schema = NodeGroupTargetSizeRequestSchema;
  const message = toBinary(schema, create(schema, { id }));
  const bytes = new Uint8Array(5 + message.length);
  new DataView(bytes.buffer).setUint32(1, message.length);
  bytes.set(message, 5);
  return bytes;
}

function* inChunks(bytes: Uint8Array, sizes: Iterable<number>): Generator<Uint8Array> {
  let at = 0;
  for (const size of sizes) {
    if (at >= bytes.length) return;
    yield bytes.subarray(at, at + size);
    at += size;
  }
  if (at < bytes.length) yield bytes.subarray(at);
}

function read(body: Iterable<Uint8Array>, budget = new MessageBudget(2 ** 26)) {
  const share = budget.openShare();
  const reader = new MessageReader({
    layout: buildLayout(NodeGroupTargetSizeRequestSchema),
    share,
  });
  const messages = Array.from(body, (chunk) =>
    reader.push(chunk).map((one) => Uint8Array.from(one)),
  );
  reader.end();
  return { messages: messages.flat(), share };
}

describe('the message reader', () => {
  it('reassembles messages from chunks of any size', () => {
    fc.assert(
      fc.property(
        fc.array(fc.string({ maxLength: 300 }), { maxLength: 5 }),
        fc.array(fc.integer({ min: 0, max: 90 }), { maxLength: 40 }),
        (ids, sizes) => {
          const all = ids.map(frameRequest);
          const { messages } = read(inChunks(Buffer.concat(all), sizes));
          expect(messages).toEqual(all.map((one) => one.subarray(5)));
        },
      ),
    );
  });

  it('accepts messages up to 4 MiB', () => {
    const largest = frameRequest('x'.repeat(MAX_MESSAGE_BYTES - 5));
    expect(largest).toHaveLength(5 + MAX_MESSAGE_BYTES);
    const { messages } = read(inChunks(largest, Array<number>(300).fill(16_384)));
    expect(messages).toEqual([largest.subarray(5)]);
    const larger = frameRequest('x'.repeat(MAX_MESSAGE_BYTES - 4));
    expect(() => read(inChunks(larger, [5]))).toThrow('more than 4194304');
  });

  it('refuses a message in too many chunks', () => {
    const bytes = frameRequest('x'.repeat(20_000));
    const ones = Array<number>(bytes.length).fill(1);
    expect(() => read(inChunks(bytes, ones))).toThrow('more than 16384 chunks');
  });

  it('counts received bytes of large messages against the budget until they are released', () => {
    const budget = new MessageBudget(UNCOUNTED_BYTES);
    const large = frameRequest('x'.repeat(UNCOUNTED_BYTES + 1_000));
    expect(() => read(inChunks(large.subarray(0, 100), [100]), budget)).toThrow('is truncated');
    const first = read(inChunks(large, [100, 1_000]), budget);
    const larger = frameRequest('x'.repeat(2 * UNCOUNTED_BYTES));
    expect(() => read(inChunks(larger, [100]), budget)).toThrow('other calls are in progress');
    expect(read(inChunks(frameRequest('small'), []), budget)).toBeDefined();
    first.share.release();
    expect(() => read(inChunks(larger.subarray(0, 1), []), budget)).toThrow('is truncated');
    expect(read(inChunks(large, []), budget)).toBeDefined();
  });
});
