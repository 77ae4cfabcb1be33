// SPDX-License-Identifier: Apache-2.0
import type { Pod } from '../../model/pod.ts';
import type {
  ClusterChanges,
  ClusterNode,
  ClusterView,
  WaitForChangeOptions,
  WorkloadObjects,
} from '../../ports/cluster.ts';
import { Cancelled, Unreachable } from '../../ports/errors.ts';
import { WaitQueue } from '../../ports/wait-queue.ts';
import { readWorkloads, type WorkloadReflectors } from '../workload-collections.ts';
import { ChangeLog, type LoggedKind } from './change-log.ts';
import type { Reflector } from './reflector.ts';

interface WatchedCollections {
  readonly nodes: Reflector<ClusterNode>;
  /** Absent: only Nodes are watched. */
  readonly others?: { readonly pods: Reflector<Pod>; readonly workloads: WorkloadReflectors };
}

type Snapshot = Pick<ClusterView, 'revision' | 'nodes' | 'pods' | 'workloads'>;

/** Joins the watched collections into one view and notifies callers of its next change. */
export class ClusterCache {
  readonly #collections: WatchedCollections;
  readonly #changes = new WaitQueue();
  /** Copied on demand, not on every watch event. */
  #snapshot: Snapshot | undefined;
  readonly #log = new ChangeLog();
  #workloads: { readonly revision: number; readonly objects: WorkloadObjects } | undefined;
  /** The revision of their last change. */
  #workloadsRevision = 0;
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

  /** A list that ends is a new revision even without a difference: it may complete the first sync. */
  notifyChange(kind: LoggedKind | 'workload', keys: readonly string[]): void {
    this.#revision += 1;
    if (kind !== 'workload') this.#log.add(this.#revision, kind, keys);
    else if (keys.length > 0) this.#workloadsRevision = this.#revision;
    this.#changes.wakeAll();
  }

  async view(): Promise<ClusterView> {
    if (this.#isStopped) throw cancelled();
    const freshAt = this.#freshAt();
    if (freshAt === undefined) throw this.#notSynced();
    return { ...this.#takeSnapshot(), freshAt };
  }

  async changesSince(revision: number): Promise<ClusterChanges | undefined> {
    if (this.#isStopped) throw cancelled();
    const freshAt = this.#freshAt();
    if (freshAt === undefined) throw this.#notSynced();
    const changed = this.#log.since(revision);
    if (changed === undefined) return undefined;
    const { nodes, others } = this.#collections;
    const workloads = this.#workloadsRevision > revision ? this.#readWorkloads() : undefined;
    return {
      nodes: new Map(Array.from(changed.node, (key) => [nodeName(key), nodes.get(key)])),
      pods: new Map(Array.from(changed.pod, (key) => [key, others?.pods.get(key)])),
      ...(workloads !== undefined && { workloads }),
      freshAt,
      revision: this.#revision,
    };
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
    const { nodes, others } = this.#collections;
    return others === undefined
      ? [nodes]
      : [nodes, others.pods, ...Object.values<Reflector<unknown>>({ ...others.workloads })];
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
      const workloads = this.#readWorkloads();
      this.#snapshot = {
        revision: this.#revision,
        nodes: this.#collections.nodes.values(),
        pods: this.#collections.others?.pods.values() ?? [],
        ...(workloads !== undefined && { workloads }),
      };
    }
    return this.#snapshot;
  }

  /** The same object until one of the collections changes. */
  #readWorkloads(): WorkloadObjects | undefined {
    const { others } = this.#collections;
    if (others === undefined) return undefined;
    const revision = this.#workloadsRevision;
    if (this.#workloads?.revision !== revision)
      this.#workloads = { revision, objects: readWorkloads(others.workloads) };
    return this.#workloads.objects;
  }

  #notSynced(): Unreachable {
    const [error] = this.#reflectors().flatMap(({ lastError }) => lastError ?? []);
    return new Unreachable('VIEW_STALE', 'the cluster cache has not completed its first sync', {
      cause: error,
      facts: { lastError: error?.message ?? 'the first list is in progress' },
    });
  }
}

/** Nodes have no namespace. */
function nodeName(key: string): string {
  return key.slice(1);
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
