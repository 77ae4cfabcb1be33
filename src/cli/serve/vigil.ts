// SPDX-License-Identifier: Apache-2.0
// What is known of the running process: does its loop move, has it seen both sides, does it drive. The answers of
// `/healthz` and `/readyz` come from here.
import type { DriverEvents, PassReport } from '../../fleet/index.ts';
import type { Clock } from '../../ports/clock.ts';
import type { PvescalerError } from '../../ports/errors.ts';
import type { Log } from '../../ports/log.ts';
import type { Meters } from '../../ports/meters.ts';
import type { HealthOrder } from '../context.ts';

/** Outside of rounds the loop is heard every second or so; a takeover is silent for the longest. */
const SILENCE_MS = 120_000;
/** A round waits for tasks of Proxmox in rare cases only, and for a quarter of an hour at most. */
const LONGEST_ROUND_MS = 20 * 60_000;

export interface VigilParts {
  readonly clock: Clock;
  readonly log: Log;
  readonly meters: Meters;
}

export class Vigil {
  readonly #parts: VigilParts;
  readonly #unseen = new Map<string, string>();
  readonly #limits = new Map<string, string>();
  #pulseAt: number;
  #roundSince: number | undefined;
  #waitingOn = '';
  #trouble = '';
  #isEnding = false;
  isLeading = false;
  report: PassReport | undefined;
  /** Of the face; asked each time. */
  faceWaitsFor: () => readonly string[] = () => ['the face: not started yet'];

  constructor(parts: VigilParts) {
    this.#parts = parts;
    this.#pulseAt = parts.clock.monotonic();
  }

  /** Until `seen` of the same thing, the process is not ready. */
  awaits(what: string, why = 'not read yet'): void {
    this.#unseen.set(what, why);
  }

  seen(what: string): void {
    this.#unseen.delete(what);
  }

  /** What cannot be done for now, or at all; undefined when it can be again. */
  cannot(about: string, why: string | undefined): void {
    if (why === undefined) this.#limits.delete(about);
    else this.#limits.set(about, why);
  }

  ends(): void {
    this.#isEnding = true;
  }

  readonly health: HealthOrder['health'] = () => {
    const now = this.#parts.clock.monotonic();
    const problems: string[] = [];
    if (this.#roundSince !== undefined && now - this.#roundSince > LONGEST_ROUND_MS) {
      problems.push(`a round has been going on for ${seconds(now - this.#roundSince)}`);
    }
    if (this.#roundSince === undefined && now - this.#pulseAt > SILENCE_MS) {
      problems.push(`the loop has not moved for ${seconds(now - this.#pulseAt)}`);
    }
    return { healthy: problems.length === 0, problems };
  };

  readonly readiness: HealthOrder['readiness'] = () => {
    const waitingFor = [
      ...[...this.#unseen].map(([what, why]) => `${what}: ${why}`),
      ...this.faceWaitsFor(),
      ...(this.#isEnding ? ['the end of the process'] : []),
    ];
    return {
      ready: waitingFor.length === 0,
      waitingFor,
      limits: [...this.#limits.values()],
      leader: this.isLeading,
    };
  };

  pulse(): void {
    this.#pulseAt = this.#parts.clock.monotonic();
  }

  readonly events: DriverEvents = {
    onHeartbeat: () => this.pulse(),
    onPassBegin: () => {
      this.pulse();
      this.#roundSince = this.#parts.clock.monotonic();
    },
    onPassEnd: () => this.#endRound(),
    onPass: (report) => this.#took(report),
    onWaiting: (holder) => this.#waits(holder),
    onError: (error) => this.#met(error),
    onLeading: (isLeading) => this.#leads(isLeading),
  };

  #endRound(): void {
    const { clock, meters } = this.#parts;
    const took = clock.monotonic() - (this.#roundSince ?? clock.monotonic());
    meters.observe('pvescaler_reconcile_duration_seconds', {}, took / 1_000);
    this.#roundSince = undefined;
    this.pulse();
  }

  #took(report: PassReport): void {
    this.report = report;
    this.#trouble = '';
    this.#parts.meters.add('pvescaler_reconciles_total', { outcome: 'success' });
  }

  #waits(holder: string): void {
    if (this.#waitingOn === holder) return;
    this.#waitingOn = holder;
    this.#parts.log.info('another process drives; this one stands by', { holder });
  }

  #met(error: PvescalerError): void {
    this.#parts.meters.add('pvescaler_reconciles_total', { outcome: 'error' });
    const words = `${error.code} ${error.message}`;
    if (this.#trouble === words) return;
    this.#trouble = words;
    this.#parts.log.warn('the round ended in trouble; it is tried again', { error });
  }

  #leads(isLeading: boolean): void {
    if (this.isLeading === isLeading) return;
    this.isLeading = isLeading;
    this.#waitingOn = '';
    this.#parts.log.info(isLeading ? 'this process drives' : 'this process no longer drives');
  }
}

function seconds(ms: number): string {
  return `${Math.round(ms / 1_000)} s`;
}
