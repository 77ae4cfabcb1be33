// SPDX-License-Identifier: Apache-2.0
// requested → placed, for all machines that wait for a place, in the order of their requests.
import type { Machine } from '../../model/machine.ts';
import { InvalidConfig } from '../../ports/errors.ts';
import { backoffOf } from '../capacity/backoff.ts';
import type { PlacementRefusal } from '../capacity/capacity-forecast.ts';
import { place } from '../capacity/place.ts';
import { placeVm } from '../capacity/place-vm.ts';
import { isReadingStorages } from '../capacity/storage-space.ts';
import { MachineReconcile } from '../context/machine-reconcile.ts';
import type { ReconcileContext } from '../context/reconcile-context.ts';
import type { PoolSettings } from '../context/settings.ts';
import { missingSettings, settingsOf } from '../context/vm-settings.ts';
import { failMachine } from './fail-machine.ts';

export interface PlacementResult {
  readonly placed: readonly Machine[];
  /** Ids of machines that stay requested. */
  readonly unplaced: ReadonlySet<string>;
}

export async function placeRequested(
  context: ReconcileContext,
  isSelected: (machine: Machine) => boolean = () => true,
): Promise<PlacementResult> {
  const waiting = context.records.index
    .inPhase('requested')
    // Skip machines cancelled since the pass began; otherwise a VM is created after its cancellation.
    .filter(({ id }) => !context.records.isDeletionRequested(id))
    .filter(isSelected)
    .toSorted((a, b) => a.requestedAt - b.requestedAt || (a.id < b.id ? -1 : 1));
  for (const machine of waiting) {
    await placeOne(context, machine);
    await context.yieldToEventLoop();
  }
  const now = waiting.flatMap(({ id }) => context.records.find(id) ?? []);
  const unplaced = now.filter(({ phase }) => phase === 'requested').map(({ id }) => id);
  return { placed: now.filter(({ phase }) => phase === 'placed'), unplaced: new Set(unplaced) };
}

async function placeOne(context: ReconcileContext, machine: Machine): Promise<void> {
  const pool = settingsOf(context.settings, machine);
  if (pool === undefined) {
    const message = `${missingSettings(machine)} is not in the config`;
    return failMachine(
      new MachineReconcile(context, machine.id),
      new InvalidConfig('CONFIG_INVALID', message),
    );
  }
  const refusal = await placeUnlessBackedOff(context, machine, pool);
  if (refusal === undefined) return;
  const noSpace = context.state.noSpaceErrors.get(machine.id);
  if (noSpace !== undefined && !TEMPORARY.includes(refusal.code)) {
    return failMachine(new MachineReconcile(context, machine.id), noSpace);
  }
  // A person waits for the answer, and asks again when something has changed. A host that is being read may fit.
  const isFinal = !TEMPORARY.includes(refusal.code) && !isReadingStorages(context);
  if (machine.vm !== undefined && isFinal) {
    return failUnplaced(context, machine, refusal);
  }
  await failIfUnplacedTooLong(context, machine, refusal);
}

async function placeUnlessBackedOff(
  context: ReconcileContext,
  machine: Machine,
  pool: PoolSettings,
): Promise<PlacementRefusal | undefined> {
  if (machine.vm !== undefined) return placeVm(context, machine, pool);
  const backoff = backoffOf(context, machine.pool);
  if (backoff === undefined) return place(context, machine, pool);
  return { code: backoff.code, message: backoff.message };
}

const MAX_VIEW_AGE_MS = 10_000;

/**
 * Places machines that waited for a creation to end. Not a machine that lost its place since the view was taken: the
 * view does not show what took it. Not with an old view.
 */
export async function placeFreed(
  context: ReconcileContext,
  unplaced: ReadonlySet<string>,
): Promise<PlacementResult> {
  const isOld = [...context.views.values()].some(
    ({ takenAt }) => context.now - takenAt > MAX_VIEW_AGE_MS,
  );
  if (unplaced.size === 0 || isOld) return { placed: [], unplaced };
  return placeRequested(context, ({ id }) => unplaced.has(id));
}

/** Refusals that end without a change of capacity: the region cannot be read, or creations are limited. */
const TEMPORARY: readonly string[] = ['VIEW_STALE', 'HOSTS_BUSY'];

/**
 * With an unplaced timeout the front end prefers another pool to waiting. Machines of a pool's minimum keep waiting: they
 * would only be requested again.
 */
async function failIfUnplacedTooLong(
  context: ReconcileContext,
  machine: Machine,
  refusal: PlacementRefusal,
): Promise<void> {
  const { unplacedTimeoutMs } = context.settings;
  if (unplacedTimeoutMs === undefined || TEMPORARY.includes(refusal.code)) return;
  const reconcile = new MachineReconcile(context, machine.id);
  if (reconcile.elapsedMs('requestedAt', machine.requestedAt) < unplacedTimeoutMs) return;
  const intent = context.records.intents.find(({ id }) => id === machine.intent);
  if (intent?.requestedBy === 'minimum') return;
  await failUnplaced(context, machine, refusal);
}

async function failUnplaced(
  context: ReconcileContext,
  machine: Machine,
  { code, message }: PlacementRefusal,
): Promise<void> {
  await context.records.move(machine.id, 'failed', {
    failure: { code, message, at: context.now, phase: machine.phase },
    deletionReason: message,
  });
  await context.recordMachine(machine, {
    kind: 'failed',
    reason: code,
    message: `machine ${machine.id} found no place: ${message}`,
  });
}
