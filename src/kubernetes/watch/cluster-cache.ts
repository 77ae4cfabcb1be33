// SPDX-License-Identifier: Apache-2.0
import type { Pod } from '../../model/pod.ts';
import type { ClusterNode, ClusterView, WaitForChangeOptions } from '../../ports/cluster.ts';
import { Cancelled, Unreachable } from '../../ports/errors.ts';
import { WaitQueue } from '../../ports/wait-queue.ts';
import type { Reflector } from './reflector.ts';

interface WatchedCollections {
  readonly nodes: Reflector<ClusterNode>;
  /** Absent: pods are not watched. */
  readonly pods?: Reflector<Pod>;
}

type Snapshot = Pick<ClusterView, 'revision' | 'nodes' | 'pods'>;

/** Joins the watched collections into one view and notifies callers of its next change. */
export class ClusterCache {
  readonly #collections: WatchedCollections;
  readonly #changes = new WaitQueue();
  /** Copied on demand, not on every watch event. */
  #snapshot: Snapshot | undefined;
  #revision = 0;
  #isStopped = false;

  constructor(collections: WatchedCollections) {
    this.#collections = collections;
  }

  start(): void {
    for (const reflector of this.#reflectors()) reflector.start();
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#changes.close();
    await Promise.all(this.#reflectors().map((reflector) => reflector.stop()));
  }

  notifyChange(): void {
    this.#revision += 1;
    this.#changes.wakeAll();
  }

  async view(): Promise<ClusterView> {
    if (this.#isStopped) throw cancelled();
    const freshAt = this.#freshAt();
    if (freshAt === undefined) throw this.#notSynced();
    return { ...this.#takeSnapshot(), freshAt };
  }

  async refresh(signal: AbortSignal | undefined): Promise<ClusterView> {
    if (this.#isStopped || signal?.aborted === true) throw cancelled();
    const refreshed = Promise.all(this.#reflectors().map((reflector) => reflector.refresh()));
    await unlessAborted(refreshed, signal);
    return this.view();
  }

  waitForChange({ signal, afterRevision }: WaitForChangeOptions): Promise<void> {
    const from = afterRevision ?? this.#revision;
    // Before the first sync there is no view to read, so a change alone does not suffice.
    const hasChanged = () => this.#revision > from && this.#freshAt() !== undefined;
    return this.#changes.waitUntil(hasChanged, signal);
  }

  #reflectors(): readonly Reflector<unknown>[] {
    const { nodes, pods } = this.#collections;
    return pods === undefined ? [nodes] : [nodes, pods];
  }

  /** The oldest of the collections' times; undefined before the first sync of one of them. */
  #freshAt(): number | undefined {
    let oldest: number | undefined;
    for (const { freshAt } of this.#reflectors()) {
      if (freshAt === undefined) return undefined;
      oldest = Math.min(oldest ?? freshAt, freshAt);
    }
    return oldest;
  }

  #takeSnapshot(): Snapshot {
    if (this.#snapshot?.revision !== this.#revision) {
      this.#snapshot = {
        revision: this.#revision,
        nodes: [...this.#collections.nodes.items.values()],
        pods: [...(this.#collections.pods?.items.values() ?? [])],
      };
    }
    return this.#snapshot;
  }

  #notSynced(): Unreachable {
    const [error] = this.#reflectors().flatMap(({ lastError }) => lastError ?? []);
    return new Unreachable('VIEW_STALE', 'the cluster cache has not completed its first sync', {
      cause: error,
      facts: { lastError: error?.message ?? 'the first list is in progress' },
    });
  }
}

function cancelled(): Cancelled {
  return new Cancelled('CANCELLED', 'the call was cancelled');
}

function unlessAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return work;
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(cancelled());
    signal.addEventListener('abort', onAbort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });
}
