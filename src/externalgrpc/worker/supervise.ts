// SPDX-License-Identifier: Apache-2.0
// The driver end of the gRPC worker thread: sends the capacity forecast and tracks the worker's status.
import type { Fleet } from '../../fleet/index.ts';
import type { Clock } from '../../ports/clock.ts';
import { deserializeError } from '../../ports/errors.ts';
import type { ThreadChannel } from '../../ports/thread-channel.ts';
import type { ExternalGrpcSettings, GrpcCall, RunningExternalGrpc } from '../index.ts';
import type { MessageFromWorker, MessageToWorker } from './messages.ts';

export interface SupervisorParts {
  readonly channel: ThreadChannel<MessageToWorker, MessageFromWorker>;
  readonly forecast: Pick<Fleet['forecast'], 'report' | 'onChange'>;
  readonly clock: Clock;
  readonly warn: (message: string) => void;
  readonly onCall: (call: GrpcCall) => void;
  /** Aborted when the process shuts down. */
  readonly signal: AbortSignal;
}

export interface SupervisedGrpcServer extends RunningExternalGrpc {
  /** Rejects when the thread has died; never resolves. */
  readonly failed: Promise<never>;
  /** They apply from the next loop of the autoscaler on. */
  replaceSettings(settings: ExternalGrpcSettings): void;
}

/** The driver renews its lease every few seconds; the worker needs the new expiry well before the old one passes. */
const REPORT_INTERVAL_MS = 1_000;

/** The worker sends at least one message per second. */
const MAX_SILENCE_MS = 10_000;

/** Longer than the listeners take to close. */
const CLOSE_TIMEOUT_MS = 15_000;

/** Resolves when the server listens; rejects when it cannot. */
export async function superviseGrpcWorker(parts: SupervisorParts): Promise<SupervisedGrpcServer> {
  const { channel, forecast, clock, signal } = parts;
  const status = new WorkerStatus(parts);
  const sendForecast = () => channel.send({ kind: 'forecast', report: forecast.report() });
  forecast.onChange(sendForecast);
  const onShutdown = () => channel.send({ kind: 'ending' });
  if (signal.aborted) onShutdown();
  else signal.addEventListener('abort', onShutdown, { once: true });
  const closed = new AbortController();
  const closeLink = async () => {
    closed.abort();
    forecast.onChange(() => undefined);
    signal.removeEventListener('abort', onShutdown);
    await channel.close();
  };
  try {
    const { port, expanderPort } = await Promise.race([status.listening, status.failed]);
    const reporting = repeat(sendForecast, clock, closed.signal);
    return {
      port,
      expanderPort,
      failed: status.failed,
      waitingFor: () => status.waitingFor(),
      replaceSettings: (settings) => channel.send({ kind: 'settings', settings }),
      async close() {
        channel.send({ kind: 'close' });
        const timeout = clock
          .sleep(CLOSE_TIMEOUT_MS, { signal: closed.signal })
          .catch(() => undefined);
        // A worker that died counts as closed; one that hangs is terminated with its link.
        await Promise.race([status.closed, status.failed.catch(() => undefined), timeout]);
        await Promise.all([closeLink(), reporting]);
      },
    };
  } catch (error) {
    await closeLink();
    throw error;
  }
}

async function repeat(work: () => void, clock: Clock, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    work();
    await clock.sleep(REPORT_INTERVAL_MS, { signal }).catch(() => undefined);
  }
}

type ListeningMessage = Extract<MessageFromWorker, { kind: 'listening' }>;

/** What the worker thread has reported so far. */
class WorkerStatus {
  readonly #clock: Clock;
  #waitingFor: readonly string[] = ['the gRPC worker thread'];
  #lastMessageAt: number;
  readonly listening: Promise<ListeningMessage>;
  readonly closed: Promise<void>;
  readonly failed: Promise<never>;

  constructor({ channel, clock, warn, onCall }: SupervisorParts) {
    this.#clock = clock;
    this.#lastMessageAt = clock.monotonic();
    const listening = Promise.withResolvers<ListeningMessage>();
    const closed = Promise.withResolvers<void>();
    const failed = Promise.withResolvers<never>();
    channel.failed.catch(failed.reject);
    // A caller may wait for one of these promises only: the others must not count as unhandled.
    failed.promise.catch(() => undefined);
    this.listening = listening.promise;
    this.closed = closed.promise;
    this.failed = failed.promise;
    channel.onMessage((message) => {
      this.#lastMessageAt = clock.monotonic();
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
        case 'failed':
          return failed.reject(deserializeError(message.error));
      }
    });
  }

  /** A worker that hangs cannot report it. */
  waitingFor(): readonly string[] {
    const silentMs = this.#clock.monotonic() - this.#lastMessageAt;
    if (silentMs <= MAX_SILENCE_MS) return this.#waitingFor;
    return [`the gRPC worker thread, silent for ${Math.round(silentMs / 1_000)} s`];
  }
}
