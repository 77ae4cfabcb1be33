// SPDX-License-Identifier: Apache-2.0
// State shared by the parts of one running kubelet: API server, clock, stop signal and error reporting.
import type { Clock } from '../../../../ports/clock.ts';
import type { GuestFacts } from './node-object.ts';
import { ApiCallError, type ServerApi } from './server-api.ts';
import type { KubeletSettings } from './settings.ts';

export interface NodeContextOptions {
  readonly settings: KubeletSettings;
  readonly facts: GuestFacts;
  readonly api: ServerApi;
  readonly clock: Clock;
  readonly speed: number;
  readonly vmId: number;
  /** Aborted at power-off or when the service is stopped. */
  readonly signal: AbortSignal;
  onError(message: string): void;
}

export class NodeContext {
  readonly settings: KubeletSettings;
  readonly facts: GuestFacts;
  readonly api: ServerApi;
  readonly clock: Clock;
  readonly speed: number;
  readonly vmId: number;
  readonly signal: AbortSignal;
  readonly #onError: (message: string) => void;
  readonly #lastErrors = new Map<string, string>();

  constructor(options: NodeContextOptions) {
    this.settings = options.settings;
    this.facts = options.facts;
    this.api = options.api;
    this.clock = options.clock;
    this.speed = options.speed;
    this.vmId = options.vmId;
    this.signal = options.signal;
    this.#onError = (message) => options.onError(message);
  }

  /** Returns true on success. Reports a failure once, until its message changes. */
  async tryAndReport(operation: string, work: () => Promise<unknown>): Promise<boolean> {
    try {
      await work();
      this.#lastErrors.delete(operation);
      return true;
    } catch (error) {
      this.reportFailure(operation, error);
      return false;
    }
  }

  reportFailure(operation: string, error: unknown): void {
    if (this.signal.aborted) return;
    const message = error instanceof Error ? error.message : String(error);
    if (this.#lastErrors.get(operation) === message) return;
    this.#lastErrors.set(operation, message);
    // An unreachable server is not an error of this guest; only error responses are.
    if (error instanceof ApiCallError) this.#onError(`kubelet: ${operation}: ${message}`);
  }

  /** Resolves early, without rejecting, when the kubelet stops. */
  async sleep(ms: number): Promise<void> {
    await this.clock.sleep(ms, { signal: this.signal }).catch(() => undefined);
  }

  /** Runs work without awaiting it; reports its failure unless it was stopped. */
  async runInBackground(work: () => Promise<void>, until: AbortSignal): Promise<void> {
    try {
      await work();
    } catch (error) {
      if (!until.aborted && !this.signal.aborted) this.reportFailure('background', error);
    }
  }
}
