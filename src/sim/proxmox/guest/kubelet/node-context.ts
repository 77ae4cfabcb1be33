// SPDX-License-Identifier: Apache-2.0
// What the parts of one running kubelet share: its server, its clock, its end, and a place for its complaints.
import type { Clock } from '../../../../ports/clock.ts';
import type { MachineFacts } from './node-object.ts';
import { CallFailed, type ServerApi } from './server-api.ts';
import type { KubeletSettings } from './settings.ts';

export interface NodeContextOptions {
  readonly settings: KubeletSettings;
  readonly facts: MachineFacts;
  readonly api: ServerApi;
  readonly clock: Clock;
  readonly speed: number;
  readonly vmId: number;
  /** Ends when the power goes or the service is stopped. */
  readonly signal: AbortSignal;
  complain(message: string): void;
}

export class NodeContext {
  readonly settings: KubeletSettings;
  readonly facts: MachineFacts;
  readonly api: ServerApi;
  readonly clock: Clock;
  readonly speed: number;
  readonly vmId: number;
  readonly signal: AbortSignal;
  readonly #complain: (message: string) => void;
  readonly #said = new Map<string, string>();

  constructor(options: NodeContextOptions) {
    this.settings = options.settings;
    this.facts = options.facts;
    this.api = options.api;
    this.clock = options.clock;
    this.speed = options.speed;
    this.vmId = options.vmId;
    this.signal = options.signal;
    this.#complain = (message) => options.complain(message);
  }

  /** True when it went well. What went wrong is said once, until it is something else. */
  async tryOnce(what: string, work: () => Promise<unknown>): Promise<boolean> {
    try {
      await work();
      this.#said.delete(what);
      return true;
    } catch (error) {
      this.trouble(what, error);
      return false;
    }
  }

  trouble(what: string, error: unknown): void {
    if (this.signal.aborted) return;
    const message = error instanceof Error ? error.message : String(error);
    if (this.#said.get(what) === message) return;
    this.#said.set(what, message);
    // A server that is away is no fault of this machine, and comes back.
    if (error instanceof CallFailed) this.#complain(`kubelet: ${what}: ${message}`);
  }

  /** Resolves early, and does not reject, when it all ends. */
  async sleep(ms: number): Promise<void> {
    await this.clock.sleep(ms, { signal: this.signal }).catch(() => undefined);
  }

  /** Work that nobody waits for. */
  async background(work: () => Promise<void>, until: AbortSignal): Promise<void> {
    try {
      await work();
    } catch (error) {
      if (!until.aborted && !this.signal.aborted) this.trouble('background', error);
    }
  }
}
