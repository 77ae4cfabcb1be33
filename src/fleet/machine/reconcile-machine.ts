// SPDX-License-Identifier: Apache-2.0
// Takes one machine as far as it goes now, and decides what becomes of trouble on the way.

import type { Phase } from '../../model/machine.ts';
import type { MachineId } from '../../model/machine-id.ts';
import type { ErrorCode } from '../../ports/error-codes.ts';
import { type PvescalerError, TimedOut } from '../../ports/errors.ts';
import { isMachineError } from '../context/machine-error.ts';
import { MachineReconcile, type Step } from '../context/machine-reconcile.ts';
import type { ReconcileContext } from '../context/reconcile-context.ts';
import { findOwnNode } from '../nodes/find-node.ts';
import { configuring } from './configuring.ts';
import { creating, placed } from './creating.ts';
import { deleting } from './deleting.ts';
import { failMachine } from './fail-machine.ts';
import { joining } from './joining.ts';
import { booting, ready, starting } from './running.ts';

const HANDLERS: Readonly<Partial<Record<Phase, (reconcile: MachineReconcile) => Promise<Step>>>> = {
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
const PROVISIONING: readonly Phase[] = [
  'placed',
  'creating',
  'configuring',
  'starting',
  'booting',
  'joining',
];

/** More than any machine does without waiting for Proxmox in between. */
const MAX_STEPS = 12;
/** Of one phase, where Proxmox tried and failed; passing trouble is only bounded by the provision timeout. */
const MAX_ATTEMPTS = 3;
const INITIAL_BACKOFF_MS = 1_000;
const MAX_BACKOFF_MS = 30_000;

export async function reconcileMachine(context: ReconcileContext, id: MachineId): Promise<void> {
  const reconcile = new MachineReconcile(context, id);
  if (!isRegionReadable(reconcile) || (context.state.backoffs.get(id)?.until ?? 0) > context.now)
    return;
  try {
    if (!(await isOverdue(reconcile))) await runHandlers(reconcile);
  } catch (error) {
    await handleError(reconcile, error);
  }
}

/** A machine whose region cannot be read now is left as it is. */
function isRegionReadable({ machine, context }: MachineReconcile): boolean {
  return machine.placement === undefined || context.views.has(machine.placement.region);
}

async function runHandlers(reconcile: MachineReconcile): Promise<void> {
  let step: Step = 'again';
  for (let count = 0; step === 'again' && count < MAX_STEPS; count += 1) {
    step = (await HANDLERS[reconcile.machine.phase]?.(reconcile)) ?? 'wait';
  }
}

async function isOverdue(reconcile: MachineReconcile): Promise<boolean> {
  const { phase, placedAt } = reconcile.machine;
  const timeoutMs = reconcile.pool?.provisionTimeoutMs;
  if (!PROVISIONING.includes(phase) || placedAt === undefined || timeoutMs === undefined)
    return false;
  if (reconcile.context.now - beganAt(reconcile, placedAt) <= timeoutMs) return false;
  // It came while nobody looked, and may be at work already.
  if (findOwnNode(reconcile)?.ready === true) return false;
  const seconds = Math.round(timeoutMs / 1_000);
  const last = reconcile.context.state.recorded.get(reconcile.id);
  const why = last === undefined ? '' : `; the last trouble was ${last}`;
  const message = `it was still ${phase} after ${seconds} s${why}`;
  await failMachine(reconcile, new TimedOut('PROVISION_TIMED_OUT', message));
  return true;
}

/** Nobody gets a token or becomes a Node while the cluster cannot be read, and that is not the machine's fault. */
function beganAt({ pool, context }: MachineReconcile, placedAt: number): number {
  return pool?.joins === true ? Math.max(placedAt, context.state.clusterStaleAt) : placedAt;
}

async function handleError(reconcile: MachineReconcile, error: unknown): Promise<void> {
  if (!isMachineError(error)) throw error;
  const { phase, attempts } = reconcile.machine;
  if (!PROVISIONING.includes(phase)) {
    await reconcile.update({ attempts: attempts + 1 });
    return backOffMachine(reconcile, error);
  }
  if (isTransient(error) || isRefusedWhileJoining(reconcile, error))
    return backOffMachine(reconcile, error);
  if (error.retry !== 'backoff') return failMachine(reconcile, error);
  if (attempts + 1 >= MAX_ATTEMPTS) return failMachine(reconcile, error);
  await reconcile.update({ attempts: attempts + 1 });
  await backOffMachine(reconcile, error);
}

/**
 * Nothing was tried, or nobody knows: only looking again tells. A host whose cluster file system restarts refuses
 * everybody for a moment; where that is not why, the region cannot be read either, and all wait.
 */
const TRANSIENT: readonly ErrorCode[] = [
  'VM_LOCKED',
  'VM_CHANGED',
  'CREDENTIALS_REFUSED',
  'TLS_NOT_TRUSTED',
];

function isTransient({ class: kind, code }: PvescalerError): boolean {
  return kind === 'Unreachable' || kind === 'TimedOut' || TRANSIENT.includes(code);
}

/**
 * An account that may not finish what it began, for a moment or until somebody gives it the right, or an answer that
 * makes no sense: the machine has come that far, and the next one would come no further.
 */
function isRefusedWhileJoining(
  { machine }: MachineReconcile,
  { class: kind }: PvescalerError,
): boolean {
  return machine.phase === 'joining' && (kind === 'Unauthorized' || kind === 'Bug');
}

async function backOffMachine(reconcile: MachineReconcile, error: PvescalerError): Promise<void> {
  const { backoffs } = reconcile.context.state;
  const count = (backoffs.get(reconcile.id)?.count ?? 0) + 1;
  const pauseMs = Math.min(INITIAL_BACKOFF_MS * 2 ** (count - 1), MAX_BACKOFF_MS);
  backoffs.set(reconcile.id, { until: reconcile.context.now + pauseMs, count });
  const { pool, placement } = reconcile.machine;
  await reconcile.context.recordOnce(reconcile.id, {
    kind: 'failed',
    subject: {
      pool,
      machine: reconcile.id,
      ...(placement !== undefined && { host: placement.host }),
    },
    reason: error.code,
    message: error.message,
  });
}
