// SPDX-License-Identifier: Apache-2.0
// Records from watch events when each pod was created and when it was bound.
import type { Api, ApiObject } from '../../test/e2e/controlplane/index.ts';

const PODS = '/api/v1/namespaces/default/pods';

interface WatchedPod extends ApiObject {
  readonly spec: { readonly nodeName?: string };
}

interface PodTimes {
  readonly createdAt: number;
  boundAt: number | undefined;
}

export class PodRecorder {
  readonly #pods = new Map<string, PodTimes>();
  readonly #stopping = new AbortController();
  readonly #watching: Promise<void>;

  constructor(api: Api) {
    this.#watching = this.#watch(api);
  }

  /** Seconds from pending to bound, of all pods that were bound. */
  get seconds(): readonly number[] {
    return Array.from(this.#pods.values()).flatMap(({ createdAt, boundAt }) =>
      boundAt === undefined ? [] : [(boundAt - createdAt) / 1_000],
    );
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#watching;
  }

  async #watch(api: Api): Promise<void> {
    try {
      for await (const { object } of api.watch<WatchedPod>(PODS, this.#stopping.signal))
        this.#observe(object);
    } catch (error) {
      if (!this.#stopping.signal.aborted) throw error;
    }
  }

  #observe({ metadata, spec }: WatchedPod): void {
    const now = performance.now();
    const times = this.#pods.get(metadata.uid) ?? { createdAt: now, boundAt: undefined };
    this.#pods.set(metadata.uid, times);
    if (spec.nodeName !== undefined) times.boundAt ??= now;
  }
}
