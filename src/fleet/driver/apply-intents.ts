// SPDX-License-Identifier: Apache-2.0
// Applies requests to the records: afterwards each machine's record says what is to become of it, and the intent is
// done. Applying an intent twice has the effect of applying it once.
import { formatCount } from '../../model/format-text.ts';
import {
  type CancelDrainIntent,
  type CreateIntent,
  type Intent,
  isVmIntent,
  type MachineIntent,
  type ResumeIntent,
} from '../../model/intent.ts';
import type { Machine, MachineFailure, MachineId } from '../../model/machine.ts';
import { describeGroup } from '../../model/role.ts';
import { checkLimits, countAllowed } from '../../pools/index.ts';
import { DEFER_MS } from '../../ports/store.ts';
import { backoffOf } from '../capacity/backoff.ts';
import type { ReconcileContext } from '../context/reconcile-context.ts';
import type { PoolSettings } from '../context/settings.ts';
import { joinRefusal } from '../nodes/can-join.ts';
import { newMachineId } from '../records/records.ts';
import { cancelDrain, requestDrain } from './apply-drains.ts';
import type { WorkQueue } from './work-queue.ts';

type Queue = Pick<WorkQueue, 'runExclusive'>;

export async function applyIntents(context: ReconcileContext, queue: Queue): Promise<void> {
  for (const intent of openIntents(context.records.intents)) {
    // Carried out by the workers of the VM's host, see decide-vm.ts.
    if (isVmIntent(intent)) continue;
    if (intent.kind === 'resume') await resumePool(context, intent);
    else await applyIntent(context, queue, intent);
  }
}

async function resumePool(context: ReconcileContext, intent: ResumeIntent): Promise<void> {
  const { records } = context;
  await records.changePool(intent.pool, ({ pause, ...state }) =>
    pause === undefined ? undefined : state,
  );
  await records.putIntent({ ...intent, state: 'done' });
  await context.record({
    kind: 'did',
    subject: { pool: intent.pool },
    reason: 'PoolResumed',
    message: `pool ${intent.pool} is no longer paused, requested by ${intent.requestedBy}: ${intent.reason}`,
  });
}

/** In the order of the requests, so that a deletion finds the machine it names. */
function openIntents(intents: readonly Intent[]): readonly Intent[] {
  return intents
    .filter(({ state }) => state === 'open')
    .toSorted((a, b) => a.requestedAt - b.requestedAt || compareAtSameTime(a, b));
}

/** Creations first. */
function compareAtSameTime(a: Intent, b: Intent): number {
  const isCreate = (intent: Intent) => Number(intent.kind === 'create');
  return isCreate(b) - isCreate(a) || (a.id < b.id ? -1 : 1);
}

async function applyIntent(
  context: ReconcileContext,
  queue: Queue,
  intent: MachineIntent,
): Promise<void> {
  const { records } = context;
  let isComplete = true;
  for (const id of intent.machines) {
    const isApplied =
      intent.kind === 'create'
        ? await createRecord(context, intent, id)
        : await applyToMachine(context, queue, { intent, id });
    isComplete &&= isApplied;
  }
  if (!isComplete) return;
  await records.putIntent({ ...intent, state: 'done' });
  await context.record({
    kind: 'did',
    subject: { pool: intent.pool },
    reason: REASONS[intent.kind],
    message: `${VERBS[intent.kind]} ${formatCount(intent.machines.length, 'machine')} of ${describeGroup(intent.pool)}, requested by ${intent.requestedBy}: ${intent.reason}`,
    numbers: { machines: intent.machines.length },
  });
}

interface MachineRequest {
  readonly intent: Exclude<MachineIntent, CreateIntent>;
  readonly id: MachineId;
}

/** A worker that runs now continues from the phase it has read; the intent stays open until it has ended. */
async function applyToMachine(
  context: ReconcileContext,
  queue: Queue,
  { intent, id }: MachineRequest,
): Promise<boolean> {
  let isApplied = true;
  const isRun = await queue.runExclusive(id, async () => {
    if (intent.kind === 'cancel-drain') await cancelDrain(context, intent, id);
    else isApplied = await drainOrDelete(context, intent, id);
  });
  return isRun && isApplied;
}

async function drainOrDelete(
  context: ReconcileContext,
  intent: Exclude<MachineRequest['intent'], CancelDrainIntent>,
  id: MachineId,
): Promise<boolean> {
  const machine = context.records.find(id);
  if (intent.kind === 'drain' && machine !== undefined) {
    const outcome = await requestDrain(context, intent, machine);
    if (outcome !== 'without-node') return outcome === 'applied';
  }
  await requestDeletion(context, intent, id);
  return true;
}

const REASONS: Readonly<Record<MachineIntent['kind'], string>> = {
  create: 'MachinesRequested',
  delete: 'DeletionRequested',
  drain: 'DrainRequested',
  'cancel-drain': 'CancellationRequested',
  cancel: 'MachinesCancelled',
};

const VERBS: Readonly<Record<MachineIntent['kind'], string>> = {
  create: 'create',
  delete: 'delete',
  drain: 'drain',
  'cancel-drain': 'cancel the drain of',
  cancel: 'cancel',
};

/**
 * How long a machine waits that the settings do not allow. A replica with newer settings may have accepted its request: a
 * changed config reaches replicas one after the other, and this one in its next pass.
 */
const NEWER_SETTINGS_MS = 60_000;

/** False when the request stays open. */
async function createRecord(
  context: ReconcileContext,
  intent: CreateIntent,
  id: MachineId,
): Promise<boolean> {
  const { records, now } = context;
  if (records.find(id) !== undefined) return true;
  const machine = newMachine(intent, id, now);
  // With its cancellation it is gone at once.
  if (records.isDeletionRequested(id)) {
    await records.putMachine(machine);
    return true;
  }
  const failure = intent.isSelftest === true ? undefined : limitFailure(context, intent);
  const isAllowed = failure === undefined && isPoolKnown(context, intent);
  if (!isAllowed && Math.abs(now - intent.requestedAt) < NEWER_SETTINGS_MS) return false;
  await records.putMachine(
    failure === undefined ? machine : { ...machine, phase: 'failed', failure },
  );
  return true;
}

function newMachine(intent: CreateIntent, id: MachineId, now: number): Machine {
  return {
    id,
    pool: intent.pool,
    phase: 'requested',
    phaseSince: now,
    requestedAt: intent.requestedAt,
    intent: intent.id,
    size: intent.size,
    ...(intent.host !== undefined && { requiredHost: intent.host }),
    ...(intent.vm !== undefined && { vm: intent.vm }),
    ...(intent.isSelftest === true && { isSelftest: true }),
    attempts: 0,
  };
}

/** A hand-made VM belongs to no pool. */
function isPoolKnown(context: ReconcileContext, { pool, vm }: CreateIntent): boolean {
  return vm !== undefined || context.pool(pool) !== undefined;
}

/** Two processes may have requested at the same time, each within the limits; only the driver sees both requests. */
function limitFailure(
  context: ReconcileContext,
  { pool: name, size }: CreateIntent,
): MachineFailure | undefined {
  const pool = context.pool(name);
  if (pool === undefined) return undefined;
  const members = context.records
    .limitedMembersOf(name)
    .filter(({ id, phase }) => phase !== undefined && !isVmMissing(context, id));
  const refusal = checkLimits(pool, { members, count: 1, size });
  if (refusal === undefined) return undefined;
  const { message } = refusal;
  return { code: 'POOL_AT_MAXIMUM', message, at: context.now, phase: 'requested' };
}

/** Its VM is gone; the record is kept for a while. */
function isVmMissing({ records }: ReconcileContext, id: MachineId): boolean {
  return records.find(id)?.missingSince !== undefined;
}

async function requestDeletion(
  context: ReconcileContext,
  intent: Intent,
  id: MachineId,
): Promise<void> {
  const { records, state } = context;
  const machine = records.find(id);
  if (machine === undefined) return;
  if (
    isDeletedOrFailed(machine) ||
    (machine.phase === 'kept' && !PERSONS.has(intent.requestedBy))
  ) {
    if (intent.kind !== 'cancel') await acknowledgeFailure(context, machine);
    return;
  }
  const deletionReason = `${intent.requestedBy}: ${intent.reason}`;
  if (machine.phase === 'requested' || machine.phase === 'placed') {
    await records.move(id, 'gone', { deletionReason });
    return;
  }
  if (intent.kind === 'cancel') return;
  // A running task is kept in the record and followed to its end: the VM it creates must be found.
  const { task } = machine;
  await records.move(id, 'deleting', { deletionReason, ...(task !== undefined && { task }) });
  state.backoffs.delete(id);
}

/** Only a person deletes a kept machine: an autoscaler acknowledges the failure. */
const PERSONS: ReadonlySet<string> = new Set(['cli', 'dashboard']);

/** A failed creation is shown until a front end deletes it. */
async function acknowledgeFailure(
  { records }: ReconcileContext,
  { id, phase, failure }: Machine,
): Promise<void> {
  if (phase === 'failed') await records.move(id, 'gone');
  else if ((phase === 'deleting' || phase === 'kept') && failure !== undefined) {
    await records.update(id, { failure: undefined });
  }
}

function isDeletedOrFailed({ phase }: Machine): boolean {
  return phase === 'deleting' || phase === 'failed' || phase === 'gone';
}

/**
 * Requests machines up to the pool's `min`. Only while all regions of the pool can be read and no VM there is
 * undecided: otherwise a machine that exists but is not known yet would be created twice.
 */
export async function maintainMinimum(context: ReconcileContext): Promise<void> {
  for (const pool of Object.values(context.settings.pools)) {
    if (pool.minKeptBy !== 'pvescaler') continue;
    const isReadable = pool.regions.every(
      (name) => context.views.has(name) && !context.undecided.has(name),
    );
    if (!isReadable || joinRefusal(context, pool) !== undefined) continue;
    if (backoffOf(context, pool.name) !== undefined) continue;
    const existing = context.records.membersOf(pool.name).length;
    const lacking = pool.limits.min - existing;
    const members = context.records.limitedMembersOf(pool.name);
    const count = countAllowed(pool, { members, count: lacking, size: pool.size });
    // Otherwise there is room again when the drains are over.
    const isAtLimit = count < lacking && members.length === existing;
    if (isAtLimit) await recordLimit(context, pool, existing + count);
    if (count > 0) await requestMachines(context, pool, count);
  }
}

function recordLimit(
  context: ReconcileContext,
  { name, limits }: PoolSettings,
  allowed: number,
): Promise<void> {
  return context.recordOnce(`minimum of ${name}`, {
    kind: 'refused',
    subject: { pool: name },
    reason: 'POOL_AT_MAXIMUM',
    message: `pool ${name} has a minimum of ${limits.min} machines; its limits of cpu and memory allow ${allowed}`,
    numbers: { min: limits.min, allowed },
  });
}

async function requestMachines(
  context: ReconcileContext,
  pool: PoolSettings,
  count: number,
): Promise<void> {
  const intent: CreateIntent = {
    id: context.random.uuid(),
    kind: 'create',
    pool: pool.name,
    requestedAt: context.now,
    requestedBy: 'minimum',
    reason: `the pool's minimum is ${pool.limits.min}`,
    state: 'open',
    machines: Array.from({ length: count }, () => newMachineId(context.random)),
    size: pool.size,
  };
  // After a crash, the next driver requests them again.
  await context.records.putIntent(intent, { deferMs: DEFER_MS });
}
