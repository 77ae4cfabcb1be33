// SPDX-License-Identifier: Apache-2.0
// The body of a call, message by message: put together, looked over, and only then handed to the decoder. What is
// promised costs nothing: memory grows with what has come.
import type { MessagePlan } from './message-plan.ts';
import type { Share } from './message-room.ts';
import { scan } from './scan.ts';
import { GrpcError } from './status.ts';

export const MESSAGE_MAX_BYTES = 4 * 2 ** 20;

/** As this many are in memory for every call that is let in, they are not counted. */
export const SMALL_BYTES = 2 ** 16;

/** Frames of the autoscaler hold 16 KiB; each costs the same, however little is in it. */
const PIECES_MAX = 16_384;

const HEADER_BYTES = 5;

export interface MessageParts {
  readonly plan: MessagePlan;
  readonly share: Share;
}

/** Puts messages together from the pieces in which they come, each looked over before it is handed out. */
export class MessageReader {
  readonly #parts: MessageParts;
  #message: Incoming;

  constructor(parts: MessageParts) {
    this.#parts = parts;
    this.#message = new Incoming(parts);
  }

  /** Whether the last message has begun and not ended. */
  get isAmidst(): boolean {
    return this.#message.isBegun;
  }

  /** The messages that end in this piece, without their headers. */
  take(piece: Uint8Array): readonly Uint8Array[] {
    const whole: Uint8Array[] = [];
    for (let rest = piece; rest.length > 0; ) {
      rest = this.#message.take(rest);
      if (!this.#message.isWhole) continue;
      whole.push(this.#message.looked());
      this.#message = new Incoming(this.#parts);
    }
    return whole;
  }

  /** No more pieces come. */
  end(): void {
    if (this.isAmidst) throw new GrpcError('InvalidArgument', 'the message has no end');
  }
}

class Incoming {
  readonly #parts: MessageParts;
  readonly #header = new Uint8Array(HEADER_BYTES);
  #bytes = this.#header;
  #length = HEADER_BYTES;
  #filled = 0;
  #pieces = 0;

  constructor(parts: MessageParts) {
    this.#parts = parts;
  }

  get isBegun(): boolean {
    return this.#filled > 0;
  }

  get isWhole(): boolean {
    return this.#bytes !== this.#header && this.#filled === this.#length;
  }

  /** What is left of the piece. */
  take(piece: Uint8Array): Uint8Array {
    this.#pieces += 1;
    if (this.#pieces > PIECES_MAX) {
      throw exhausted(`the message comes in more than ${PIECES_MAX} pieces`);
    }
    const taken = piece.subarray(0, this.#length - this.#filled);
    this.#makeRoom(this.#filled + taken.length);
    this.#bytes.set(taken, this.#filled);
    this.#filled += taken.length;
    if (this.#bytes === this.#header && this.#filled === HEADER_BYTES) this.#open();
    return piece.subarray(taken.length);
  }

  /** The message, which may be decoded. */
  looked(): Uint8Array {
    const message = this.#bytes.subarray(HEADER_BYTES, this.#length);
    const refusal = scan(message, this.#parts.plan);
    if (refusal?.kind === 'malformed') {
      throw new GrpcError('InvalidArgument', refusal.problem);
    }
    if (refusal !== undefined) throw exhausted(refusal.problem);
    return message;
  }

  #open(): void {
    const [flags = 0] = this.#header;
    const length = new DataView(this.#header.buffer).getUint32(1);
    // The encoding was refused with the headers; a message that is packed all the same breaks the protocol.
    if (flags !== 0) {
      throw new GrpcError('Internal', 'the message is compressed without an encoding');
    }
    if (length > MESSAGE_MAX_BYTES) {
      throw exhausted(`the message has ${length} bytes, more than ${MESSAGE_MAX_BYTES}`);
    }
    this.#length = HEADER_BYTES + length;
    this.#bytes = new Uint8Array(Math.min(this.#length, SMALL_BYTES));
    this.#bytes.set(this.#header);
  }

  #makeRoom(needed: number): void {
    const has = this.#bytes.length;
    if (needed <= has) return;
    const size = Math.min(this.#length, Math.max(needed, 2 * has));
    if (!this.#parts.share.grow(size - has)) {
      throw exhausted('too many large messages of other calls are in progress');
    }
    const larger = new Uint8Array(size);
    larger.set(this.#bytes.subarray(0, this.#filled));
    this.#bytes = larger;
  }
}

function exhausted(problem: string): GrpcError {
  return new GrpcError('ResourceExhausted', problem);
}
