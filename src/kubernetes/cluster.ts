// SPDX-License-Identifier: Apache-2.0

import { accepted, type Parsed } from '../model/parsed.ts';
import type { Pod } from '../model/pod.ts';
import type { PodSource } from '../model/pod-source.ts';
import type { Clock } from '../ports/clock.ts';
import type {
  AcquiredLease,
  BootstrapToken,
  BootstrapTokenRequest,
  ClaimRef,
  Cluster,
  ClusterCallOptions,
  ClusterChanges,
  ClusterEvent,
  ClusterLease,
  ClusterLeaseRequest,
  ClusterNode,
  ClusterView,
  EvictionOutcome,
  FieldConflict,
  NodeChange,
  NodeDeclaration,
  NodeRef,
  PodRef,
  ReleaseOptions,
  WaitForChangeOptions,
} from '../ports/cluster.ts';
import { Bug, Cancelled, type PvescalerError } from '../ports/errors.ts';
import type { Random } from '../ports/random.ts';
import type { Transport } from '../ports/transport.ts';
import { ApiClient } from './api-client.ts';
import { createBootstrapToken, deleteBootstrapTokens } from './bootstrap-tokens.ts';
import { ClusterLeases } from './cluster-leases.ts';
import { EventRecorder } from './events/event-recorder.ts';
import { evictPod } from './evict-pod.ts';
import { Interner } from './interner.ts';
import { listAttachedVolumes, listPodsOn } from './node-contents.ts';
import { NodeWriter } from './node-writer.ts';
import type { ApiObject, NodeObject } from './objects.ts';
import { parseNode } from './parse-node.ts';
import { parsePod } from './parse-pod.ts';
import { translateStatus } from './status.ts';
import { ClusterCache } from './watch/cluster-cache.ts';
import { Reflector } from './watch/reflector.ts';
import { type CreateReflector, createWorkloadReflectors } from './workload-collections.ts';

type ChangeKind = Parameters<ClusterCache['notifyChange']>[0];

export interface KubernetesClusterOptions {
  /** Adds the credentials itself. */
  readonly transport: Transport;
  /** Base URL of the API server. */
  readonly server: string;
  /** CA bundle that the server is verified against, byte for byte; undefined: the system's roots. */
  readonly caPem: string | undefined;
  readonly clock: Clock;
  readonly random: Random;
  /** Namespace of the Lease; created when it is missing and we have the right to. */
  readonly namespace?: string;
  /** `reportingInstance` of Events. */
  readonly instance?: string;
  /** `nodes` saves the memory of all other objects when the caller needs none. Default `all`. */
  readonly watch?: 'nodes' | 'all';
  /** Receives errors of background work, which no call can reject with. */
  readonly onError?: (error: PvescalerError) => void;
  /** Called when a watch of a collection (`nodes`, `pods`, …) has ended and the next one begins. */
  readonly onWatchRestart?: (resource: string, reason: string) => void;
  /** Limit for every request except watches. */
  readonly requestTimeoutMs?: number;
  readonly pageSize?: number;
  readonly watchSeconds?: number;
}

/** Also the namespace of the manifests in deploy/. */
export const DEFAULT_NAMESPACE = 'pvescaler';

/** After a leader dies, the next one waits this long beyond the lease: a last request may still take effect. */
export const DEFAULT_REQUEST_TIMEOUT_MS = 15_000;

/** A cluster behind its API server. The constructor starts the watches. */
export class KubernetesCluster implements Cluster {
  readonly #options: KubernetesClusterOptions;
  readonly #api: ApiClient;
  readonly #nodes: NodeWriter;
  readonly #leases: ClusterLeases;
  readonly #events: EventRecorder;
  readonly #cache: ClusterCache;
  readonly #interner = new Interner();
  readonly #closing = new AbortController();
  #uid: string | undefined;

  constructor(options: KubernetesClusterOptions) {
    this.#options = options;
    const { clock, random } = options;
    const requestTimeoutMs = options.requestTimeoutMs ?? DEFAULT_REQUEST_TIMEOUT_MS;
    const { transport, server } = options;
    this.#api = new ApiClient({ transport, server, clock, requestTimeoutMs });
    this.#nodes = new NodeWriter({ api: this.#api, clock, random });
    const namespace = options.namespace ?? DEFAULT_NAMESPACE;
    this.#leases = new ClusterLeases({ api: this.#api, clock, namespace });
    const onError = (error: PvescalerError) => options.onError?.(error);
    const instance = options.instance ?? 'pvescaler';
    this.#events = new EventRecorder({ api: this.#api, clock, random, instance, onError });
    this.#cache = new ClusterCache({
      nodes: this.#createReflector<ClusterNode>(
        { kind: 'node', path: '/api/v1/nodes' },
        (object: NodeObject) => accepted(parseNode(object)),
      ),
      ...(options.watch !== 'nodes' && { others: this.#createOtherReflectors() }),
    });
    this.#cache.start();
  }

  /** URL of the API server. */
  get server(): string {
    return this.#options.server;
  }

  async uid(options?: ClusterCallOptions): Promise<string> {
    this.#uid ??= await this.#call(options, async (signal) => {
      const path = '/api/v1/namespaces/kube-system';
      const operation = 'read namespace kube-system';
      const { metadata } = await this.#api.requestOrThrow<ApiObject>({ path, operation, signal });
      if ((metadata.uid ?? '') === '')
        throw new Bug('UNEXPECTED_ANSWER', `${operation}: the namespace has no uid`);
      return metadata.uid;
    });
    return this.#uid ?? '';
  }

  view(): Promise<ClusterView> {
    return this.#cache.view();
  }

  changesSince(revision: number): Promise<ClusterChanges | undefined> {
    return this.#cache.changesSince(revision);
  }

  refresh(options?: ClusterCallOptions): Promise<ClusterView> {
    return this.#cache.refresh(options?.signal);
  }

  waitForChange(options: WaitForChangeOptions = {}): Promise<void> {
    return this.#cache.waitForChange(options);
  }

  declareNode(
    node: NodeRef,
    declaration: NodeDeclaration,
    options?: ClusterCallOptions,
  ): Promise<readonly FieldConflict[]> {
    return this.#call(options, (signal) => this.#nodes.declare(node, declaration, { signal }));
  }

  changeNode(node: NodeRef, change: NodeChange, options?: ClusterCallOptions): Promise<void> {
    return this.#call(options, (signal) => this.#nodes.change(node, change, { signal }));
  }

  deleteNode(node: NodeRef, options?: ClusterCallOptions): Promise<void> {
    return this.#call(options, (signal) => this.#nodes.delete(node, { signal }));
  }

  evict(pod: PodRef, options?: ClusterCallOptions): Promise<EvictionOutcome> {
    return this.#call(options, (signal) => evictPod(this.#api, pod, { signal }));
  }

  podsOn(node: string, options?: ClusterCallOptions): Promise<readonly Pod[]> {
    const read = { api: this.#api, interner: this.#interner };
    return this.#call(options, (signal) => listPodsOn(node, { ...read, signal }));
  }

  attachedVolumes(
    node: string,
    exceptClaims: readonly ClaimRef[],
    options?: ClusterCallOptions,
  ): Promise<readonly string[]> {
    const api = this.#api;
    return this.#call(options, (signal) =>
      listAttachedVolumes(node, exceptClaims, { api, signal }),
    );
  }

  createBootstrapToken(
    request: BootstrapTokenRequest,
    options?: ClusterCallOptions,
  ): Promise<BootstrapToken> {
    const { clock, random } = this.#options;
    return this.#call(options, (signal) =>
      createBootstrapToken({ api: this.#api, clock, random }, request, { signal }),
    );
  }

  deleteBootstrapTokens(machine: string, options?: ClusterCallOptions): Promise<void> {
    return this.#call(options, (signal) => deleteBootstrapTokens(this.#api, machine, { signal }));
  }

  serverCa(options?: ClusterCallOptions): Promise<string> {
    return this.#call(options, (signal) => this.#readPublishedCa(signal));
  }

  async emit(event: ClusterEvent): Promise<void> {
    if (!this.#closing.signal.aborted) await this.#events.emit(event, this.#closing.signal);
  }

  acquireLease(request: ClusterLeaseRequest, options?: ClusterCallOptions): Promise<AcquiredLease> {
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
    await this.#cache.stop();
    await this.#options.transport.close();
  }

  async #call<T>(
    options: ClusterCallOptions | undefined,
    work: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const { signal: closing } = this.#closing;
    const signal = options?.signal ? AbortSignal.any([options.signal, closing]) : closing;
    if (signal.aborted) throw new Cancelled('CANCELLED', 'the call was cancelled before it began');
    return work(signal);
  }

  #createOtherReflectors() {
    const pods = this.#createReflector<Pod>(
      { kind: 'pod', path: '/api/v1/pods' },
      (object: PodSource) => parsePod(object, this.#interner),
    );
    const create: CreateReflector = (path, parse) =>
      this.#createReflector({ kind: 'workload', path }, parse);
    return { pods, workloads: createWorkloadReflectors(create, this.#interner) };
  }

  #createReflector<T>(
    { kind, path }: { readonly kind: ChangeKind; readonly path: string },
    parse: (source: never) => Parsed<T | undefined>,
  ): Reflector<T> {
    const { clock, random, pageSize, watchSeconds } = this.#options;
    return new Reflector<T>({
      api: this.#api,
      clock,
      random,
      path,
      // The API server has validated the object, and the path determines its type.
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- see above
      parse: (object) => this.#reportInvalid(parse(object as never)),
      onChange: (keys) => this.#cache.notifyChange(kind, keys),
      onError: (error) => this.#options.onError?.(error),
      onRestart: (reason) => this.#options.onWatchRestart?.(path.split('/').at(-1) ?? '', reason),
      ...(pageSize !== undefined && { pageSize }),
      ...(watchSeconds !== undefined && { watchSeconds }),
    });
  }

  #reportInvalid<T>(parsed: Parsed<T | undefined>): T | undefined {
    if (parsed.ok) return parsed.value;
    this.#options.onError?.(new Bug('UNEXPECTED_ANSWER', parsed.problem));
    return undefined;
  }

  /**
   * Every cluster publishes its CA to pods in this config map. It is read each time, because the CA may be rotated; the CA
   * of the connection is as old as its kubeconfig, and serves when the config map cannot be read.
   */
  async #readPublishedCa(signal: AbortSignal): Promise<string> {
    const operation = 'read config map kube-system/kube-root-ca.crt';
    const path = '/api/v1/namespaces/kube-system/configmaps/kube-root-ca.crt';
    const result = await this.#api.request<{
      readonly data?: Readonly<Record<string, string>>;
    }>({ path, operation, signal });
    if (!result.ok) {
      const { caPem } = this.#options;
      const isAbsent = result.status.code === 403 || result.status.code === 404;
      if (isAbsent && caPem !== undefined) return caPem;
      throw translateStatus(result.status, operation);
    }
    const pem = result.value.data?.['ca.crt'] ?? '';
    if (pem === '')
      throw new Bug('UNEXPECTED_ANSWER', `${operation}: the config map has no ca.crt`);
    return pem;
  }
}
