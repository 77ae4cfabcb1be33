// SPDX-License-Identifier: Apache-2.0
// Takes one machine as far as it goes now, and decides what becomes of trouble on the way.

import type { Phase } from '../../model/machine.ts';
import type { MachineId } from '../../model/machine-id.ts';
import type { ErrorCode } from '../../ports/error-codes.ts';
import { type PvescalerError, TimedOut } from '../../ports/errors.ts';
import { myNode } from '../nodes/my-node.ts';
import { isLocalTrouble } from '../trouble.ts';
import type { Turn } from '../turn.ts';
import { configuring } from './configuring.ts';
import { creating, placed } from './creating.ts';
import { deleting } from './deleting.ts';
import { fail } from './fail.ts';
import { Job, type Step } from './job.ts';
import { joining } from './joining.ts';
import { booting, ready, starting } from './running.ts';

const HANDLERS: Readonly<Partial<Record<Phase, (job: Job) => Promise<Step>>>> = {
  placed,
  creating,
  configuring,
  starting,
  booting,
  joining,
  ready,
  deleting,
};

/** Phases in which a machine is on its way to being ready, and may take too long for it. */
const ON_ITS_WAY: readonly Phase[] = [
  'placed',
  'creating',
  'configuring',
  'starting',
  'booting',
  'joining',
];

/** More than any machine does without waiting for Proxmox in between. */
const MOST_STEPS = 12;
/** Of one phase, where Proxmox tried and failed; passing trouble is only bounded by the provision timeout. */
const MOST_ATTEMPTS = 3;
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 30_000;

export async function advance(turn: Turn, id: MachineId): Promise<void> {
  const job = new Job(turn, id);
  if (!isInSight(job) || (turn.memory.pauses.get(id)?.until ?? 0) > turn.now) return;
  try {
    if (!(await isOverdue(job))) await goOn(job);
  } catch (error) {
    await afterTrouble(job, error);
  }
}

/** A machine whose region cannot be read now is left as it is. */
function isInSight({ machine, turn }: Job): boolean {
  return machine.placement === undefined || turn.views.has(machine.placement.region);
}

async function goOn(job: Job): Promise<void> {
  let step: Step = 'again';
  for (let count = 0; step === 'again' && count < MOST_STEPS; count += 1) {
    step = (await HANDLERS[job.machine.phase]?.(job)) ?? 'wait';
  }
}

async function isOverdue(job: Job): Promise<boolean> {
  const { phase, placedAt } = job.machine;
  const timeoutMs = job.pool?.provisionTimeoutMs;
  if (!ON_ITS_WAY.includes(phase) || placedAt === undefined || timeoutMs === undefined)
    return false;
  if (job.turn.now - beganAt(job, placedAt) <= timeoutMs) return false;
  // It came while nobody looked, and may be at work already.
  if (myNode(job)?.ready === true) return false;
  const seconds = Math.round(timeoutMs / 1_000);
  const last = job.turn.memory.told.get(job.id);
  const why = last === undefined ? '' : `; the last trouble was ${last}`;
  const message = `it was still ${phase} after ${seconds} s${why}`;
  await fail(job, new TimedOut('PROVISION_TIMED_OUT', message));
  return true;
}

/** Nobody gets a token or becomes a Node while the cluster cannot be read, and that is not the machine's fault. */
function beganAt({ pool, turn }: Job, placedAt: number): number {
  return pool?.joins === true ? Math.max(placedAt, turn.memory.clusterStaleAt) : placedAt;
}

async function afterTrouble(job: Job, error: unknown): Promise<void> {
  if (!isLocalTrouble(error)) throw error;
  const { phase, attempts } = job.machine;
  if (!ON_ITS_WAY.includes(phase)) {
    await job.update({ attempts: attempts + 1 });
    return pause(job, error);
  }
  if (isPassing(error) || isRefusedLate(job, error)) return pause(job, error);
  if (error.retry !== 'backoff') return fail(job, error);
  if (attempts + 1 >= MOST_ATTEMPTS) return fail(job, error);
  await job.update({ attempts: attempts + 1 });
  await pause(job, error);
}

/**
 * Nothing was tried, or nobody knows: only looking again tells. A host whose cluster file system restarts refuses
 * everybody for a moment; where that is not why, the region cannot be read either, and all wait.
 */
const PASSING: readonly ErrorCode[] = [
  'VM_LOCKED',
  'VM_CHANGED',
  'CREDENTIALS_REFUSED',
  'TLS_NOT_TRUSTED',
];

function isPassing({ class: kind, code }: PvescalerError): boolean {
  return kind === 'Unreachable' || kind === 'TimedOut' || PASSING.includes(code);
}

/**
 * An account that may not finish what it began, for a moment or until somebody gives it the right, or an answer that
 * makes no sense: the machine has come that far, and the next one would come no further.
 */
function isRefusedLate({ machine }: Job, { class: kind }: PvescalerError): boolean {
  return machine.phase === 'joining' && (kind === 'Unauthorized' || kind === 'Bug');
}

async function pause(job: Job, error: PvescalerError): Promise<void> {
  const { pauses } = job.turn.memory;
  const count = (pauses.get(job.id)?.count ?? 0) + 1;
  const pauseMs = Math.min(FIRST_PAUSE_MS * 2 ** (count - 1), LONGEST_PAUSE_MS);
  pauses.set(job.id, { until: job.turn.now + pauseMs, count });
  const { pool, placement } = job.machine;
  await job.turn.tellOnce(job.id, {
    kind: 'failed',
    subject: { pool, machine: job.id, ...(placement !== undefined && { host: placement.host }) },
    reason: error.code,
    message: error.message,
  });
}
