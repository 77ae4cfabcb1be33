// SPDX-License-Identifier: Apache-2.0
// Takes pools from ProxmoxPool objects while the daemon runs. A changed object is applied like a changed config file.
import type { PassReport } from '../fleet/index.ts';
import type { Clock } from '../ports/clock.ts';
import { asPvescalerError } from '../ports/errors.ts';
import type { Log } from '../ports/log.ts';
import type { PoolObjects } from '../ports/pool-objects.ts';
import { WaitQueue } from '../ports/wait-queue.ts';
import type { ReloadOutcome } from './config-watcher.ts';
import type { PoolDefinitions } from './pool-definitions.ts';
import type { PoolObjectReconciler } from './reconcile-pool-objects.ts';
import type { Watchdog } from './watchdog.ts';

export interface PoolWatcherOptions {
  readonly objects: Pick<PoolObjects, 'all' | 'lastError' | 'waitForChange'>;
  readonly definitions: PoolDefinitions;
  readonly reconciler: Pick<PoolObjectReconciler, 'reconcile' | 'recordPass'>;
  /** Applies the objects together with the config file in use. */
  readonly reload: () => Promise<ReloadOutcome>;
  readonly clock: Clock;
  readonly watchdog: Pick<Watchdog, 'expectRead' | 'markRead' | 'recordHeartbeat'>;
  readonly log: Log;
}

const SOURCE = 'ProxmoxPool objects';
const FIRST_READ_POLL_MS = 1_000;
const RETRY_MS = 30_000;

export class PoolWatcher {
  readonly #options: PoolWatcherOptions;
  readonly #wakes = new WaitQueue();
  #revision = 0;
  #mustRetry = false;

  constructor(options: PoolWatcherOptions) {
    this.#options = options;
  }

  /** Without them, machines of their pools would be taken for those of removed pools. */
  async waitForFirstRead(signal: AbortSignal): Promise<void> {
    const { objects, clock, watchdog, log } = this.#options;
    watchdog.expectRead(SOURCE);
    let reported = '';
    while (objects.all() === undefined && !signal.aborted) {
      const error = objects.lastError();
      if (error !== undefined && error.message !== reported) {
        reported = error.message;
        watchdog.expectRead(SOURCE, error.message);
        log.warn(`${SOURCE} cannot be read; pvescaler waits for them`, { error });
      }
      watchdog.recordHeartbeat();
      await clock.sleep(FIRST_READ_POLL_MS, { signal }).catch(() => undefined);
    }
    watchdog.markRead(SOURCE);
  }

  /** Applies the objects if they have changed. */
  async apply(): Promise<void> {
    const { definitions, reload } = this.#options;
    if (this.#mustRetry || definitions.hasChanged()) this.#mustRetry = (await reload()) === 'retry';
  }

  recordPass(report: PassReport): void {
    this.#options.reconciler.recordPass(report);
    this.#wake();
  }

  /** Until the signal. */
  async run(signal: AbortSignal): Promise<void> {
    const forwarding = this.#forwardChanges(signal);
    while (!signal.aborted) {
      const seen = this.#revision;
      await this.#reconcile();
      const timer = new AbortController();
      if (this.#mustRetry) this.#wakeLater(AbortSignal.any([signal, timer.signal]));
      await this.#wakes.waitUntil(() => this.#revision > seen, signal).catch(() => undefined);
      timer.abort();
    }
    await forwarding;
  }

  async #reconcile(): Promise<void> {
    const { reconciler, log } = this.#options;
    try {
      await this.apply();
      await reconciler.reconcile();
    } catch (cause) {
      const error = asPvescalerError(cause);
      log.warn('ProxmoxPool objects were not reconciled', { error });
    }
  }

  #wakeLater(signal: AbortSignal): void {
    this.#options.clock.sleep(RETRY_MS, { signal }).then(
      () => this.#wake(),
      () => undefined,
    );
  }

  async #forwardChanges(signal: AbortSignal): Promise<void> {
    const { objects } = this.#options;
    try {
      for (;;) {
        await objects.waitForChange(signal);
        this.#wake();
      }
    } catch {
      // Stopped.
    }
  }

  #wake(): void {
    this.#revision += 1;
    this.#wakes.wakeAll();
  }
}
