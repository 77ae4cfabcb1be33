// SPDX-License-Identifier: Apache-2.0
// The face as the thread that drives sees it: told what the fleet sees, asked whether it can answer.
import type { Fleet } from '../../fleet/index.ts';
import type { Clock } from '../../ports/clock.ts';
import { deserializeError } from '../../ports/errors.ts';
import type { ThreadChannel } from '../../ports/thread-channel.ts';
import type { GrpcCall, RunningExternalGrpc } from '../index.ts';
import type { FromFace, ToFace } from './messages.ts';

export interface SupervisionParts {
  readonly link: ThreadChannel<ToFace, FromFace>;
  readonly forecast: Pick<Fleet['forecast'], 'report' | 'onChange'>;
  readonly clock: Clock;
  readonly warn: (message: string) => void;
  readonly onCall: (call: GrpcCall) => void;
  /** Aborted when the process shall end. */
  readonly signal: AbortSignal;
}

export interface SupervisedFace extends RunningExternalGrpc {
  /** Rejects when the thread has died; never resolves. */
  readonly failed: Promise<never>;
}

/** The right to act is renewed every few seconds: the other thread must hear of it long before the old one ends. */
const RENEW_EVERY_MS = 1_000;

/** It is heard every second. */
const SILENT_MS = 10_000;

/** Longer than its listeners take. */
const CLOSE_WITHIN_MS = 15_000;

/** Resolves when it listens; rejects with the reason why it cannot. */
export async function supervise(parts: SupervisionParts): Promise<SupervisedFace> {
  const { link, forecast, clock, signal } = parts;
  const watch = new Watch(parts);
  const tell = () => link.send({ kind: 'forecast', report: forecast.report() });
  forecast.onChange(tell);
  const onEnding = () => link.send({ kind: 'ending' });
  if (signal.aborted) onEnding();
  else signal.addEventListener('abort', onEnding, { once: true });
  const over = new AbortController();
  const end = async () => {
    over.abort();
    forecast.onChange(() => undefined);
    signal.removeEventListener('abort', onEnding);
    await link.close();
  };
  try {
    const { port, expanderPort } = await Promise.race([watch.listening, watch.failed]);
    const renewing = repeat(tell, clock, over.signal);
    return {
      port,
      expanderPort,
      failed: watch.failed,
      waitingFor: () => watch.waitingFor(),
      async close() {
        link.send({ kind: 'close' });
        const late = clock.sleep(CLOSE_WITHIN_MS, { signal: over.signal }).catch(() => undefined);
        // One that has died is closed, too, and one that hangs is ended.
        await Promise.race([watch.closed, watch.failed.catch(() => undefined), late]);
        await Promise.all([end(), renewing]);
      },
    };
  } catch (error) {
    await end();
    throw error;
  }
}

async function repeat(work: () => void, clock: Clock, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    work();
    await clock.sleep(RENEW_EVERY_MS, { signal }).catch(() => undefined);
  }
}

type Listening = Extract<FromFace, { kind: 'listening' }>;

/** What the thread has said so far. */
class Watch {
  readonly #clock: Clock;
  #waitingFor: readonly string[] = ['the thread that answers'];
  #heardAt: number;
  readonly listening: Promise<Listening>;
  readonly closed: Promise<void>;
  readonly failed: Promise<never>;

  constructor({ link, clock, warn, onCall }: SupervisionParts) {
    this.#clock = clock;
    this.#heardAt = clock.monotonic();
    const listening = Promise.withResolvers<Listening>();
    const closed = Promise.withResolvers<void>();
    const failed = Promise.withResolvers<never>();
    link.failed.catch(failed.reject);
    // Whoever waits for one of them need not be interested in the others.
    failed.promise.catch(() => undefined);
    this.listening = listening.promise;
    this.closed = closed.promise;
    this.failed = failed.promise;
    link.onMessage((message) => {
      this.#heardAt = clock.monotonic();
      switch (message.kind) {
        case 'listening':
          return listening.resolve(message);
        case 'waiting':
          this.#waitingFor = message.waitingFor;
          return undefined;
        case 'calls':
          return message.calls.forEach(onCall);
        case 'warning':
          return warn(message.message);
        case 'closed':
          return closed.resolve();
        default:
          return failed.reject(deserializeError(message.error));
      }
    });
  }

  /** One that hangs cannot say so. */
  waitingFor(): readonly string[] {
    const silentMs = this.#clock.monotonic() - this.#heardAt;
    if (silentMs <= SILENT_MS) return this.#waitingFor;
    return [`the thread that answers, which is silent for ${Math.round(silentMs / 1_000)} s`];
  }
}
