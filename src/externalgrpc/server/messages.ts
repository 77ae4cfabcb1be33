// SPDX-License-Identifier: Apache-2.0
// The body of a call, message by message: put together, looked over, and only then handed to the decoder. What is
// promised costs nothing: memory grows with what has come.
import { Code, ConnectError } from '@connectrpc/connect';
import type { Clock } from '../../ports/clock.ts';
import type { MessagePlan } from './message-plan.ts';
import type { Share } from './message-room.ts';
import { scan } from './scan.ts';

export const MESSAGE_MAX_BYTES = 4 * 2 ** 20;

/** As this many are in memory for every call that is let in, they are not counted. */
export const SMALL_BYTES = 2 ** 16;

/** From its first byte to its last; the autoscaler gives a call 5 seconds by default. */
const MESSAGE_WITHIN_MS = 30_000;

/** Frames of the autoscaler hold 16 KiB; each costs the same, however little is in it. */
const PIECES_MAX = 16_384;

const HEADER_BYTES = 5;

export interface MessageParts {
  readonly plan: MessagePlan;
  readonly share: Share;
  readonly clock: Clock;
}

/** Each item is one message with its header. */
export async function* wholeMessages(
  body: AsyncIterable<Uint8Array>,
  parts: MessageParts,
): AsyncGenerator<Uint8Array> {
  const patience = new Patience(parts.clock);
  let message = new Incoming(parts);
  const pieces = body[Symbol.asyncIterator]();
  try {
    for (;;) {
      const { done, value } = await (message.isBegun
        ? patience.race(pieces.next())
        : pieces.next());
      if (done === true) break;
      for (let rest = value; rest.length > 0; ) {
        rest = message.take(rest);
        if (!message.isWhole) continue;
        patience.end();
        yield message.looked();
        message = new Incoming(parts);
      }
    }
    if (message.isBegun) throw new ConnectError('the message has no end', Code.InvalidArgument);
  } finally {
    // The pieces are not told: they would take the stream with them, and with it the answer that says why.
    patience.end();
  }
}

/** Ends the wait for the rest of a message. */
class Patience {
  readonly #clock: Clock;
  #waiting: { readonly abort: AbortController; readonly late: Promise<never> } | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  race<Value>(next: Promise<Value>): Promise<Value> {
    this.#waiting ??= this.#begin();
    return Promise.race([next, this.#waiting.late]);
  }

  end(): void {
    this.#waiting?.abort.abort();
    this.#waiting = undefined;
  }

  #begin() {
    const abort = new AbortController();
    const { promise: late, reject } = Promise.withResolvers<never>();
    late.catch(() => undefined);
    const tell = () =>
      reject(
        new ConnectError(
          `the message did not come within ${MESSAGE_WITHIN_MS / 1_000} seconds`,
          Code.DeadlineExceeded,
        ),
      );
    this.#clock.sleep(MESSAGE_WITHIN_MS, { signal: abort.signal }).then(tell, () => undefined);
    return { abort, late };
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
    const refusal = scan(this.#bytes.subarray(HEADER_BYTES, this.#length), this.#parts.plan);
    if (refusal?.kind === 'malformed') {
      throw new ConnectError(refusal.problem, Code.InvalidArgument);
    }
    if (refusal !== undefined) throw exhausted(refusal.problem);
    return this.#bytes.subarray(0, this.#length);
  }

  #open(): void {
    const [flags = 0] = this.#header;
    const length = new DataView(this.#header.buffer).getUint32(1);
    // The encoding was refused with the headers; a message that is packed all the same breaks the protocol.
    if (flags !== 0) {
      throw new ConnectError('the message is compressed without an encoding', Code.Internal);
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
      throw exhausted('large messages of other calls are under way');
    }
    const larger = new Uint8Array(size);
    larger.set(this.#bytes.subarray(0, this.#filled));
    this.#bytes = larger;
  }
}

function exhausted(problem: string): ConnectError {
  return new ConnectError(problem, Code.ResourceExhausted);
}
