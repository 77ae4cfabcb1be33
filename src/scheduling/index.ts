// SPDX-License-Identifier: Apache-2.0
// Would this pod run there? What machines would these pods need? Can these nodes be emptied?
//
// Owns the semantics of kube-scheduler's filters as pure code, and the two simulations built on them. Every
// answer carries its reasons as data. Must not know where pods and nodes come from, what a machine is made
// of, or what is done with an answer. Start reading at `fits.ts`; each filter has a file in `filters/`; what
// they ask is kept in `state/`, which follows changes instead of counting again.

export { canEmpty, type Emptying, type EmptyOptions, type Move, type Stuck } from './empty.ts';
export { fits } from './fits.ts';
export {
  type KubernetesObjects,
  type NamespaceSource,
  snapshotFromKubernetes,
} from './from-kubernetes.ts';
export type { LimitHit } from './pack/budget.ts';
export type {
  DomainOffer,
  Limits,
  MachineSize,
  PoolOffer,
  SizeOffer,
  SizeRange,
} from './pack/offer.ts';
export { type PackOptions, pack } from './pack/pack.ts';
export type {
  ExistingPlacement,
  Packing,
  PlannedMachine,
  Refusal,
  Skipped,
  Step,
  Unplaced,
} from './pack/result.ts';
export { reasonText } from './reason-text.ts';
export {
  type ClaimProblem,
  FILTERS,
  type FilterName,
  type Reason,
  type ResourceShortfall,
  rejectsEverywhere,
  type Verdict,
} from './reasons.ts';
export { type ClusterObjects, Snapshot } from './snapshot.ts';
export { withNodes, withoutNodes, withoutPod, withPod } from './what-if.ts';
