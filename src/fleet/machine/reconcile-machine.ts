// SPDX-License-Identifier: Apache-2.0
// Reconciles one machine: calls the handler of its phase until it waits or is done, and decides what an error means.
import type { MachineId, Phase } from '../../model/machine.ts';
import { isTemplateGroup } from '../../model/role.ts';

import type { ErrorCode } from '../../ports/error-codes.ts';
import { asPvescalerError, PvescalerError, TimedOut } from '../../ports/errors.ts';
import { isMachineError } from '../context/machine-error.ts';
import {
  backoffMs,
  CONTINUE,
  DONE,
  MAX_BACKOFF_MS,
  MachineReconcile,
  type ReconcileResult,
  RecordCorrected,
  requeue,
} from '../context/machine-reconcile.ts';
import type { ReconcileContext } from '../context/reconcile-context.ts';

import { findOwnNode } from '../nodes/find-node.ts';
import { booting } from './booting.ts';
import { configuring } from './configuring.ts';
import { creating } from './creating.ts';
import { deleting } from './deleting.ts';
import { draining, isDrainOverdue } from './draining.ts';
import { failMachine, failOverdue, withLastError } from './fail-machine.ts';
import { joining } from './joining.ts';
import { placed } from './placed.ts';
import { ready } from './ready.ts';
import { starting } from './starting.ts';

type PhaseHandler = (reconcile: MachineReconcile) => Promise<ReconcileResult>;

const nothingToDo: PhaseHandler = () => Promise.resolve(DONE);

const HANDLERS: Readonly<Record<Phase, PhaseHandler>> = {
  // A pass places requested machines in order, see requested.ts.
  requested: nothingToDo,
  placed,
  creating,
  configuring,
  starting,
  booting,
  joining,
  ready,
  draining,
  deleting,
  kept: nothingToDo,
  failed: nothingToDo,
  gone: nothingToDo,
};

/** Phases before ready, which the provision timeout bounds. */
const PROVISIONING: readonly Phase[] = [
  'placed',
  'creating',
  'configuring',
  'starting',
  'booting',
  'joining',
];

/** More than any machine needs without waiting for Proxmox in between. */
const MAX_STEPS = 12;
/** Attempts per machine where Proxmox tried and failed; transient errors are bounded by the provision timeout alone. */
const MAX_ATTEMPTS = 3;
/** A host that comes back is used soon. Also the interval at which a machine in back-off is checked for its timeout. */
const MAX_UNREACHABLE_BACKOFF_MS = 30_000;
const RETRY_MS = 1_000;

export async function reconcileMachine(
  context: ReconcileContext,
  id: MachineId,
): Promise<ReconcileResult> {
  if (context.records.find(id) === undefined) return DONE;
  const reconcile = new MachineReconcile(context, id);
  if (mustWaitForRegion(reconcile)) return requeue(RETRY_MS, 'its region cannot be read');
  try {
    await reconcile.correctTimes();
    if (await failIfOverdue(reconcile)) return CONTINUE;
    const leftMs = (context.state.backoffs.get(id)?.until ?? 0) - context.clock.monotonic();
    if (leftMs > 0 && !isDrainOverdue(reconcile)) {
      return requeueInBackoff(leftMs, 'back-off after an error');
    }
    return await runHandlers(reconcile);
  } catch (error) {
    return error instanceof RecordCorrected ? CONTINUE : handleError(reconcile, error);
  }
}

/** A machine whose region cannot be read is left as it is; but a drain is undone in time. */
function mustWaitForRegion({ machine, isRegionReadable }: MachineReconcile): boolean {
  return !isRegionReadable && machine.phase !== 'draining';
}

async function runHandlers(reconcile: MachineReconcile): Promise<ReconcileResult> {
  let result: ReconcileResult = CONTINUE;
  for (let step = 0; result.next === 'continue' && step < MAX_STEPS; step += 1) {
    if (mustWaitForRegion(reconcile)) return requeue(RETRY_MS, 'its region cannot be read');
    result = await HANDLERS[reconcile.machine.phase](reconcile);
  }
  return result.next === 'continue' ? requeue(RETRY_MS, 'too many steps at once') : result;
}

async function failIfOverdue(reconcile: MachineReconcile): Promise<boolean> {
  const { phase, placedAt } = reconcile.machine;
  const timeoutMs = reconcile.pool?.provisionTimeoutMs;
  if (!PROVISIONING.includes(phase) || placedAt === undefined || timeoutMs === undefined)
    return false;
  if (reconcile.elapsedWhileJoinableMs('placedAt', placedAt) <= timeoutMs) return false;
  // The Node became Ready while no driver ran, and may run pods already.
  if (findOwnNode(reconcile)?.ready === true) return false;
  const seconds = Math.round(timeoutMs / 1_000);
  const message = withLastError(reconcile, `not ready within ${seconds} s, still ${phase}`);
  await failOverdue(reconcile, new TimedOut('PROVISION_TIMED_OUT', message));
  return true;
}

async function handleError(reconcile: MachineReconcile, thrown: unknown): Promise<ReconcileResult> {
  // An unexpected exception is a bug that concerns this machine; the others continue.
  const error = thrown instanceof PvescalerError ? thrown : asPvescalerError(thrown);
  if (!isMachineError(error)) throw error;
  reconcile.context.reportIfBug(error, `machine ${reconcile.id}`);
  const { phase, attempts } = reconcile.machine;
  if (!PROVISIONING.includes(phase) || mayBeUsedByPerson(reconcile)) {
    await reconcile.update({ attempts: attempts + 1 });
    return backOffMachine(reconcile, error);
  }
  if (isTransient(error) || isRefusedWhileJoining(reconcile, error)) {
    return backOffMachine(reconcile, error);
  }
  if (error.retry !== 'backoff' || attempts + 1 >= MAX_ATTEMPTS) {
    await failMachine(reconcile, error);
    return CONTINUE;
  }
  await reconcile.update({ attempts: attempts + 1 });
  return backOffMachine(reconcile, error);
}

/** A hand-made VM that has been started may be in use although no agent answers: no error deletes it. */
function mayBeUsedByPerson({ role, machine }: MachineReconcile): boolean {
  if (role === undefined || isTemplateGroup(machine.pool)) return false;
  return machine.phase === 'booting' || machine.phase === 'joining';
}

/**
 * Nothing was tried, or it is unknown what happened. A host whose cluster file system restarts refuses all credentials
 * for a moment; if the refusal lasts, the region cannot be read either.
 */
const TRANSIENT: readonly ErrorCode[] = [
  'VM_LOCKED',
  'VM_CHANGED',
  'CREDENTIALS_REFUSED',
  'TLS_NOT_TRUSTED',
];

function isTransient(error: PvescalerError): boolean {
  return isUnreachable(error) || TRANSIENT.includes(error.code);
}

function isUnreachable({ class: kind }: PvescalerError): boolean {
  return kind === 'Unreachable' || kind === 'TimedOut';
}

/**
 * A missing privilege or an unexpected answer of the API server. Deleting the machine would not help: the next one
 * would get no further.
 */
function isRefusedWhileJoining(
  { machine }: MachineReconcile,
  { class: kind }: PvescalerError,
): boolean {
  return machine.phase === 'joining' && (kind === 'Unauthorized' || kind === 'Bug');
}

async function backOffMachine(
  reconcile: MachineReconcile,
  error: PvescalerError,
): Promise<ReconcileResult> {
  const { backoffs } = reconcile.context.state;
  const count = (backoffs.get(reconcile.id)?.count ?? 0) + 1;
  const maxMs = isUnreachable(error) ? MAX_UNREACHABLE_BACKOFF_MS : MAX_BACKOFF_MS;
  const delayMs = backoffMs(count, maxMs);
  backoffs.set(reconcile.id, { until: reconcile.context.clock.monotonic() + delayMs, count });
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
  return requeueInBackoff(delayMs, error.code);
}

/** Reconciled before the end of a long back-off, but only to notice a timeout. */
function requeueInBackoff(leftMs: number, because: string): ReconcileResult {
  return requeue(Math.min(leftMs, MAX_UNREACHABLE_BACKOFF_MS), because);
}
