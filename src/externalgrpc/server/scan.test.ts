// SPDX-License-Identifier: Apache-2.0
import {
  create,
  type DescMessage,
  type DescMethod,
  fromBinary,
  type MessageInitShape,
  toBinary,
} from '@bufbuild/protobuf';
import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import { FileDescriptorSetSchema, ListValueSchema } from '@bufbuild/protobuf/wkt';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  CloudProvider,
  NodeGroupAutoscalingOptionsRequestSchema,
  NodeGroupDeleteNodesRequestSchema,
  NodeGroupForNodeRequestSchema,
  PricingNodePriceRequestSchema,
  PricingPodPriceRequestSchema,
} from '../gen/externalgrpc/cloud_provider_pb.js';
import { BestOptionsRequestSchema, Expander } from '../gen/grpcplugin/expander_pb.js';
import { Health } from '../gen/health/health_pb.js';
import { ServerReflection } from '../gen/reflection/reflection_pb.js';
import { buildLayout, type ScanLimits, scanMessage } from './scan.ts';

const METHODS: readonly DescMethod[] = [CloudProvider, Expander, Health, ServerReflection].flatMap(
  ({ methods }) => methods,
);

function scanAs(schema: DescMessage, bytes: Uint8Array, limits?: ScanLimits) {
  return scanMessage(bytes, buildLayout(schema), limits);
}

const text = fc.string({ unit: 'grapheme', maxLength: 12 });
const labels = fc.dictionary(text, text, { maxKeys: 6 });
const node = fc.record({ providerID: text, name: text, labels, annotations: labels });
const bytes = fc.uint8Array({ maxLength: 40 });
const time = fc.record({
  seconds: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
  nanos: fc.integer(),
});
const span = fc.record({ duration: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }) });

function valid(
  schema: DescMessage,
  init: fc.Arbitrary<object>,
): fc.Arbitrary<readonly [DescMessage, Uint8Array]> {
  return init.map((value) => {
    const message = create(schema, value as MessageInitShape<DescMessage>);
    return [schema, toBinary(schema, message)] as const;
  });
}

const MESSAGES = fc.oneof(
  valid(NodeGroupForNodeRequestSchema, fc.record({ node }, { requiredKeys: [] })),
  valid(
    NodeGroupDeleteNodesRequestSchema,
    fc.record({ id: text, nodes: fc.array(node, { maxLength: 5 }) }),
  ),
  valid(
    PricingNodePriceRequestSchema,
    fc.record({ node, startTime: time, endTime: time, startTimestamp: time }, { requiredKeys: [] }),
  ),
  valid(
    PricingPodPriceRequestSchema,
    fc.record({ pod: bytes, podBytes: bytes, endTimestamp: time }, { requiredKeys: [] }),
  ),
  valid(
    NodeGroupAutoscalingOptionsRequestSchema,
    fc.record({
      id: text,
      defaults: fc.record(
        {
          scaleDownUtilizationThreshold: fc.double(),
          scaleDownUnneededTime: span,
          zeroOrMaxNodeScaling: fc.boolean(),
          MaxNodeProvisionDuration: time,
        },
        { requiredKeys: [] },
      ),
    }),
  ),
  valid(
    BestOptionsRequestSchema,
    fc.record({
      options: fc.array(
        fc.record({
          nodeGroupId: text,
          nodeCount: fc.integer(),
          pod: fc.array(bytes, { maxLength: 4 }),
          podBytes: fc.array(bytes, { maxLength: 4 }),
        }),
        { maxLength: 4 },
      ),
      nodeMap: fc.dictionary(text, bytes, { maxKeys: 4 }),
      nodeBytesMap: fc.dictionary(text, bytes, { maxKeys: 4 }),
    }),
  ),
);

describe('the message scan', () => {
  it('accepts every valid message', () => {
    fc.assert(
      fc.property(MESSAGES, ([schema, message]) => {
        expect(scanAs(schema, message)).toBeUndefined();
      }),
      { numRuns: 500 },
    );
  });

  it('accepts nothing that the decoder refuses, except invalid UTF-8', () => {
    const mutated = MESSAGES.chain(([schema, message]) =>
      fc
        .array(fc.tuple(fc.nat(Math.max(0, message.length - 1)), fc.nat(255)), { maxLength: 3 })
        .map((changes) => {
          const broken = Uint8Array.from(message);
          for (const [at, byte] of changes) broken[at] = byte;
          return [schema, broken] as const;
        }),
    );
    const random = fc.tuple(
      fc.constantFrom(...METHODS.map(({ input }) => input)),
      fc.uint8Array({ maxLength: 60 }),
    );
    fc.assert(
      fc.property(fc.oneof(mutated, random), ([schema, garbage]) => {
        const refusal = scanAs(schema, garbage);
        if (refusal !== undefined) {
          expect(refusal).toEqual({
            kind: 'malformed',
            problem: expect.stringContaining('not a valid message'),
          });
          return;
        }
        try {
          fromBinary(schema, garbage);
        } catch (error) {
          expect(String(error)).toMatch(/utf-?8|encoded data was not valid/i);
        }
      }),
      { numRuns: 5_000 },
    );
  });

  it('reads each byte at most once', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...METHODS.map(({ input }) => input)),
        fc.oneof(
          fc.uint8Array({ maxLength: 2_000 }),
          fc
            .array(fc.constantFrom(0x0a, 0x00, 0x1a, 0x02, 0x12), { maxLength: 2_000 })
            .map((all) => Uint8Array.from(all)),
        ),
        (schema, garbage) => {
          let reads = 0;
          const counting = new Proxy(garbage, {
            get: (target, key) => {
              if (key === 'length') return target.length;
              reads += 1;
              return Reflect.get(target, key, target);
            },
          });
          scanAs(schema, counting);
          expect(reads).toBeLessThanOrEqual(garbage.length);
        },
      ),
    );
  });
});

describe('the limits of the message scan', () => {
  const limits: ScanLimits = { fields: 100, objects: 10, mapEntries: 5 };
  const fields = (count: number, write: (writer: BinaryWriter) => void) => {
    const writer = new BinaryWriter();
    for (let number = 0; number < count; number += 1) write(writer);
    return writer.finish();
  };
  const emptyNode = (writer: BinaryWriter) =>
    writer.tag(1, WireType.LengthDelimited).bytes(new Uint8Array());

  it('count fields on all levels, known and unknown', () => {
    const unknown = (count: number) =>
      fields(count, (writer) => writer.tag(99, WireType.Varint).int32(1));
    expect(scanAs(NodeGroupForNodeRequestSchema, unknown(100), limits)).toBeUndefined();
    expect(scanAs(NodeGroupForNodeRequestSchema, unknown(101), limits)).toEqual({
      kind: 'too-many-fields',
      problem: 'the message has more than 100 fields',
    });
    const inNode = fields(1, (writer) =>
      writer
        .tag(1, WireType.LengthDelimited)
        .bytes(fields(100, (inner) => inner.tag(2, WireType.LengthDelimited).string(''))),
    );
    expect(scanAs(NodeGroupForNodeRequestSchema, inNode, limits)?.kind).toBe('too-many-fields');
  });

  it('count submessages and byte strings', () => {
    expect(
      scanAs(NodeGroupDeleteNodesRequestSchema, fields(10, emptyNode), limits),
    ).toBeUndefined();
    expect(scanAs(NodeGroupDeleteNodesRequestSchema, fields(11, emptyNode), limits)?.problem).toBe(
      'the message has more than 10 submessages and byte strings',
    );
    const pods = fields(1, (writer) =>
      writer
        .tag(1, WireType.LengthDelimited)
        .bytes(
          fields(10, (inner) => inner.tag(5, WireType.LengthDelimited).bytes(new Uint8Array())),
        ),
    );
    expect(scanAs(BestOptionsRequestSchema, pods, limits)?.kind).toBe('too-many-fields');
  });

  it('count map entries', () => {
    const withEntries = (count: number) =>
      fields(1, (writer) =>
        writer
          .tag(1, WireType.LengthDelimited)
          .bytes(
            fields(count, (inner) =>
              inner.tag(3, WireType.LengthDelimited).bytes(new Uint8Array()),
            ),
          ),
      );
    expect(scanAs(NodeGroupForNodeRequestSchema, withEntries(5), limits)).toBeUndefined();
    expect(scanAs(NodeGroupForNodeRequestSchema, withEntries(6), limits)?.problem).toContain(
      'more than 5 map entries',
    );
  });

  it('count packed scalars and nesting levels', () => {
    const packed = new BinaryWriter()
      .tag(1, WireType.LengthDelimited)
      .bytes(
        fields(1, (writer) => writer.tag(10, WireType.LengthDelimited).bytes(new Uint8Array(101))),
      )
      .finish();
    expect(scanAs(FileDescriptorSetSchema, packed, limits)?.kind).toBe('too-many-fields');
    let nested = new Uint8Array();
    for (let depth = 0; depth < 20; depth += 1) {
      nested = fields(1, (writer) =>
        writer
          .tag(1, WireType.LengthDelimited)
          .bytes(fields(1, (inner) => inner.tag(6, WireType.LengthDelimited).bytes(nested))),
      );
    }
    expect(scanAs(ListValueSchema, nested)?.problem).toContain('nested deeper');
  });

  it.each([
    ['a group', '0b0c'],
    ['groups in groups', '0b0b0b0b'],
    ['the wrong wire type', '0801'],
    ['a length beyond the end of the message', '0aff01'],
    ['a submessage that ends before its field', '0a0212050a00'],
    ['a field without a number', '0001'],
    ['a truncated tag', 'ffffffffff'],
    ['an overlong varint', '98ffffffffffffffffffff01'],
    ['a third field in a map entry', '0a041a021a00'],
  ])('refuse %s', (_what, hex) => {
    expect(scanAs(NodeGroupForNodeRequestSchema, Buffer.from(hex, 'hex'))?.kind).toBe('malformed');
  });

  it('allow ten thousand nodes with a dozen labels and annotations', () => {
    const entries = (prefix: string) =>
      Object.fromEntries(Array.from({ length: 6 }, (_, number) => [`${prefix}${number}`, 'x']));
    const nodes = Array.from({ length: 10_000 }, (_, number) => ({
      name: `worker-${number}`,
      providerID: `proxmox://dc1/${20_000 + number}`,
      labels: entries('kubernetes.io/label'),
      annotations: entries('annotation.example/'),
    }));
    const message = create(NodeGroupDeleteNodesRequestSchema, { id: 'workers', nodes });
    const raw = toBinary(NodeGroupDeleteNodesRequestSchema, message);
    expect(raw.length).toBeLessThan(4 * 2 ** 20);
    expect(scanAs(NodeGroupDeleteNodesRequestSchema, raw)).toBeUndefined();
  });

  it('allow a thousand node groups and twenty thousand pods', () => {
    const pods = Array.from({ length: 20 }, () => new Uint8Array(150));
    const options = Array.from({ length: 1_000 }, (_, number) => ({
      nodeGroupId: `group-${number}`,
      nodeCount: 3,
      debug: 'x',
      podBytes: pods,
    }));
    const nodeBytesMap = Object.fromEntries(
      options.map(({ nodeGroupId }) => [nodeGroupId, new Uint8Array(500)]),
    );
    const message = create(BestOptionsRequestSchema, { options, nodeBytesMap });
    expect(
      scanAs(BestOptionsRequestSchema, toBinary(BestOptionsRequestSchema, message)),
    ).toBeUndefined();
  });
});
