// SPDX-License-Identifier: Apache-2.0
// Reassembles the messages of a call's body and scans each one before it is decoded. Memory grows with the received
// bytes, not with the announced length.
import { type MessageLayout, scanMessage } from './scan.ts';

import { GrpcError } from './status.ts';

export const MAX_MESSAGE_BYTES = 4 * 2 ** 20;

/** Every admitted call may buffer this many bytes; only bytes beyond count against the budget. */
export const UNCOUNTED_BYTES = 2 ** 16;

/** The autoscaler sends chunks of 16 KiB. Each chunk has a fixed cost, however small it is. */
const MAX_CHUNKS = 16_384;

const HEADER_BYTES = 5;

export interface MessageReaderOptions {
  readonly layout: MessageLayout;
  readonly share: BudgetShare;
}

export class MessageReader {
  readonly #options: MessageReaderOptions;
  #message: IncomingMessage;

  constructor(options: MessageReaderOptions) {
    this.#options = options;
    this.#message = new IncomingMessage(options);
  }

  /** Whether the last message has started and is not complete. */
  get isIncomplete(): boolean {
    return this.#message.isStarted;
  }

  /** Returns the messages that this chunk completes, without their headers. */
  push(chunk: Uint8Array): readonly Uint8Array[] {
    const complete: Uint8Array[] = [];
    for (let rest = chunk; rest.length > 0; ) {
      rest = this.#message.push(rest);
      if (!this.#message.isComplete) continue;
      complete.push(this.#message.checkedBytes());
      this.#message = new IncomingMessage(this.#options);
    }
    return complete;
  }

  /** The body has ended. */
  end(): void {
    if (this.isIncomplete) throw new GrpcError('InvalidArgument', 'the message is truncated');
  }
}

class IncomingMessage {
  readonly #options: MessageReaderOptions;
  readonly #header = new Uint8Array(HEADER_BYTES);
  #bytes = this.#header;
  #length = HEADER_BYTES;
  #filled = 0;
  #chunks = 0;

  constructor(options: MessageReaderOptions) {
    this.#options = options;
  }

  get isStarted(): boolean {
    return this.#filled > 0;
  }

  get isComplete(): boolean {
    return this.#bytes !== this.#header && this.#filled === this.#length;
  }

  /** Returns the rest of the chunk. */
  push(chunk: Uint8Array): Uint8Array {
    this.#chunks += 1;
    if (this.#chunks > MAX_CHUNKS) {
      throw exhausted(`the message has more than ${MAX_CHUNKS} chunks`);
    }
    const taken = chunk.subarray(0, this.#length - this.#filled);
    this.#grow(this.#filled + taken.length);
    this.#bytes.set(taken, this.#filled);
    this.#filled += taken.length;
    if (this.#bytes === this.#header && this.#filled === HEADER_BYTES) this.#readHeader();
    return chunk.subarray(taken.length);
  }

  /** The scanned message, safe to decode. */
  checkedBytes(): Uint8Array {
    const message = this.#bytes.subarray(HEADER_BYTES, this.#length);
    const refusal = scanMessage(message, this.#options.layout);
    if (refusal?.kind === 'malformed') {
      throw new GrpcError('InvalidArgument', refusal.problem);
    }
    if (refusal !== undefined) throw exhausted(refusal.problem);
    return message;
  }

  #readHeader(): void {
    const [flags = 0] = this.#header;
    const length = new DataView(this.#header.buffer).getUint32(1);
    // Admission refuses every encoding, so a compressed message violates the protocol.
    if (flags !== 0) {
      throw new GrpcError(
        'Internal',
        'the message is compressed but the call has no grpc-encoding',
      );
    }
    if (length > MAX_MESSAGE_BYTES) {
      throw exhausted(`the message has ${length} bytes, more than ${MAX_MESSAGE_BYTES}`);
    }
    this.#length = HEADER_BYTES + length;
    this.#bytes = new Uint8Array(Math.min(this.#length, UNCOUNTED_BYTES));
    this.#bytes.set(this.#header);
  }

  #grow(needed: number): void {
    const current = this.#bytes.length;
    if (needed <= current) return;
    const size = Math.min(this.#length, Math.max(needed, 2 * current));
    if (!this.#options.share.grow(size - current)) {
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

// Limits the memory for request messages over all calls of a listener. Small messages are not counted: the limit on
// concurrent calls bounds them.

export class MessageBudget {
  readonly #limitBytes: number;
  #usedBytes = 0;

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes;
  }

  /** The share of one call. */
  openShare(): BudgetShare {
    let ownBytes = 0;
    return {
      grow: (bytes) => {
        if (this.#usedBytes + bytes > this.#limitBytes) return false;
        this.#usedBytes += bytes;
        ownBytes += bytes;
        return true;
      },
      release: () => {
        this.#usedBytes -= ownBytes;
        ownBytes = 0;
      },
    };
  }
}

interface BudgetShare {
  /** False when the limit does not allow this many more bytes. */
  readonly grow: (bytes: number) => boolean;
  /** Releases the whole share. */
  readonly release: () => void;
}
