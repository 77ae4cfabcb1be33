// SPDX-License-Identifier: Apache-2.0
import { type Pod, podKey } from '../../model/pod.ts';
import type { Clock } from '../clock.ts';
import {
  type AcquiredLease,
  type BootstrapToken,
  type BootstrapTokenRequest,
  type ClaimRef,
  type Cluster,
  type ClusterCallOptions,
  type ClusterChanges,
  type ClusterEvent,
  type ClusterLease,
  type ClusterLeaseRequest,
  type ClusterView,
  type FieldConflict,
  MAX_BOOTSTRAP_TOKEN_MS,
  mayAct,
  type NodeChange,
  type NodeDeclaration,
  type NodeRef,
  type PodRef,
  type ReleaseOptions,
  type WaitForChangeOptions,
} from '../cluster.ts';
import { Cancelled, InvalidRequest, type PvescalerError, Unreachable } from '../errors.ts';
import type { Random } from '../random.ts';
import { WaitQueue } from '../wait-queue.ts';
import { leaseLost, MemoryClusterLeases } from './memory-cluster-leases.ts';
import { MemoryClusterState } from './memory-cluster-state.ts';

type ClusterMethod = Exclude<keyof Cluster, 'view' | 'changesSince' | 'waitForChange' | 'close'>;

/** Few, so that callers also meet a revision that is too old. */
const MAX_SEEN = 20;

export interface ClusterCall {
  readonly method: ClusterMethod;
  /** Name of the node, pod or lease. */
  readonly subject?: string;
}

interface MemoryClusterOptions {
  readonly clock: Clock;
  readonly random: Random;
  /** Shared by several instances, as replicas share a cluster; absent: a new, empty cluster. */
  readonly state?: MemoryClusterState;
  /** Starts without a connection: nothing can be read before `reconnect`. */
  readonly startDisconnected?: boolean;
}

/**
 * A cluster in memory. Tests change `state`. Methods for faults make the next call fail, drop a response after the call
 * took effect, or disconnect: the view then stays as it is and every call fails. `onCall` runs before each call.
 */
export class MemoryCluster implements Cluster {
  readonly state: MemoryClusterState;
  readonly calls: ClusterCall[] = [];
  onCall: ((call: ClusterCall) => void) | undefined;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #leases: MemoryClusterLeases;
  readonly #failures = new Map<ClusterMethod, PvescalerError[]>();
  readonly #dropped = new Map<ClusterMethod, number>();
  readonly #changes = new WaitQueue();
  readonly #unwatch: () => void;
  #isConnected: boolean;
  #isClosed = false;
  #view: ClusterView | undefined;
  /** The last views that a caller has seen, the newest last. */
  readonly #seen: ClusterView[] = [];

  constructor(options: MemoryClusterOptions) {
    this.#clock = options.clock;
    this.#random = options.random;
    this.state = options.state ?? new MemoryClusterState(options.random.uuid());
    this.#leases = new MemoryClusterLeases(this.state, options.clock);
    this.#isConnected = options.startDisconnected !== true;
    this.#refreshView();
    this.#unwatch = this.state.watch(() => this.#refreshView());
  }

  /** From now on the view does not change, and every call fails as if the API server were unreachable. */
  disconnect(): void {
    this.#refreshView();
    this.#isConnected = false;
  }

  reconnect(): void {
    this.#isConnected = true;
    this.#refreshView();
  }

  /** The next call of this method rejects with the error and has no effect. */
  failNext(method: ClusterMethod, error: PvescalerError): void {
    this.#failures.set(method, [...(this.#failures.get(method) ?? []), error]);
  }

  /** The next call of this method takes effect, but its caller receives an error. */
  dropResponse(method: ClusterMethod): void {
    this.#dropped.set(method, (this.#dropped.get(method) ?? 0) + 1);
  }

  uid(options?: ClusterCallOptions): Promise<string> {
    return this.#call({ method: 'uid' }, options, () => this.state.uid);
  }

  view(): Promise<ClusterView> {
    if (this.#isClosed) return Promise.reject(closed('view'));
    this.#refreshView();
    if (this.#view === undefined) return Promise.reject(notSynced());
    this.#remember(this.#view);
    return Promise.resolve(this.#view);
  }

  /** Compares with the view of that revision; undefined when it is not among the last ones that a caller has seen. */
  changesSince(revision: number): Promise<ClusterChanges | undefined> {
    if (this.#isClosed) return Promise.reject(closed('changesSince'));
    this.#refreshView();
    const now = this.#view;
    if (now === undefined) return Promise.reject(notSynced());
    const before = this.#seen.findLast((view) => view.revision === revision);
    this.#remember(now);
    return Promise.resolve(before && differences(before, now));
  }

  #remember(view: ClusterView): void {
    this.#seen.push(view);
    if (this.#seen.length > MAX_SEEN) this.#seen.shift();
  }

  refresh(options?: ClusterCallOptions): Promise<ClusterView> {
    return this.#call({ method: 'refresh' }, options, () => this.#refreshView() ?? this.#read());
  }

  waitForChange({ signal, afterRevision }: WaitForChangeOptions = {}): Promise<void> {
    const from = afterRevision ?? this.#view?.revision ?? 0;
    return this.#changes.waitUntil(() => (this.#view?.revision ?? 0) > from, signal);
  }

  declareNode(
    node: NodeRef,
    declaration: NodeDeclaration,
    options?: ClusterCallOptions,
  ): Promise<readonly FieldConflict[]> {
    const call = { method: 'declareNode', subject: node.name } as const;
    return this.#call(call, options, () => this.state.declareNode(node, declaration));
  }

  changeNode(node: NodeRef, change: NodeChange, options?: ClusterCallOptions): Promise<void> {
    const call = { method: 'changeNode', subject: node.name } as const;
    return this.#call(call, options, () => this.state.changeNode(node, change));
  }

  deleteNode(node: NodeRef, options?: ClusterCallOptions): Promise<void> {
    const call = { method: 'deleteNode', subject: node.name } as const;
    return this.#call(call, options, () => this.state.deleteNode(node));
  }

  evict(pod: PodRef, options?: ClusterCallOptions) {
    const call = { method: 'evict', subject: pod.name } as const;
    return this.#call(call, options, () => this.state.evict(pod));
  }

  podsOn(node: string, options?: ClusterCallOptions): Promise<readonly Pod[]> {
    const call = { method: 'podsOn', subject: node } as const;
    return this.#call(call, options, () => this.state.podsOn(node));
  }

  attachedVolumes(
    node: string,
    exceptClaims: readonly ClaimRef[],
    options?: ClusterCallOptions,
  ): Promise<readonly string[]> {
    const call = { method: 'attachedVolumes', subject: node } as const;
    return this.#call(call, options, () => this.state.attachedVolumes(node, exceptClaims));
  }

  createBootstrapToken(
    request: BootstrapTokenRequest,
    options?: ClusterCallOptions,
  ): Promise<BootstrapToken> {
    return this.#call({ method: 'createBootstrapToken' }, options, () => {
      if (!(request.lifetimeMs > 0 && request.lifetimeMs <= MAX_BOOTSTRAP_TOKEN_MS)) {
        throw new InvalidRequest(
          'REQUEST_INVALID',
          'the lifetime of a bootstrap token must be at most 1 hour',
        );
      }
      const letters = Buffer.from(this.#random.bytes(11)).toString('hex');
      const token = `${letters.slice(0, 6)}.${letters.slice(6)}`;
      const created = { token, expiresAt: this.#clock.now() + request.lifetimeMs };
      this.state.tokens.push({ ...request, ...created });
      return created;
    });
  }

  deleteBootstrapTokens(machine: string, options?: ClusterCallOptions): Promise<void> {
    return this.#call({ method: 'deleteBootstrapTokens', subject: machine }, options, () => {
      const own = this.state.tokens.filter((token) => token.machine === machine);
      for (const { token } of own) this.state.deletedTokens.add(token);
    });
  }

  serverCa(options?: ClusterCallOptions): Promise<string> {
    return this.#call({ method: 'serverCa' }, options, () => this.state.serverCa);
  }

  emit(event: ClusterEvent): Promise<void> {
    const work = () => void this.state.events.push(event);
    return this.#call({ method: 'emit', subject: event.regarding.name }, undefined, work).catch(
      () => undefined,
    );
  }

  acquireLease(request: ClusterLeaseRequest, options?: ClusterCallOptions): Promise<AcquiredLease> {
    const call = { method: 'acquireLease', subject: request.name } as const;
    return this.#call(call, options, () => this.#leases.acquire(request));
  }

  renewLease(
    lease: ClusterLease,
    durationMs: number,
    options?: ClusterCallOptions,
  ): Promise<ClusterLease> {
    const call = { method: 'renewLease', subject: lease.name } as const;
    // Checked locally: the holder needs no connection to know that its lease has expired.
    if (!mayAct(lease, this.#clock)) return Promise.reject(leaseLost(lease));
    return this.#call(call, options, () => this.#leases.renew(lease, durationMs));
  }

  releaseLease(lease: ClusterLease, options?: ReleaseOptions): Promise<void> {
    const call = { method: 'releaseLease', subject: lease.name } as const;
    return this.#call(call, options, () => this.#leases.release(lease, options?.unsettledMs ?? 0));
  }

  close(): Promise<void> {
    this.#isClosed = true;
    this.#unwatch();
    this.#changes.close();
    return Promise.resolve();
  }

  async #call<T>(
    call: ClusterCall,
    options: ClusterCallOptions | undefined,
    work: () => T,
  ): Promise<T> {
    // A real call takes at least one turn of the event loop and has no effect before it.
    await Promise.resolve();
    if (options?.signal?.aborted === true || this.#isClosed) throw closed(call.method);
    this.calls.push(call);
    this.onCall?.(call);
    const failure = this.#failures.get(call.method)?.shift();
    if (failure !== undefined) throw failure;
    if (!this.#isConnected) throw unreachable('the API server does not respond', false);
    const result = work();
    const dropped = this.#dropped.get(call.method) ?? 0;
    if (dropped === 0) return result;
    this.#dropped.set(call.method, dropped - 1);
    throw unreachable(`the response to ${call.method} was lost`, true);
  }

  /** Undefined while disconnected or closed. */
  #refreshView(): ClusterView | undefined {
    if (!this.#isConnected || this.#isClosed) return undefined;
    const isNew = this.#view?.revision !== this.state.revision;
    this.#view = this.#read();
    if (isNew) this.#changes.wakeAll();
    return this.#view;
  }

  #read(): ClusterView {
    return {
      nodes: [...this.state.nodes.values()],
      pods: [...this.state.pods.values()],
      workloads: this.state.workloads,
      freshAt: this.#clock.now(),
      revision: this.state.revision,
    };
  }
}

function notSynced(): Unreachable {
  return new Unreachable('VIEW_STALE', 'the cluster cache has not completed its first sync', {
    facts: { lastError: 'not connected' },
  });
}

function differences(before: ClusterView, now: ClusterView): ClusterChanges {
  return {
    nodes: changedItems(before.nodes, now.nodes, ({ name }) => name),
    pods: changedItems(before.pods, now.pods, podKey),
    ...(now.workloads !== before.workloads && now.workloads && { workloads: now.workloads }),
    freshAt: now.freshAt,
    revision: now.revision,
  };
}

// oxlint-disable-next-line max-params -- two lists and the name of their items
function changedItems<T>(
  before: readonly T[],
  now: readonly T[],
  keyOf: (item: T) => string,
): ReadonlyMap<string, T | undefined> {
  const known = new Set(before);
  const keys = new Set(now.map(keyOf));
  return new Map<string, T | undefined>([
    ...before.map(keyOf).flatMap((key) => (keys.has(key) ? [] : [[key, undefined] as const])),
    ...now.flatMap((item) => (known.has(item) ? [] : [[keyOf(item), item] as const])),
  ]);
}

function closed(method: string): Cancelled {
  return new Cancelled('CANCELLED', `${method} was cancelled`);
}

function unreachable(message: string, requestSent: boolean): Unreachable {
  return new Unreachable('KUBERNETES_UNREACHABLE', message, { facts: { requestSent } });
}
