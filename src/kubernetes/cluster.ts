// SPDX-License-Identifier: Apache-2.0

import type { Pod } from '../model/pod.ts';
import type { PodSource } from '../model/pod-source.ts';
import type { Clock } from '../ports/clock.ts';
import type {
  BootstrapToken,
  BootstrapTokenOrder,
  ChangedOptions,
  Cluster,
  ClusterCallOptions,
  ClusterEvent,
  ClusterLease,
  ClusterLeaseRequest,
  ClusterNode,
  ClusterView,
  ContestedKey,
  EvictionOutcome,
  NodeChange,
  NodeDeclaration,
  NodeRef,
  PodRef,
  ReleaseOptions,
  TakenLease,
} from '../ports/cluster.ts';
import { Bug, Cancelled, type PvescalerError } from '../ports/errors.ts';
import type { Random } from '../ports/random.ts';
import type { Transport } from '../ports/transport.ts';
import { Api } from './api.ts';
import { createBootstrapToken } from './bootstrap-tokens.ts';
import { Events } from './events/events.ts';
import { evict } from './evict.ts';
import { Interner } from './interner.ts';
import { Leases } from './leases.ts';
import { nodeView } from './node-view.ts';
import { Nodes } from './nodes.ts';
import type { ApiObject, NodeObject } from './objects.ts';
import { podView } from './pod-view.ts';
import { Panorama } from './watch/panorama.ts';
import { Reflector } from './watch/reflector.ts';

export interface KubernetesClusterOptions {
  /** Knows the credentials already. */
  readonly transport: Transport;
  /** Base URL of the API server. */
  readonly server: string;
  /** What the server is trusted by, byte for byte; undefined: the system's roots. */
  readonly caPem: string | undefined;
  readonly clock: Clock;
  readonly random: Random;
  /** Where the Lease is; created if it is not there and we may. */
  readonly namespace?: string;
  /** Which process this is, in Events. */
  readonly instance?: string;
  /** Pods cost memory; who does not look at them need not watch them. */
  readonly watchPods?: boolean;
  /** What went wrong in the background, where nobody can be told by a rejection. */
  readonly onTrouble?: (error: PvescalerError) => void;
  /** A watch of a collection (`nodes`, `pods`) is over, and another one begins. */
  readonly onWatchRestart?: (resource: string, reason: string) => void;
  /** The longest any single request may take. */
  readonly requestTimeoutMs?: number;
  readonly pageSize?: number;
  readonly watchSeconds?: number;
}

/** Also the namespace of the manifests in deploy/. */
export const DEFAULT_NAMESPACE = 'pvescaler';

/** What a successor of a dead leader has to wait out, besides its lease. */
export const DEFAULT_REQUEST_TIMEOUT_MS = 15_000;

/** A cluster behind its API server. Begins to watch at once. */
export class KubernetesCluster implements Cluster {
  readonly #options: KubernetesClusterOptions;
  readonly #api: Api;
  readonly #nodes: Nodes;
  readonly #leases: Leases;
  readonly #events: Events;
  readonly #panorama: Panorama;
  readonly #interner = new Interner();
  readonly #closing = new AbortController();
  #uid: string | undefined;
  #ca: string | undefined;

  constructor(options: KubernetesClusterOptions) {
    this.#options = options;
    const { clock, random } = options;
    const requestTimeoutMs = options.requestTimeoutMs ?? DEFAULT_REQUEST_TIMEOUT_MS;
    const { transport, server } = options;
    this.#api = new Api({ transport, server, clock, requestTimeoutMs });
    this.#nodes = new Nodes({ api: this.#api, clock, random });
    const namespace = options.namespace ?? DEFAULT_NAMESPACE;
    this.#leases = new Leases({ api: this.#api, clock, namespace });
    const onTrouble = (error: PvescalerError) => options.onTrouble?.(error);
    const instance = options.instance ?? 'pvescaler';
    this.#events = new Events({ api: this.#api, clock, random, instance, onTrouble });
    this.#ca = options.caPem;
    this.#panorama = new Panorama({
      nodes: this.#reflect<ClusterNode>('/api/v1/nodes', (object: NodeObject) => nodeView(object)),
      ...(options.watchPods !== false && {
        pods: this.#reflect<Pod>('/api/v1/pods', (object) => this.#podView(object)),
      }),
    });
    this.#panorama.start();
  }

  /** URL of the API server. */
  get server(): string {
    return this.#options.server;
  }

  async uid(options?: ClusterCallOptions): Promise<string> {
    this.#uid ??= await this.#call(options, async (signal) => {
      const path = '/api/v1/namespaces/kube-system';
      const doing = 'read namespace kube-system';
      const { metadata } = await this.#api.require<ApiObject>({ path, doing, signal });
      if ((metadata.uid ?? '') === '') throw new Bug('UNEXPECTED_ANSWER', `${doing}: no uid`);
      return metadata.uid;
    });
    return this.#uid ?? '';
  }

  view(): Promise<ClusterView> {
    return this.#panorama.view();
  }

  refresh(options?: ClusterCallOptions): Promise<ClusterView> {
    return this.#panorama.refresh(options?.signal);
  }

  changed(options: ChangedOptions = {}): Promise<void> {
    return this.#panorama.changed(options);
  }

  declareNode(
    node: NodeRef,
    declaration: NodeDeclaration,
    options?: ClusterCallOptions,
  ): Promise<readonly ContestedKey[]> {
    return this.#call(options, (signal) => this.#nodes.declare(node, declaration, { signal }));
  }

  changeNode(node: NodeRef, change: NodeChange, options?: ClusterCallOptions): Promise<void> {
    return this.#call(options, (signal) => this.#nodes.change(node, change, { signal }));
  }

  deleteNode(node: NodeRef, options?: ClusterCallOptions): Promise<void> {
    return this.#call(options, (signal) => this.#nodes.delete(node, { signal }));
  }

  evict(pod: PodRef, options?: ClusterCallOptions): Promise<EvictionOutcome> {
    return this.#call(options, (signal) => evict(this.#api, pod, { signal }));
  }

  createBootstrapToken(
    order: BootstrapTokenOrder,
    options?: ClusterCallOptions,
  ): Promise<BootstrapToken> {
    const { clock, random } = this.#options;
    return this.#call(options, (signal) =>
      createBootstrapToken({ api: this.#api, clock, random }, order, { signal }),
    );
  }

  async serverCa(options?: ClusterCallOptions): Promise<string> {
    this.#ca ??= await this.#call(options, (signal) => this.#publishedCa(signal));
    return this.#ca;
  }

  async emit(event: ClusterEvent): Promise<void> {
    if (!this.#closing.signal.aborted) await this.#events.emit(event, this.#closing.signal);
  }

  acquireLease(request: ClusterLeaseRequest, options?: ClusterCallOptions): Promise<TakenLease> {
    return this.#call(options, (signal) => this.#leases.acquire(request, { signal }));
  }

  renewLease(
    lease: ClusterLease,
    durationMs: number,
    options?: ClusterCallOptions,
  ): Promise<ClusterLease> {
    return this.#call(options, (signal) => this.#leases.renew(lease, durationMs, { signal }));
  }

  releaseLease(lease: ClusterLease, options?: ReleaseOptions): Promise<void> {
    return this.#call(options, (signal) => this.#leases.release(lease, { ...options, signal }));
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#panorama.stop();
    await this.#options.transport.close();
  }

  async #call<T>(
    options: ClusterCallOptions | undefined,
    work: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const { signal: closing } = this.#closing;
    const signal = options?.signal ? AbortSignal.any([options.signal, closing]) : closing;
    if (signal.aborted) throw new Cancelled('CANCELLED', 'called off before it began');
    return work(signal);
  }

  #reflect<T>(path: string, project: (object: ApiObject) => T | undefined): Reflector<T> {
    const { clock, random, pageSize, watchSeconds } = this.#options;
    return new Reflector<T>({
      api: this.#api,
      clock,
      random,
      path,
      project,
      onChange: () => this.#panorama.touch(),
      onTrouble: (error) => this.#options.onTrouble?.(error),
      onRestart: (reason) => this.#options.onWatchRestart?.(path.split('/').at(-1) ?? '', reason),
      ...(pageSize !== undefined && { pageSize }),
      ...(watchSeconds !== undefined && { watchSeconds }),
    });
  }

  #podView(object: PodSource): Pod | undefined {
    const pod = podView(object, this.#interner);
    if (pod.ok) return pod.value;
    this.#options.onTrouble?.(new Bug('UNEXPECTED_ANSWER', pod.problem));
    return undefined;
  }

  /** Every cluster publishes it for its pods. */
  async #publishedCa(signal: AbortSignal): Promise<string> {
    const doing = 'read config map kube-system/kube-root-ca.crt';
    const path = '/api/v1/namespaces/kube-system/configmaps/kube-root-ca.crt';
    const map = await this.#api.require<{ readonly data?: Readonly<Record<string, string>> }>({
      path,
      doing,
      signal,
    });
    const pem = map.data?.['ca.crt'] ?? '';
    if (pem === '') throw new Bug('UNEXPECTED_ANSWER', `${doing}: it has no ca.crt`);
    return pem;
  }
}
