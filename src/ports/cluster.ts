// SPDX-License-Identifier: Apache-2.0
import type { Lease } from '../model/lease.ts';
import type { Pod } from '../model/pod.ts';
import type { Taint } from '../model/taints.ts';
import type { Clock } from './clock.ts';

/** The parts of a Kubernetes Node that the engine uses. */
export interface ClusterNode {
  readonly name: string;
  readonly uid: string;
  /** spec.providerID verbatim; empty while nobody has set it. */
  readonly providerId: string;
  /** status.nodeInfo.systemUUID in lower case; empty while not reported. */
  readonly systemUuid: string;
  readonly ready: boolean;
  /** Wall clock of the last change of the Ready condition; undefined while there is none. */
  readonly readyChangedAt: number | undefined;
  /** Why it is not ready, in the kubelet's or the node controller's words; empty when it is. */
  readonly notReadyReason: string;
  readonly unschedulable: boolean;
  /** Deleted, but a finalizer holds it. */
  readonly isTerminating: boolean;
  readonly createdAt: number;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  /** What of them `declareNode` set and nobody has changed since; others may hold it too. */
  readonly declared: DeclaredKeys;
  readonly taints: readonly Taint[];
  /** Where it is reached, inside and outside; no names. */
  readonly addresses: readonly string[];
  /** Quantities as Kubernetes writes them: what the machine has, and what of it pods may use. */
  readonly capacity: Readonly<Record<string, string>>;
  readonly allocatable: Readonly<Record<string, string>>;
}

export interface DeclaredKeys {
  readonly labels: readonly string[];
  readonly annotations: readonly string[];
}

export interface ClusterView {
  readonly nodes: readonly ClusterNode[];
  /** Finished ones included; empty when the adapter was told not to watch pods. */
  readonly pods: readonly Pod[];
  /**
   * Wall clock of the last proof that the view is current: a list, an event or a bookmark of the watch, or its orderly
   * end, of whichever collection has the oldest. A healthy connection proves itself at least once a minute, however quiet
   * the cluster is.
   */
  readonly freshAt: number;
  /** Grows with each change of what this process sees; means nothing to another process. */
  readonly revision: number;
}

/** Only what is named changes; others' taints stay. */
export interface NodeChange {
  /** One with the same key and effect is replaced. */
  readonly addTaints?: readonly Taint[];
  /** Whatever value and effect they have. */
  readonly removeTaintKeys?: readonly string[];
  readonly unschedulable?: boolean;
}

/**
 * All that is ours on a Node: what an earlier declaration set and this one does not name goes away, unless somebody
 * else holds it too.
 */
export interface NodeDeclaration {
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  /**
   * Accepted while it is empty or the same: Kubernetes never lets it change afterwards, so it stays without being
   * named again. Conflict/PROVIDER_ID_SET otherwise, and nothing else of the declaration is done either.
   */
  readonly providerId?: string;
}

/** A key that somebody else has set to another value. It is left to them. */
export interface ContestedKey {
  readonly kind: 'label' | 'annotation';
  readonly key: string;
  /** Whoever set it, in Kubernetes' words: `kubectl-label`. */
  readonly holder: string;
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

/** The admission policy that ships with the manifests refuses any that last longer. */
export const LONGEST_BOOTSTRAP_TOKEN_MS = 3_600_000;

export interface BootstrapTokenOrder {
  readonly description: string;
  /**
   * More than zero, at most LONGEST_BOOTSTRAP_TOKEN_MS: InvalidRequest otherwise. One near that is made some minutes
   * shorter, in case the clocks differ; `expiresAt` tells.
   */
  readonly lifetimeMs: number;
  /** Groups the joining node authenticates as: one of BOOTSTRAP_GROUPS. All begin with `system:bootstrappers:`. */
  readonly groups: readonly string[];
  /** `signing` is what kubeadm's discovery needs; `authentication` is the joining itself. */
  readonly usages: readonly ('authentication' | 'signing')[];
}

export interface PodRef {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

export type EvictionOutcome =
  /** `already-gone`: not there, or another pod of that name. */
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

export interface ChangedOptions extends ClusterCallOptions {
  /** The revision of the view that was looked at: if there is a newer one already, resolves at once. */
  readonly after?: number;
}

/** A lease as its holder knows it. `expiresAt` is for people and logs; `mayAct` judges. */
export interface ClusterLease extends Lease {
  /** Monotonic clock of this process, counted from before the request that won or renewed it was sent. */
  readonly actUntil: number;
}

/** One that was just acquired. */
export interface TakenLease extends ClusterLease {
  /**
   * How long, from now, requests of its former holder may still take effect: as that one said when it released it, and
   * zero if there was none. Undefined: it said nothing, because it died or the Lease was taken away from under it.
   */
  readonly unsettledMs: number | undefined;
}

export interface ReleaseOptions extends ClusterCallOptions {
  /** How long requests of this holder may still take effect; absent: they have all ended. */
  readonly unsettledMs?: number;
}

export interface ClusterLeaseRequest {
  readonly name: string;
  /** Unique per process start. */
  readonly holder: string;
  /** Whole seconds; a part of one counts as one more. */
  readonly durationMs: number;
}

/**
 * Whether the holder may still begin something. Both clocks are asked and either can say no: the monotonic one
 * stands still while the machine is suspended, the other may be set back.
 */
export function mayAct(lease: ClusterLease, clock: Clock): boolean {
  return clock.monotonic() < lease.actUntil && clock.now() < lease.expiresAt;
}

/**
 * The Kubernetes cluster the machines join.
 *
 * Rejections are our errors only: Unreachable/KUBERNETES_UNREACHABLE, TimedOut, Unauthorized, Conflict,
 * NotFound, InvalidRequest, Cancelled. Reads come from a watched view and may be old: `freshAt` says how old, and
 * the caller decides nothing on a view it finds too old. Writes are finished when they resolve; all but `evict`,
 * `createBootstrapToken` and `emit` are idempotent. After `close` every call rejects with Cancelled.
 */
export interface Cluster {
  /** UID of the kube-system namespace: which cluster this is, whatever its name. */
  uid(options?: ClusterCallOptions): Promise<string>;
  /** Rejects with VIEW_STALE until the first sync is complete; `facts.lastTrouble` then says what is in the way. */
  view(): Promise<ClusterView>;
  /** Everything is read anew; resolves with a view that contains all that was there when this was called. */
  refresh(options?: ClusterCallOptions): Promise<ClusterView>;
  /** Resolves at the next change of the view, the first sync included; a hint to look again, nothing more. */
  changed(options?: ChangedOptions): Promise<void>;

  /**
   * Sets what is ours and takes away what was. Never makes a Node: NotFound/NODE_NOT_FOUND if it is gone or another.
   * What somebody else has set to another value is left to them and told; the rest is done.
   */
  declareNode(
    node: NodeRef,
    declaration: NodeDeclaration,
    options?: ClusterCallOptions,
  ): Promise<readonly ContestedKey[]>;
  /** NotFound/NODE_NOT_FOUND if it is gone or another. Conflict/NODE_CHANGED if others never stop changing it. */
  changeNode(node: NodeRef, change: NodeChange, options?: ClusterCallOptions): Promise<void>;
  /** Already gone, or another uid: resolves, nothing deleted. */
  deleteNode(node: NodeRef, options?: ClusterCallOptions): Promise<void>;
  evict(pod: PodRef, options?: ClusterCallOptions): Promise<EvictionOutcome>;

  createBootstrapToken(
    order: BootstrapTokenOrder,
    options?: ClusterCallOptions,
  ): Promise<BootstrapToken>;
  /** The server's CA bundle in PEM, byte for byte, as a joining node must trust it: k3s hashes it. */
  serverCa(options?: ClusterCallOptions): Promise<string>;
  /** Rate-limited and merged inside; never rejects, whatever becomes of the Event. */
  emit(event: ClusterEvent): Promise<void>;

  /**
   * Leader election by a Lease object: exclusive, expiring, fenced by a growing token.
   *
   * Taken if there is none, if it was released, or if its holder is the very name that asks; the token grows each
   * time. Another's is taken only after this process has seen it unchanged for its whole duration on its own
   * monotonic clock, because nobody's wall clock can be trusted but one's own: so the first call never takes it,
   * however old it is, and the caller goes on asking. One that somebody removes while another is seen to hold it counts
   * as unchanged: its holder may not know yet. Conflict/LEASE_HELD until then; facts name `holder`.
   */
  acquireLease(request: ClusterLeaseRequest, options?: ClusterCallOptions): Promise<TakenLease>;
  /**
   * Prolongs from now; same token. LostLeadership once it expired (by `mayAct`), was released, taken or removed.
   * Any other rejection leaves the lease as it was: it may be tried again until it expires.
   */
  renewLease(
    lease: ClusterLease,
    durationMs: number,
    options?: ClusterCallOptions,
  ): Promise<ClusterLease>;
  /** Gives it back, so that a successor need not wait for its end. One that is no longer ours: does nothing. */
  releaseLease(lease: ClusterLease, options?: ReleaseOptions): Promise<void>;
  close(): Promise<void>;
}
