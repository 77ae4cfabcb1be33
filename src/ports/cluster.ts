// SPDX-License-Identifier: Apache-2.0
import type { Lease } from '../model/lease.ts';

/** The parts of a Kubernetes Node that the engine uses. */
export interface ClusterNode {
  readonly name: string;
  readonly uid: string;
  /** spec.providerID verbatim; empty while nobody has set it. */
  readonly providerId: string;
  /** status.nodeInfo.systemUUID in lower case; empty while not reported. */
  readonly systemUuid: string;
  readonly ready: boolean;
  readonly unschedulable: boolean;
  readonly createdAt: number;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly taints: readonly {
    readonly key: string;
    readonly value: string;
    readonly effect: string;
  }[];
  /** Quantities as Kubernetes writes them. */
  readonly allocatable: Readonly<Record<string, string>>;
}

export interface ClusterView {
  readonly nodes: readonly ClusterNode[];
  /** Wall clock of the last proof that the view is current (an event or a bookmark of the watch). */
  readonly freshAt: number;
}

/** `null` removes the key. Only what is named changes. */
export interface NodeChange {
  readonly labels?: Readonly<Record<string, string | null>>;
  readonly annotations?: Readonly<Record<string, string | null>>;
  readonly addTaints?: readonly {
    readonly key: string;
    readonly value: string;
    readonly effect: string;
  }[];
  readonly removeTaintKeys?: readonly string[];
  readonly unschedulable?: boolean;
  /** Accepted only while it is empty: Kubernetes never lets it change afterwards. */
  readonly providerId?: string;
}

export interface NodeRef {
  readonly name: string;
  /** A Node of the same name with another uid is another Node: NotFound. */
  readonly uid: string;
}

export interface BootstrapToken {
  /** `abcdef.0123456789abcdef`. A secret: never logged, never in an error. */
  readonly token: string;
  readonly expiresAt: number;
}

export interface BootstrapTokenOrder {
  readonly description: string;
  /** At most an hour. */
  readonly lifetimeMs: number;
  /** Groups the joining node authenticates as. */
  readonly groups: readonly string[];
  readonly usages: readonly ('authentication' | 'signing')[];
}

export type EvictionOutcome =
  | { readonly outcome: 'evicted' | 'already-gone' }
  /** A PodDisruptionBudget says no for now; ask again later. */
  | { readonly outcome: 'blocked'; readonly reason: string };

export interface ClusterEvent {
  readonly about: {
    readonly kind: 'Node' | 'Pod' | 'Namespace';
    readonly name: string;
    readonly namespace?: string;
    readonly uid?: string;
  };
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  readonly message: string;
}

export interface ClusterCallOptions {
  readonly signal?: AbortSignal | undefined;
}

/**
 * The Kubernetes cluster the machines join.
 *
 * Rejections are our errors only: Unreachable/KUBERNETES_UNREACHABLE, TimedOut, Unauthorized, Conflict,
 * NotFound, Cancelled. Reads come from a watched view and may be old: `freshAt` says how old, and the caller
 * decides nothing on a view it finds too old. Writes are finished when they resolve; all but `evict`,
 * `createBootstrapToken` and `emit` are idempotent.
 */
export interface Cluster {
  /** UID of the kube-system namespace: which cluster this is, whatever its name. */
  uid(options?: ClusterCallOptions): Promise<string>;
  /** Rejects with VIEW_STALE until the first sync is complete. */
  view(): Promise<ClusterView>;
  /** Resolves at the next change of the view; a hint to look again, nothing more. */
  changed(options?: ClusterCallOptions): Promise<void>;

  changeNode(node: NodeRef, change: NodeChange, options?: ClusterCallOptions): Promise<void>;
  /** Already gone, or another uid: resolves, nothing deleted. */
  deleteNode(node: NodeRef, options?: ClusterCallOptions): Promise<void>;
  evict(
    pod: { readonly namespace: string; readonly name: string; readonly uid: string },
    options?: ClusterCallOptions,
  ): Promise<EvictionOutcome>;

  createBootstrapToken(
    order: BootstrapTokenOrder,
    options?: ClusterCallOptions,
  ): Promise<BootstrapToken>;
  /** The server's CA bundle in PEM, as a joining node must trust it. */
  serverCa(options?: ClusterCallOptions): Promise<string>;
  /** Rate-limited and merged inside; never rejects for want of a right to write Events. */
  emit(event: ClusterEvent): Promise<void>;

  /**
   * Leader election by a Lease object, with the rules of the store's leases: exclusive, expiring, fenced by a
   * growing token.
   */
  acquireLease(
    request: { readonly name: string; readonly holder: string; readonly durationMs: number },
    options?: ClusterCallOptions,
  ): Promise<Lease>;
  renewLease(lease: Lease, durationMs: number, options?: ClusterCallOptions): Promise<Lease>;
  releaseLease(lease: Lease): Promise<void>;
  close(): Promise<void>;
}
