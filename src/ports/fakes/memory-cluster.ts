// SPDX-License-Identifier: Apache-2.0
import type { Clock } from '../clock.ts';
import {
  type BootstrapToken,
  type BootstrapTokenOrder,
  type ChangedOptions,
  type Cluster,
  type ClusterCallOptions,
  type ClusterEvent,
  type ClusterLease,
  type ClusterLeaseRequest,
  type ClusterView,
  type ContestedKey,
  LONGEST_BOOTSTRAP_TOKEN_MS,
  mayAct,
  type NodeChange,
  type NodeDeclaration,
  type NodeRef,
  type PodRef,
  type ReleaseOptions,
  type TakenLease,
} from '../cluster.ts';
import { Cancelled, InvalidRequest, type PvescalerError, Unreachable } from '../errors.ts';
import type { Random } from '../random.ts';
import { Waiters } from '../waiters.ts';
import { lost, MemoryClusterLeases } from './memory-cluster-leases.ts';
import { MemoryClusterState } from './memory-cluster-state.ts';

export type ClusterMethod = Exclude<keyof Cluster, 'view' | 'changed' | 'close'>;

export interface ClusterCall {
  readonly method: ClusterMethod;
  /** Name of the node, pod or lease. */
  readonly subject?: string;
}

export interface MemoryClusterOptions {
  readonly clock: Clock;
  readonly random: Random;
  /** To share one cluster between several; absent: a new, empty one. */
  readonly state?: MemoryClusterState;
  /** Begins without connection: nothing can be read before `reconnect`. */
  readonly startCutOff?: boolean;
}

/**
 * A cluster in memory. `state` is what a test changes; the knobs make the next call fail, lose an answer after the
 * call had its effect, or cut the connection: then the view stands still and every call fails. `onCall` sees every
 * call before it does anything.
 */
export class MemoryCluster implements Cluster {
  readonly state: MemoryClusterState;
  readonly calls: ClusterCall[] = [];
  onCall: ((call: ClusterCall) => void) | undefined;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #leases: MemoryClusterLeases;
  readonly #failures = new Map<ClusterMethod, PvescalerError[]>();
  readonly #lost = new Map<ClusterMethod, number>();
  readonly #waiters = new Waiters();
  readonly #unwatch: () => void;
  #isConnected: boolean;
  #isClosed = false;
  #seen: ClusterView | undefined;

  constructor(options: MemoryClusterOptions) {
    this.#clock = options.clock;
    this.#random = options.random;
    this.state = options.state ?? new MemoryClusterState(options.random.uuid());
    this.#leases = new MemoryClusterLeases(this.state, options.clock);
    this.#isConnected = options.startCutOff !== true;
    this.#look();
    this.#unwatch = this.state.watch(() => this.#look());
  }

  /** The view stands still from here on, and every call fails as if the API server were gone. */
  cutOff(): void {
    this.#look();
    this.#isConnected = false;
  }

  reconnect(): void {
    this.#isConnected = true;
    this.#look();
  }

  /** The next such call rejects with this and does nothing. */
  failNext(method: ClusterMethod, error: PvescalerError): void {
    this.#failures.set(method, [...(this.#failures.get(method) ?? []), error]);
  }

  /** The next such call does its work, and its caller never hears of it. */
  loseAnswer(method: ClusterMethod): void {
    this.#lost.set(method, (this.#lost.get(method) ?? 0) + 1);
  }

  uid(options?: ClusterCallOptions): Promise<string> {
    return this.#call({ method: 'uid' }, options, () => this.state.uid);
  }

  view(): Promise<ClusterView> {
    if (this.#isClosed) return Promise.reject(closed('view'));
    this.#look();
    if (this.#seen !== undefined) return Promise.resolve(this.#seen);
    return Promise.reject(
      new Unreachable('VIEW_STALE', 'the cluster was not read yet', {
        facts: { lastTrouble: 'not connected' },
      }),
    );
  }

  refresh(options?: ClusterCallOptions): Promise<ClusterView> {
    return this.#call({ method: 'refresh' }, options, () => this.#look() ?? this.#read());
  }

  async changed({ signal, after }: ChangedOptions = {}): Promise<void> {
    const from = after ?? this.#seen?.revision ?? 0;
    while ((this.#seen?.revision ?? 0) <= from) {
      if (this.#isClosed || signal?.aborted === true) throw closed('changed');
      await this.#waiters.wait(signal);
    }
  }

  declareNode(
    node: NodeRef,
    declaration: NodeDeclaration,
    options?: ClusterCallOptions,
  ): Promise<readonly ContestedKey[]> {
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

  createBootstrapToken(
    order: BootstrapTokenOrder,
    options?: ClusterCallOptions,
  ): Promise<BootstrapToken> {
    return this.#call({ method: 'createBootstrapToken' }, options, () => {
      if (!(order.lifetimeMs > 0 && order.lifetimeMs <= LONGEST_BOOTSTRAP_TOKEN_MS)) {
        throw new InvalidRequest('REQUEST_INVALID', 'a bootstrap token lasts an hour at most');
      }
      const letters = Buffer.from(this.#random.bytes(11)).toString('hex');
      const token = `${letters.slice(0, 6)}.${letters.slice(6)}`;
      const made = { token, expiresAt: this.#clock.now() + order.lifetimeMs };
      this.state.tokens.push({ ...order, ...made });
      return made;
    });
  }

  serverCa(options?: ClusterCallOptions): Promise<string> {
    return this.#call({ method: 'serverCa' }, options, () => this.state.serverCa);
  }

  emit(event: ClusterEvent): Promise<void> {
    const work = () => void this.state.events.push(event);
    return this.#call({ method: 'emit', subject: event.about.name }, undefined, work).catch(
      () => undefined,
    );
  }

  acquireLease(request: ClusterLeaseRequest, options?: ClusterCallOptions): Promise<TakenLease> {
    const call = { method: 'acquireLease', subject: request.name } as const;
    return this.#call(call, options, () => this.#leases.acquire(request));
  }

  renewLease(
    lease: ClusterLease,
    durationMs: number,
    options?: ClusterCallOptions,
  ): Promise<ClusterLease> {
    const call = { method: 'renewLease', subject: lease.name } as const;
    // Its holder knows without asking anybody, connected or not.
    if (!mayAct(lease, this.#clock)) return Promise.reject(lost(lease));
    return this.#call(call, options, () => this.#leases.renew(lease, durationMs));
  }

  releaseLease(lease: ClusterLease, options?: ReleaseOptions): Promise<void> {
    const call = { method: 'releaseLease', subject: lease.name } as const;
    return this.#call(call, options, () => this.#leases.release(lease, options?.unsettledMs ?? 0));
  }

  close(): Promise<void> {
    this.#isClosed = true;
    this.#unwatch();
    this.#waiters.wakeAll();
    return Promise.resolve();
  }

  async #call<T>(
    call: ClusterCall,
    options: ClusterCallOptions | undefined,
    work: () => T,
  ): Promise<T> {
    // Every call of a real one takes a turn of the event loop at least; none has an effect before that.
    await Promise.resolve();
    if (options?.signal?.aborted === true || this.#isClosed) throw closed(call.method);
    this.calls.push(call);
    this.onCall?.(call);
    const planned = this.#failures.get(call.method)?.shift();
    if (planned !== undefined) throw planned;
    if (!this.#isConnected) throw unreachable('the API server does not answer', false);
    const result = work();
    const lost = this.#lost.get(call.method) ?? 0;
    if (lost === 0) return result;
    this.#lost.set(call.method, lost - 1);
    throw unreachable(`the answer to ${call.method} was lost`, true);
  }

  /** Takes in what there is to see, if anything can be seen. */
  #look(): ClusterView | undefined {
    if (!this.#isConnected || this.#isClosed) return undefined;
    const isNew = this.#seen?.revision !== this.state.revision;
    this.#seen = this.#read();
    if (isNew) this.#waiters.wakeAll();
    return this.#seen;
  }

  #read(): ClusterView {
    return {
      nodes: [...this.state.nodes.values()],
      pods: [...this.state.pods.values()],
      freshAt: this.#clock.now(),
      revision: this.state.revision,
    };
  }
}

function closed(method: string): Cancelled {
  return new Cancelled('CANCELLED', `${method} was called off`);
}

function unreachable(message: string, requestSent: boolean): Unreachable {
  return new Unreachable('KUBERNETES_UNREACHABLE', message, { facts: { requestSent } });
}
