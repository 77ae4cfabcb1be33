// SPDX-License-Identifier: Apache-2.0
// Runs the controllers: changes are collected for a moment, then every controller that watches a changed resource, or
// whose time has come, syncs once, in a fixed order.
import type { Clock } from '../../../ports/clock.ts';
import type { Resource } from '../storage/resources.ts';
import type { Controller, ControllerContext } from './controller.ts';

const SYNC_DELAY_MS = 50;
const IDLE_MS = 3_600_000;

export class ControllerManager {
  readonly #cluster: ControllerContext;
  readonly #controllers: readonly Controller[];
  readonly #clock: Clock;
  readonly #changed = new Set<Resource>();
  /** When a controller syncs without a change, on the monotonic clock. */
  readonly #dueAt = new Map<Controller, number>();
  #wake: (() => void) | undefined;

  constructor(cluster: ControllerContext, controllers: readonly Controller[]) {
    this.#cluster = cluster;
    this.#controllers = controllers;
    this.#clock = cluster.clock;
    for (const controller of controllers) this.#dueAt.set(controller, this.#clock.monotonic());
  }

  /** Runs until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { store } = this.#cluster.storage;
    const controllers = this.#controllers;
    const unwatch = store.watch(store.version, ({ resource }) => {
      if (!controllers.some((one) => isWatched(one, resource))) return;
      this.#changed.add(resource);
      this.#wake?.();
    });
    try {
      while (!signal.aborted) {
        if (this.#changed.size === 0) await this.#sleepUntilDue(signal);
        await this.#clock.sleep(SYNC_DELAY_MS, { signal }).catch(() => undefined);
        if (!signal.aborted) this.syncOnce();
      }
    } finally {
      unwatch();
    }
  }

  syncOnce(): void {
    const changed = new Set(this.#changed);
    this.#changed.clear();
    const now = this.#clock.monotonic();
    for (const controller of this.#controllers) {
      const isDue = (this.#dueAt.get(controller) ?? Number.POSITIVE_INFINITY) <= now;
      if (!isDue && ![...changed].some((resource) => isWatched(controller, resource))) continue;
      const next = controller.sync(this.#cluster);
      if (next === undefined) this.#dueAt.delete(controller);
      else this.#dueAt.set(controller, next);
    }
  }

  async #sleepUntilDue(signal: AbortSignal): Promise<void> {
    const dueMs = Math.min(
      IDLE_MS,
      ...this.#dueAt.values().map((at) => at - this.#clock.monotonic()),
    );
    const woken = new AbortController();
    this.#wake = () => woken.abort();
    await this.#clock
      .sleep(dueMs, { signal: AbortSignal.any([signal, woken.signal]) })
      .catch(() => undefined);
    this.#wake = undefined;
  }
}

function isWatched({ watches, watchesCustom = false }: Controller, resource: Resource): boolean {
  return watches.includes(resource) || (watchesCustom && resource.custom !== undefined);
}
