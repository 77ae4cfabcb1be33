// SPDX-License-Identifier: Apache-2.0
// A look over the raw bytes of a message before anything is made of them. Two bytes on the wire can cost hundreds in
// memory: what holds far more parts than the autoscaler has to say is refused here, for the price of one pass without
// an allocation. It is stricter than a decoder must be: groups, wrong wire types and overlong lengths are refused, so
// that both read the same fields.
import { WireType } from '@bufbuild/protobuf/wire';
import type { FieldPlan, MessagePlan } from './message-plan.ts';

export interface ScanLimits {
  /** Fields of all levels together. */
  readonly parts: number;
  /** Those that become an object each: submessages and byte strings. */
  readonly objects: number;
  /** Of the maps of one submessage. */
  readonly entries: number;
}

/**
 * The most that the autoscaler could put into 4 MiB: ten thousand nodes to delete with a dozen labels and annotations
 * each are 400,000 parts; pods for the expander are at least two hundred bytes each, which makes 20,000 of them.
 */
const SCAN_LIMITS: ScanLimits = { parts: 400_000, objects: 25_000, entries: 5_000 };

export interface Refusal {
  readonly kind: 'malformed' | 'too-many-parts';
  readonly problem: string;
}

const DEPTH_MAX = 32;
const VARINT_MAX_BYTES = 10;
const UINT32_MAX_BYTES = 5;

/** Undefined: may be decoded. */
export function scan(
  bytes: Uint8Array,
  plan: MessagePlan,
  limits: ScanLimits = SCAN_LIMITS,
): Refusal | undefined {
  const pass = new Pass(bytes, plan, limits);
  try {
    pass.message(plan, bytes.length);
    return undefined;
  } catch (error) {
    if (error instanceof Stop) return error.refusal;
    throw error;
  }
}

/** Ends the pass from any depth; never leaves this file. */
class Stop extends Error {
  readonly refusal: Refusal;

  constructor(kind: Refusal['kind'], problem: string) {
    super(problem);
    this.refusal = { kind, problem };
  }
}

/** The message it is in is kept in fields of its own: nothing is allocated on the way. */
class Pass {
  readonly #bytes: Uint8Array;
  readonly #limits: ScanLimits;
  #plan: MessagePlan;
  #end = 0;
  #depth = 0;
  #at = 0;
  #parts = 0;
  #objects = 0;

  constructor(bytes: Uint8Array, plan: MessagePlan, limits: ScanLimits) {
    this.#bytes = bytes;
    this.#plan = plan;
    this.#limits = limits;
  }

  message(plan: MessagePlan, end: number): void {
    const [outerPlan, outerEnd] = [this.#plan, this.#end];
    this.#plan = plan;
    this.#end = end;
    this.#depth += 1;
    if (this.#depth > DEPTH_MAX) throw this.#malformed(`is nested deeper than ${DEPTH_MAX}`);
    this.#fields();
    this.#depth -= 1;
    this.#plan = outerPlan;
    this.#end = outerEnd;
  }

  #fields(): void {
    const { fields, isClosed, name } = this.#plan;
    let entries = 0;
    while (this.#at < this.#end) {
      this.#countPart();
      const tag = this.#uint32();
      const number = tag >>> 3;
      const field = fields.get(number);
      if (field !== undefined) this.#known(field, tag);
      else if (isClosed || number === 0) throw this.#malformed(`has a field ${number}`);
      else this.#skip(tag & 7);
      if (field?.isEntry !== true) continue;
      entries += 1;
      if (entries > this.#limits.entries) {
        throw tooMany(`more than ${this.#limits.entries} entries in the maps of one ${name}`);
      }
    }
  }

  #known(field: FieldPlan, tag: number): void {
    const wireType: WireType = tag & 7;
    if (field.isObject) this.#countObject();
    if (field.packed !== undefined && wireType === WireType.LengthDelimited) {
      return this.#packed(field.packed, this.#delimited());
    }
    if (wireType !== field.wireType) {
      throw this.#malformed(`has field ${tag >>> 3} with wire type ${wireType}`);
    }
    if (field.message === undefined) this.#skip(wireType);
    else this.message(field.message, this.#delimited());
  }

  #packed(wireType: WireType, end: number): void {
    while (this.#at < end) {
      this.#countPart();
      this.#skip(wireType);
    }
    if (this.#at > end) throw this.#malformed('ends in the middle of a field');
  }

  #skip(wireType: WireType): void {
    switch (wireType) {
      case WireType.Varint:
        return this.#varint();
      case WireType.Bit64:
        return this.#leap(8);
      case WireType.Bit32:
        return this.#leap(4);
      case WireType.LengthDelimited:
        this.#at = this.#delimited();
        return;
      default:
        throw this.#malformed(`has wire type ${wireType}`);
    }
  }

  /** Where it ends; the position is where it begins. */
  #delimited(): number {
    const length = this.#uint32();
    if (length > this.#end - this.#at) throw this.#malformed('ends in the middle of a field');
    return this.#at + length;
  }

  #leap(length: number): void {
    if (length > this.#end - this.#at) throw this.#malformed('ends in the middle of a field');
    this.#at += length;
  }

  #varint(): void {
    const last = Math.min(this.#end, this.#at + VARINT_MAX_BYTES);
    while (this.#at < last) {
      this.#at += 1;
      if ((this.#bytes[this.#at - 1] ?? 0) < 0x80) return;
    }
    throw this.#malformed('has a number without an end');
  }

  #uint32(): number {
    let value = 0;
    const last = Math.min(this.#end, this.#at + UINT32_MAX_BYTES);
    for (let shift = 0; this.#at < last; shift += 7) {
      const byte = this.#bytes[this.#at] ?? 0;
      this.#at += 1;
      if (shift === 28 && byte > 0x0f) break;
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value >>> 0;
    }
    throw this.#malformed('has a tag or a length without an end');
  }

  #countPart(): void {
    this.#parts += 1;
    if (this.#parts > this.#limits.parts) throw tooMany(`more than ${this.#limits.parts} fields`);
  }

  #countObject(): void {
    this.#objects += 1;
    if (this.#objects > this.#limits.objects) {
      throw tooMany(`more than ${this.#limits.objects} submessages and byte strings`);
    }
  }

  #malformed(problem: string): Stop {
    return new Stop('malformed', `no valid message: ${this.#plan.name} ${problem}`);
  }
}

function tooMany(problem: string): Stop {
  return new Stop('too-many-parts', `the message has ${problem}`);
}
