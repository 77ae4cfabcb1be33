// SPDX-License-Identifier: Apache-2.0
import type { DaemonSet } from '../model/daemon-set.ts';
import type { DisruptionBudget } from '../model/disruption-budget.ts';
import type { Labels } from '../model/labels.ts';
import type { Lease } from '../model/lease.ts';
import type { Pod } from '../model/pod.ts';
import type { StorageObjects } from '../model/storage-objects.ts';
import type { Taint } from '../model/taints.ts';
import type { Clock } from './clock.ts';

/** The parts of a Kubernetes Node that the engine uses. */
export interface ClusterNode {
  readonly name: string;
  readonly uid: string;
  /** spec.providerID verbatim; empty while it is not set. */
  readonly providerId: string;
  /** status.nodeInfo.systemUUID in lower case; empty while not reported. */
  readonly systemUuid: string;
  readonly ready: boolean;
  /** Wall clock of the last change of the Ready condition; undefined while the condition is absent. */
  readonly readyChangedAt: number | undefined;
  /** Reason and message of the Ready condition; empty when the node is ready. */
  readonly notReadyReason: string;
  readonly unschedulable: boolean;
  /** Deleted, but kept by a finalizer. */
  readonly isTerminating: boolean;
  readonly createdAt: number;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  /** Keys that `declareNode` set and that no other manager has changed since; others may own them too. */
  readonly declared: DeclaredKeys;
  readonly taints: readonly Taint[];
  /** Internal and external IP addresses; no host names. */
  readonly addresses: readonly string[];
  /** Quantities as Kubernetes writes them. */
  readonly capacity: Readonly<Record<string, string>>;
  readonly allocatable: Readonly<Record<string, string>>;
  /** Features of its kubelet and runtime that pods may require. */
  readonly declaredFeatures: readonly string[];
}

export interface DeclaredKeys {
  readonly labels: readonly string[];
  readonly annotations: readonly string[];
}

/** What decides, beside Nodes and Pods, where pods can run and which of them may be evicted. */
export interface WorkloadObjects {
  readonly daemonSets: readonly DaemonSet[];
  readonly disruptionBudgets: readonly DisruptionBudget[];
  /** Labels of namespaces by name. */
  readonly namespaces: ReadonlyMap<string, Labels>;
  readonly storage: StorageObjects;
}

export interface ClusterView {
  readonly nodes: readonly ClusterNode[];
  /** Includes finished pods; empty when the adapter does not watch pods. */
  readonly pods: readonly Pod[];
  /** Absent when the adapter does not watch them. The same object until one of them changes. */
  readonly workloads?: WorkloadObjects;
  /**
   * Wall clock at which the view was last proved current by a list, a watch event, a bookmark or the orderly end of a
   * watch; the oldest such time of all collections. A healthy connection proves it at least once a minute, even in a
   * cluster without changes.
   */
  readonly freshAt: number;
  /** Grows with each change of this process's view; not comparable between processes. */
  readonly revision: number;
}

/** A healthy connection proves that it is up to date once a minute. */
const MAX_VIEW_AGE_MS = 90_000;
/** A synchronised wall clock goes back by small steps. */
const CLOCK_JITTER_MS = 1_000;

/** An older view decides nothing, nor one from the future, whose age is unknown: the wall clock was set back since. */
export function isViewFresh({ freshAt }: Pick<ClusterView, 'freshAt'>, now: number): boolean {
  const ageMs = now - freshAt;
  return ageMs <= MAX_VIEW_AGE_MS && ageMs >= -CLOCK_JITTER_MS;
}

/** What changed since an earlier revision: an object that changed twice is listed once, as it is now. */
export interface ClusterChanges {
  /** By name; undefined: deleted. */
  readonly nodes: ReadonlyMap<string, ClusterNode | undefined>;
  /** By `namespace/name`; undefined: deleted. */
  readonly pods: ReadonlyMap<string, Pod | undefined>;
  /** All of them, when one of them changed. */
  readonly workloads?: WorkloadObjects;
  readonly freshAt: number;
  readonly revision: number;
}

/** Changes only what is named; other taints stay. */
export interface NodeChange {
  /** Replaces a taint with the same key and effect. */
  readonly addTaints?: readonly Taint[];
  /** Removes taints with these keys, whatever their value and effect. */
  readonly removeTaintKeys?: readonly string[];
  readonly unschedulable?: boolean;
  /** Set whatever manager owns them, and not declared: other writers may change them again. */
  readonly labels?: Readonly<Record<string, string>>;
}

/**
 * The complete set of fields that pvescaler manages on a Node. Keys of an earlier declaration that this one does not
 * name are removed, unless another field manager owns them too.
 */
export interface NodeDeclaration {
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  /**
   * Accepted while the Node's is empty or equal; once set, Kubernetes never lets it change, so later declarations may
   * omit it. Otherwise Conflict/PROVIDER_ID_SET, and no part of the declaration is applied.
   */
  readonly providerId?: string;
}

/** A key that another field manager has set to a different value, which stays. */
export interface FieldConflict {
  readonly kind: 'label' | 'annotation';
  readonly key: string;
  /** Name of the field manager, `kubectl-label` for example. */
  readonly manager: string;
}

export interface NodeRef {
  readonly name: string;
  /** A Node of the same name with another uid is a different Node: NotFound. */
  readonly uid: string;
}

export interface BootstrapToken {
  /** `abcdef.0123456789abcdef`. A secret: never logged, never in an error. */
  readonly token: string;
  readonly expiresAt: number;
}

/** The admission policy in the manifests refuses tokens that last longer. */
export const MAX_BOOTSTRAP_TOKEN_MS = 3_600_000;

export interface BootstrapTokenRequest {
  /** Id of the machine that joins with the token, by which it is deleted. */
  readonly machine: string;
  readonly description: string;
  /**
   * More than zero, at most MAX_BOOTSTRAP_TOKEN_MS; otherwise InvalidRequest. A lifetime near the maximum is shortened by
   * some minutes to allow for clock skew; see `expiresAt`.
   */
  readonly lifetimeMs: number;
  /** Groups that the joining node authenticates as. All begin with `system:bootstrappers:`. */
  readonly groups: readonly string[];
  /** `signing` is for kubeadm's discovery; `authentication` is for the join itself. */
  readonly usages: readonly ('authentication' | 'signing')[];
}

export interface PodRef {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

/** A PersistentVolumeClaim. */
export interface ClaimRef {
  readonly namespace: string;
  readonly name: string;
}

export type EvictionOutcome =
  /** `already-gone`: the pod does not exist, or a different pod has its name. */
  | { readonly outcome: 'evicted' | 'already-gone' }
  /** A PodDisruptionBudget blocks the eviction for now; retry later. */
  | { readonly outcome: 'blocked'; readonly reason: string };

export interface ClusterEvent {
  readonly regarding: {
    readonly kind: 'Node' | 'Pod' | 'Namespace' | 'ProxmoxPool';
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

export interface WaitForChangeOptions extends ClusterCallOptions {
  /** The revision of the caller's view; resolves immediately if there is a newer one. Default: the current revision. */
  readonly afterRevision?: number;
}

/** A lease as its holder knows it. `expiresAt` is for display; `mayAct` decides. */
export interface ClusterLease extends Lease {
  /** Monotonic clock of this process, counted from before the acquire or renew request was sent. */
  readonly actUntil: number;
}

export interface AcquiredLease extends ClusterLease {
  /**
   * How long, from now, requests of the previous holder may still take effect: the value that it stored on release, or
   * zero if there was no holder. Undefined: unknown, because the holder died or its Lease was deleted.
   */
  readonly unsettledMs: number | undefined;
}

export interface ReleaseOptions extends ClusterCallOptions {
  /** How long requests of this holder may still take effect; absent: all have ended. */
  readonly unsettledMs?: number;
}

export interface ClusterLeaseRequest {
  readonly name: string;
  /** Unique per process start. */
  readonly holder: string;
  /** Rounded up to whole seconds. */
  readonly durationMs: number;
  /** A holder whose process is known to have ended, and how long requests of it may still take effect. */
  readonly ended?: { readonly holder: string; readonly unsettledMs: number } | undefined;
}

/**
 * Whether the holder may still start an action. Both clocks must allow it: the monotonic clock stands still while the
 * machine is suspended, and the wall clock may be set back.
 */
export function mayAct(lease: ClusterLease, clock: Clock): boolean {
  return clock.monotonic() < lease.actUntil && clock.now() < lease.expiresAt;
}

/**
 * The Kubernetes cluster that the machines join.
 *
 * Rejects only with our errors: Unreachable/KUBERNETES_UNREACHABLE, TimedOut, Unauthorized, Conflict, NotFound,
 * InvalidRequest, Cancelled. Reads come from a watch cache and may be stale: the caller checks `freshAt` and decides
 * nothing on a view that is too old. A write is complete when it resolves; all writes but `evict`,
 * `createBootstrapToken` and `emit` are idempotent. After `close` every call rejects with Cancelled.
 */
export interface Cluster {
  /** UID of the kube-system namespace, which identifies the cluster. */
  uid(options?: ClusterCallOptions): Promise<string>;
  /** Rejects with VIEW_STALE until the first sync is complete; `facts.lastError` contains the reason. */
  view(): Promise<ClusterView>;
  /**
   * The changes between that revision of this process's view and now. Undefined when the revision is too old: the caller
   * compares the view with what it knows; an unchanged object of the view is the same object as before. Rejects as `view`.
   */
  changesSince(revision: number): Promise<ClusterChanges | undefined>;
  /** Lists everything again; resolves with a view at least as new as the call. */
  refresh(options?: ClusterCallOptions): Promise<ClusterView>;
  /** Resolves at the next change of the view, including the first sync; the caller then reads the view. */
  waitForChange(options?: WaitForChangeOptions): Promise<void>;

  /**
   * Applies the declaration. Never creates a Node: NotFound/NODE_NOT_FOUND if it is gone or a different one has its name.
   * Keys with conflicts are skipped and returned; the rest is applied.
   */
  declareNode(
    node: NodeRef,
    declaration: NodeDeclaration,
    options?: ClusterCallOptions,
  ): Promise<readonly FieldConflict[]>;
  /** NotFound/NODE_NOT_FOUND as in `declareNode`. Conflict/NODE_CHANGED if others change the Node during every attempt. */
  changeNode(node: NodeRef, change: NodeChange, options?: ClusterCallOptions): Promise<void>;
  /** Resolves without effect if the Node is already gone or has another uid. */
  deleteNode(node: NodeRef, options?: ClusterCallOptions): Promise<void>;
  evict(pod: PodRef, options?: ClusterCallOptions): Promise<EvictionOutcome>;
  /** All pods on the node, also finished and terminating ones. Not from the cache: at least as new as the call. */
  podsOn(node: string, options?: ClusterCallOptions): Promise<readonly Pod[]>;
  /**
   * Names of the volumes that are attached to the node, or being attached or detached. Volumes of `exceptClaims` are left
   * out. At least as new as the call.
   */
  attachedVolumes(
    node: string,
    exceptClaims: readonly ClaimRef[],
    options?: ClusterCallOptions,
  ): Promise<readonly string[]>;

  createBootstrapToken(
    request: BootstrapTokenRequest,
    options?: ClusterCallOptions,
  ): Promise<BootstrapToken>;
  /**
   * Deletes the tokens that were created for a machine, also those of an earlier process. Without the right to delete
   * them it has no effect, and they expire.
   */
  deleteBootstrapTokens(machine: string, options?: ClusterCallOptions): Promise<void>;
  /** The server's CA bundle in PEM for joining nodes, byte for byte, because k3s hashes it. Read anew by each call. */
  serverCa(options?: ClusterCallOptions): Promise<string>;
  /** Rate-limited and deduplicated; never rejects. */
  emit(event: ClusterEvent): Promise<void>;

  /**
   * Leader election on a Lease object: exclusive, expiring, fenced by a growing token.
   *
   * Acquires the Lease if it does not exist, was released, is held by `ended`, or has the same holder name; the token grows each time. A
   * Lease of another holder is acquired only after this process has seen it unchanged for its whole duration on its own
   * monotonic clock, because wall clocks of other machines cannot be trusted. So the first call never acquires a held
   * Lease, however old it is; the caller retries. A Lease that is deleted while held counts as unchanged, because its
   * holder may not know yet. Until then Conflict/LEASE_HELD; the facts contain `holder`.
   */
  acquireLease(request: ClusterLeaseRequest, options?: ClusterCallOptions): Promise<AcquiredLease>;
  /**
   * Extends the lease from now, with the same token. LostLeadership once it has expired (by `mayAct`), was released,
   * acquired by another holder or deleted. Any other rejection leaves the lease as it was: retry until it expires.
   */
  renewLease(
    lease: ClusterLease,
    durationMs: number,
    options?: ClusterCallOptions,
  ): Promise<ClusterLease>;
  /** Releases the lease, so that the next holder need not wait. Has no effect on a lease that is no longer held. */
  releaseLease(lease: ClusterLease, options?: ReleaseOptions): Promise<void>;
  close(): Promise<void>;
}
