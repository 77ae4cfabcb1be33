// SPDX-License-Identifier: Apache-2.0
// Simulates kube-scheduler: does a pod fit on a node, which machines do pending pods need, can nodes be
// drained?
//
// Implements the semantics of kube-scheduler's filters as pure code, and two simulations on top of them. Every
// result has its reasons as data. Must not know where pods and nodes come from, how machines are created, or
// what a result is used for. Start reading at `check-fit.ts`. Each filter has a file in `filters/`. `state/`
// holds the data that filters read; it is updated incrementally.

export { checkFit } from './check-fit.ts';
export { type DrainAttempt, simulateDrains } from './drain-sequence.ts';
export {
  type DrainSimulation,
  type DrainSimulationOptions,
  type PodMove,
  simulateDrain,
  type UnmovablePod,
} from './drain-simulation.ts';
export type { ChooseTied } from './drain-targets.ts';
export { formatReason } from './format-reason.ts';
export {
  type KubernetesObjects,
  type NamespaceSource,
  snapshotFromKubernetes,
} from './from-kubernetes.ts';
export type { LimitHit } from './pack/budget.ts';
export type {
  DomainOffer,
  Limits,
  PlannedSize,
  PoolOffer,
  SizeOffer,
  SizeRange,
} from './pack/offer.ts';
export { type PackOptions, pack } from './pack/pack.ts';
export type {
  ExistingPlacement,
  Packing,
  PackingStep,
  PlannedMachine,
  PoolRefusal,
  SkippedPod,
  UnplacedPod,
} from './pack/result.ts';
export {
  type ClaimProblem,
  FILTER_NAMES,
  type FilterName,
  type FilterReason,
  type FitResult,
  type ResourceShortfall,
  rejectsEverywhere,
} from './reasons.ts';
export { type ClusterObjects, Snapshot } from './snapshot.ts';
export { SnapshotCache, type SnapshotChanges } from './snapshot-cache.ts';
export type { FeatureGates } from './state/feature-gates.ts';
export {
  type FittingPods,
  withExpectedNodes,
  withFittingPods,
  withNodes,
  withoutNodes,
  withoutPod,
  withPod,
  withPods,
} from './what-if.ts';
