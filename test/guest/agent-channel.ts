// SPDX-License-Identifier: Apache-2.0
// The JSON protocol of the QEMU guest agent on its socket: one call at a time.
import { connect, type Socket } from 'node:net';
import { createInterface } from 'node:readline';

const TIMEOUT_MS = 20_000;

interface Answer {
  readonly return?: unknown;
  readonly error?: { readonly desc: string };
}

export class AgentChannel {
  readonly #socket: Socket;
  readonly #waiting: ((answer: Answer) => void)[] = [];
  #last: Promise<unknown> = Promise.resolve();

  private constructor(socket: Socket) {
    this.#socket = socket;
    createInterface(socket)
      .on('line', (line) => this.#waiting.shift()?.(JSON.parse(line) as Answer))
      // The guest is off; the calls end by their time limit.
      .on('error', () => undefined);
  }

  static async open(path: string): Promise<AgentChannel> {
    const socket = connect(path);
    await new Promise<void>((resolve, reject) => {
      socket.once('connect', resolve);
      socket.once('error', reject);
    });
    socket.on('error', () => undefined);
    return new AgentChannel(socket);
  }

  call<T>(name: string, args: object = {}): Promise<T> {
    const sent = this.#last.then(() => this.#send(name, args));
    this.#last = sent.catch(() => undefined);
    return sent as Promise<T>;
  }

  close(): void {
    this.#socket.destroy();
  }

  #send(name: string, args: object): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        // A late answer would be taken for that of the next call.
        this.close();
        reject(new Error(`the guest agent has not answered ${name}`));
      }, TIMEOUT_MS);
      this.#waiting.push(({ return: value, error }) => {
        clearTimeout(timer);
        if (error === undefined) resolve(value);
        else reject(new Error(`${name}: ${error.desc}`));
      });
      this.#socket.write(`${JSON.stringify({ execute: name, arguments: args })}\n`);
    });
  }
}
