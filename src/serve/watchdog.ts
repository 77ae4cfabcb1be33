// SPDX-License-Identifier: Apache-2.0
// State of the running process: is the driver loop alive, have Proxmox and Kubernetes been read, does this process
// drive. `/healthz` and `/readyz` report it.
import type { DriverEvents, PassOutcome, PassReport } from '../fleet/index.ts';
import type { Clock } from '../ports/clock.ts';
import type { PvescalerError } from '../ports/errors.ts';
import type { Log } from '../ports/log.ts';
import type { Meters } from '../ports/meters.ts';
import type { HealthServerOptions } from './context.ts';

/** Between passes the loop sends a heartbeat about once a second; the longest gap is a lease takeover. */
const MAX_SILENCE_MS = 120_000;
/** A pass waits for no call and no task. */
const MAX_PASS_MS = 120_000;

export interface WatchdogOptions {
  readonly clock: Clock;
  readonly log: Log;
  readonly meters: Meters;
}

export class Watchdog {
  readonly #options: WatchdogOptions;
  /** Source not read yet, with the reason. */
  readonly #unread = new Map<string, string>();
  readonly #limitations = new Map<string, string>();
  #lastHeartbeatAt: number;
  #passStartedAt: number | undefined;
  #otherDriver = '';
  #lastError = '';
  #isStopping = false;
  isLeading = false;
  /** Wall clock; undefined on standby. */
  leadingSince: number | undefined;
  lastPass: PassReport | undefined;
  /** Set once the front end has started. */
  frontEndWaitsFor: () => readonly string[] = () => ['the front end: not started yet'];

  /** Why the records may lack what other processes wrote; undefined: they do not. */
  staleness: () => string | undefined = () => undefined;

  constructor(options: WatchdogOptions) {
    this.#options = options;
    this.#lastHeartbeatAt = options.clock.monotonic();
  }

  /** The process is not ready until `markRead` of the same source. */
  expectRead(source: string, reason = 'not read yet'): void {
    this.#unread.set(source, reason);
  }

  markRead(source: string): void {
    this.#unread.delete(source);
  }

  /** Shown in `/readyz`; undefined removes it. */
  setLimitation(subject: string, message: string | undefined): void {
    if (message === undefined) this.#limitations.delete(subject);
    else this.#limitations.set(subject, message);
  }

  markStopping(): void {
    this.#isStopping = true;
  }

  readonly health: HealthServerOptions['health'] = () => {
    const now = this.#options.clock.monotonic();
    const problems: string[] = [];
    if (this.#passStartedAt !== undefined && now - this.#passStartedAt > MAX_PASS_MS) {
      problems.push(`the reconcile pass has run for ${formatSeconds(now - this.#passStartedAt)}`);
    }
    if (this.#passStartedAt === undefined && now - this.#lastHeartbeatAt > MAX_SILENCE_MS) {
      problems.push(
        `the driver loop has been stuck for ${formatSeconds(now - this.#lastHeartbeatAt)}`,
      );
    }
    return { healthy: problems.length === 0, problems };
  };

  readonly readiness: HealthServerOptions['readiness'] = () => {
    const stale = this.staleness();
    const waitingFor = [
      ...[...this.#unread].map(([source, reason]) => `${source}: ${reason}`),
      ...(stale === undefined ? [] : [`current records: ${stale}`]),
      ...this.frontEndWaitsFor(),
      ...(this.#isStopping ? ['the process is stopping'] : []),
    ];
    return {
      ready: waitingFor.length === 0,
      waitingFor,
      limits: [...this.#limitations.values()],
      leader: this.isLeading,
    };
  };

  recordHeartbeat(): void {
    this.#lastHeartbeatAt = this.#options.clock.monotonic();
  }

  readonly events: DriverEvents = {
    onHeartbeat: () => this.recordHeartbeat(),
    onPassBegin: () => {
      this.recordHeartbeat();
      this.#passStartedAt = this.#options.clock.monotonic();
    },
    onPassEnd: (outcome) => this.#endPass(outcome),
    onPass: (report) => this.#recordPass(report),
    onWaiting: (holder) => this.#logOtherDriver(holder),
    onSeparateStore: (holder) =>
      this.#options.log.warn(
        'another process drives this cluster with another state database: replicas must share one, otherwise each creates the minimum of every pool',
        { holder },
      ),
    onError: (error) => this.#recordError(error),
    onLeading: (isLeading) => this.#setLeading(isLeading),
  };

  #endPass(outcome: PassOutcome): void {
    const { clock, meters } = this.#options;
    const durationMs = clock.monotonic() - (this.#passStartedAt ?? clock.monotonic());
    meters.observe('pvescaler_reconcile_duration_seconds', {}, durationMs / 1_000);
    meters.add('pvescaler_reconciles_total', { outcome });
    this.#passStartedAt = undefined;
    this.recordHeartbeat();
  }

  #recordPass(report: PassReport): void {
    const regions = new Set([
      ...Object.keys(this.lastPass?.stale ?? {}),
      ...Object.keys(report.stale),
    ]);
    for (const region of regions)
      this.#setReadLimit(`Proxmox region ${region}`, report.stale[region]);
    this.#setReadLimit('Kubernetes', report.clusterStale);
    this.lastPass = report;
    if (this.#lastError !== '') this.#options.log.info('reconcile passes succeed again');
    this.#lastError = '';
  }

  #setReadLimit(source: string, why: string | undefined): void {
    this.setLimitation(source, why === undefined ? undefined : `${source} cannot be read: ${why}`);
  }

  #logOtherDriver(holder: string): void {
    if (this.#otherDriver === holder) return;
    this.#otherDriver = holder;
    this.#options.log.info('another process drives the fleet; this one is on standby', { holder });
  }

  /** Logs an error that repeats only once. */
  #recordError(error: PvescalerError): void {
    const text = `${error.code} ${error.message}`;
    if (this.#lastError === text) return;
    this.#lastError = text;
    const level = error.retry === 'backoff' ? 'warn' : 'error';
    this.#options.log[level]('the reconcile pass failed and is retried', { error });
  }

  #setLeading(isLeading: boolean): void {
    if (this.isLeading === isLeading) return;
    this.isLeading = isLeading;
    this.leadingSince = isLeading ? this.#options.clock.now() : undefined;
    this.#otherDriver = '';
    this.#options.log.info(
      isLeading ? 'this process now drives the fleet' : 'this process no longer drives the fleet',
    );
  }
}

function formatSeconds(ms: number): string {
  return `${Math.round(ms / 1_000)} s`;
}
