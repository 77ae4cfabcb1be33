// SPDX-License-Identifier: Apache-2.0
// What the status of a ProxmoxPool says. Nothing in it changes while nothing happens, so that it is not written again.
import type { PoolRefusal } from '../config/index.ts';
import type { PlacementRefusal, PoolStatus } from '../fleet/index.ts';
import { formatCount } from '../model/format-text.ts';
import type {
  PoolCondition,
  PoolConditionType,
  PoolObject,
  PoolObjectStatus,
} from '../ports/pool-objects.ts';

export interface PoolObjectFacts {
  readonly object: PoolObject;
  /** Why it is left out of the settings. */
  readonly refusal: PoolRefusal | undefined;
  /** Of the pool in the settings in use; undefined when they do not have the pool of this object. */
  readonly pool: PoolStatus | undefined;
  /** No autoscaler manages it. */
  readonly isFixed: boolean;
  /** Machines with the name of the pool that are not gone. Those of a pool of the config file do not count. */
  readonly machines: number;
  /** Why a requested machine is on no host yet. */
  readonly unplaced: PlacementRefusal | undefined;
  /** What the machines of a deleted pool wait for. */
  readonly blockers: readonly string[];
  readonly now: number;
}

const DEFAULT_GROUP_LABEL = 'autoscaler.proxmox/group';

type Judgement = Pick<PoolCondition, 'status' | 'reason' | 'message'>;

export function poolObjectStatus(facts: PoolObjectFacts): PoolObjectStatus {
  const { object, pool, machines } = facts;
  const { groupLabel } = object.spec;
  const label = typeof groupLabel === 'string' ? groupLabel : DEFAULT_GROUP_LABEL;
  return {
    observedGeneration: object.generation,
    replicas: machines,
    readyReplicas: pool?.ready ?? 0,
    minReplicas: pool?.limits.min ?? 0,
    maxReplicas: pool?.limits.max ?? 0,
    selector: `${label}=${object.name}`,
    conditions: [
      condition(facts, 'Ready', judgeReady(facts)),
      condition(facts, 'BackedOff', judgeBackoff(facts)),
      condition(facts, 'AtCapacity', judgeCapacity(facts)),
      condition(facts, 'Paused', judgePause(facts)),
    ],
  };
}

/** Figures in these messages change all the time: only the first message is kept. */
const REASONS_WITH_FIGURES = ['NoHostCapacity'];

function condition(
  { object, now }: PoolObjectFacts,
  type: PoolConditionType,
  judgement: Judgement,
): PoolCondition {
  const before = object.status?.conditions?.find((each) => each.type === type);
  const isSame = before?.status === judgement.status;
  const keepsMessage =
    isSame &&
    before.reason === judgement.reason &&
    before.observedGeneration === object.generation &&
    REASONS_WITH_FIGURES.includes(judgement.reason);
  return {
    type,
    ...judgement,
    ...(keepsMessage && { message: before.message }),
    observedGeneration: object.generation,
    lastTransitionTime: isSame ? before.lastTransitionTime : formatTime(now),
  };
}

function judgeReady({ object, refusal, pool, machines, blockers }: PoolObjectFacts): Judgement {
  if (object.isTerminating && machines > 0) {
    const left = `${formatCount(machines, 'machine')} to drain and delete`;
    const message = [left, ...blockers].join('; ');
    return { status: 'False', reason: 'Terminating', message };
  }
  if (refusal !== undefined) return { status: 'False', ...refusal };
  if (pool !== undefined) return { status: 'True', reason: 'InUse', message: 'The pool is in use' };
  const message = 'The settings in use do not have the pool yet: see the log of pvescaler';
  return { status: 'False', reason: 'NotApplied', message };
}

const NOT_IN_USE: Judgement = {
  status: 'Unknown',
  reason: 'NotInUse',
  message: 'The pool is not in use',
};

function judgeBackoff({ pool }: PoolObjectFacts): Judgement {
  if (pool === undefined) return NOT_IN_USE;
  const { backoff } = pool;
  if (backoff === undefined)
    return { status: 'False', reason: 'NoFailures', message: 'New machines did not fail lately' };
  const { code, message, until } = backoff;
  return {
    status: 'True',
    reason: 'MachinesFailed',
    message: `No machine is created before ${formatTime(until)}: ${code}: ${message}`,
  };
}

function judgeCapacity({ pool, isFixed, unplaced }: PoolObjectFacts): Judgement {
  if (pool === undefined) return NOT_IN_USE;
  if (unplaced !== undefined)
    return { status: 'True', reason: 'NoHostCapacity', message: unplaced.message };
  if (isFixed)
    return { status: 'False', reason: 'FixedSize', message: 'No autoscaler manages the pool' };
  if (pool.target >= pool.limits.max) {
    const message = `The pool has its maximum of ${formatCount(pool.limits.max, 'machine')}`;
    return { status: 'True', reason: 'AtMaximum', message };
  }
  if (pool.atLimit !== undefined)
    return { status: 'True', reason: 'AtMaximum', message: pool.atLimit };
  return { status: 'False', reason: 'BelowMaximum', message: 'The pool may grow' };
}

function judgePause({ pool }: PoolObjectFacts): Judgement {
  if (pool === undefined) return NOT_IN_USE;
  const { pause } = pool;
  if (pause === undefined)
    return { status: 'False', reason: 'NotPaused', message: 'The pool is not paused' };
  const message = `No machine is requested before ${formatTime(pause.until)}: ${pause.reason}`;
  return { status: 'True', reason: 'NoHelp', message };
}

/** As the API server writes times. */
function formatTime(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z');
}
