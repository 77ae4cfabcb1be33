// SPDX-License-Identifier: Apache-2.0
import type { Pod } from '../../model/pod.ts';
import type { ChangedOptions, ClusterNode, ClusterView } from '../../ports/cluster.ts';
import { Cancelled, Unreachable } from '../../ports/errors.ts';
import { Waiters } from '../../ports/waiters.ts';
import type { Reflector } from './reflector.ts';

export interface Collections {
  readonly nodes: Reflector<ClusterNode>;
  /** Absent: nobody looks at pods. */
  readonly pods?: Reflector<Pod>;
}

interface Picture {
  readonly revision: number;
  readonly nodes: readonly ClusterNode[];
  readonly pods: readonly Pod[];
}

/** The collections as one view, and the waiting for its next change. */
export class Panorama {
  readonly #collections: Collections;
  readonly #waiters = new Waiters();
  /** Copies are made when somebody looks, not with every event. */
  #picture: Picture | undefined;
  #revision = 0;
  #isStopped = false;

  constructor(collections: Collections) {
    this.#collections = collections;
  }

  start(): void {
    for (const one of this.#all()) one.start();
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#waiters.wakeAll();
    await Promise.all(this.#all().map((one) => one.stop()));
  }

  /** Something changed. */
  touch(): void {
    this.#revision += 1;
    this.#waiters.wakeAll();
  }

  async view(): Promise<ClusterView> {
    if (this.#isStopped) throw ended();
    const freshAt = this.#freshAt();
    if (freshAt === undefined) throw this.#stale();
    return { ...this.#take(), freshAt };
  }

  async refresh(signal: AbortSignal | undefined): Promise<ClusterView> {
    if (this.#isStopped || signal?.aborted === true) throw ended();
    const work = Promise.all(this.#all().map((one) => one.refresh()));
    await unlessAborted(work, signal);
    return this.view();
  }

  async changed({ signal, after }: ChangedOptions): Promise<void> {
    const from = after ?? this.#revision;
    for (;;) {
      if (this.#isStopped || signal?.aborted === true) throw ended();
      // Before the first sync there is nothing to look at, whatever changed.
      if (this.#revision > from && this.#freshAt() !== undefined) return;
      await this.#waiters.wait(signal);
    }
  }

  #all(): readonly Reflector<unknown>[] {
    const { nodes, pods } = this.#collections;
    return pods === undefined ? [nodes] : [nodes, pods];
  }

  /** Of the collection that has gone longest without proof. */
  #freshAt(): number | undefined {
    let oldest: number | undefined;
    for (const { freshAt } of this.#all()) {
      if (freshAt === undefined) return undefined;
      oldest = Math.min(oldest ?? freshAt, freshAt);
    }
    return oldest;
  }

  #take(): Picture {
    if (this.#picture?.revision !== this.#revision) {
      this.#picture = {
        revision: this.#revision,
        nodes: [...this.#collections.nodes.items.values()],
        pods: [...(this.#collections.pods?.items.values() ?? [])],
      };
    }
    return this.#picture;
  }

  #stale(): Unreachable {
    const [trouble] = this.#all().flatMap(({ lastTrouble }) => lastTrouble ?? []);
    return new Unreachable('VIEW_STALE', 'the cluster was not read yet', {
      cause: trouble,
      facts: { lastTrouble: trouble?.message ?? 'the first list is under way' },
    });
  }
}

function ended(): Cancelled {
  return new Cancelled('CANCELLED', 'called off');
}

function unlessAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return work;
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(ended());
    signal.addEventListener('abort', onAbort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });
}
