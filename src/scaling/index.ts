// SPDX-License-Identifier: Apache-2.0
// Decides which machines to create and which nodes to drain, and why not the others.
//
// Pure: no clock, no I/O. Must not know how a step is carried out. Start reading at `decide.ts`.

export type { PoolPauseRequest } from './breaker.ts';
export { decide } from './decide.ts';
export { findEvictionBlock, RemainingBudgets } from './eviction-rules.ts';
export { type Explained, type Explanation, type ExplanationLine, explain } from './explain.ts';
export type {
  HostCapacity,
  PoolChoice,
  ScalingHost,
  ScalingInput,
  ScalingMachine,
  ScalingNode,
  ScalingPool,
  ScalingSettings,
} from './input.ts';
export {
  EMPTY_MEMORY,
  type RequestedMachine,
  rememberRequested,
  type ScalingMemory,
} from './memory.ts';
export type {
  CancelStep,
  CreateStep,
  Decision,
  DrainStep,
  Facts,
  PendingPlacement,
  Plan,
  PlanCounts,
  PlannedMove,
  PlannedPods,
  PodName,
  Refusal,
  RefusalCode,
  Step,
  SubjectKind,
} from './plan.ts';
export {
  canonicalJson,
  parseStoredInput,
  restoreInput,
  STORED_INPUT_VERSION,
  type StoredInput,
  storeInput,
} from './stored-input.ts';
