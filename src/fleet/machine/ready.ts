// SPDX-License-Identifier: Apache-2.0
// ready: removes the seed, maintains the Node, and notices when VM or Node are gone.
import type { Machine } from '../../model/machine.ts';
import {
  CONTINUE,
  DONE,
  type MachineReconcile,
  type ReconcileResult,
  requeue,
} from '../context/machine-reconcile.ts';
import type { ReconcileContext } from '../context/reconcile-context.ts';

import { mayDeleteLost, mayDeleteWithoutVm, releaseHeldBack } from '../nodes/lost-machines.ts';
import { isNodeSettled, maintainNode } from '../nodes/maintain-node.ts';
import { lookUpVm, writeRegion } from './own-vm.ts';
import { isSeedRemoved, removeSeed } from './seed-volume.ts';

const MISSING_RECHECK_MS = 1_000;

export async function ready(reconcile: MachineReconcile): Promise<ReconcileResult> {
  const { context, machine } = reconcile;
  const isMarked = machine.placement?.hasRegionInMarker === true;
  if ((await isSeedRemoved(reconcile)) && isMarked && isUnchangedInView(context, machine)) {
    return maintain(reconcile);
  }
  const lookup = await lookUpVm(reconcile);
  switch (lookup.kind) {
    case 'ours':
      if (await writeRegion(reconcile, lookup)) return CONTINUE;
      await removeSeed(reconcile, lookup.config);
      return maintain(reconcile);
    case 'undecided':
      return requeue(MISSING_RECHECK_MS, `its VM is locked (${lookup.lock})`);
    case 'unreadable':
      throw lookup.error;
    case 'foreign':
      return handleMissingVm(reconcile, {
        why: `its VM id belongs to another VM: ${lookup.reason}`,
        isTakenOver: lookup.isSameVm,
      });
    case 'absent':
      return handleMissingVm(reconcile, { why: 'its VM is gone', isTakenOver: false });
  }
}

/** Whether a ready machine needs no work, by the views alone. Called for every machine in every pass. */
export function isSettled(context: ReconcileContext, machine: Machine): boolean {
  if (machine.phase !== 'ready' || machine.seedVolume !== undefined) return false;
  if (machine.placement === undefined || !context.views.has(machine.placement.region)) return true;
  return (
    machine.placement.hasRegionInMarker === true &&
    isUnchangedInView(context, machine) &&
    !context.state.missingSince.has(machine.id) &&
    context.records.pool(machine.pool).lost === undefined &&
    isNodeSettled(context, machine)
  );
}

/** The VM is in the view, on the known host and with its name. */
function isUnchangedInView(context: ReconcileContext, { placement }: Machine): boolean {
  if (placement === undefined) return false;
  const { host, name } = placement;
  const vm = context.vmInView(placement);
  return vm?.host === host && (vm.name ?? name) === name;
}

async function maintain(reconcile: MachineReconcile): Promise<ReconcileResult> {
  reconcile.context.state.missingSince.delete(reconcile.id);
  const result = await maintainNode(reconcile);
  await releaseHeldBack(reconcile);
  return result;
}

interface MissingVm {
  readonly why: string;
  /** The VM exists, but a person has removed or changed its marker. */
  readonly isTakenOver: boolean;
}

/** Deletes the machine after a while, not at once: a VM may be moving between hosts. */
async function handleMissingVm(
  reconcile: MachineReconcile,
  { why, isTakenOver }: MissingVm,
): Promise<ReconcileResult> {
  const { context, id, placement } = reconcile;
  const { missingSince } = context.state;
  const since = missingSince.get(id) ?? context.now;
  missingSince.set(id, since);
  if (context.now - since < context.settings.lostAfterMs) return requeue(MISSING_RECHECK_MS, why);
  const mayDelete = isTakenOver ? mayDeleteLost : mayDeleteWithoutVm;
  if (!(await mayDelete(reconcile))) return DONE;
  await reconcile.record({
    kind: 'saw',
    reason: 'MachineLost',
    message: `${placement.name}: ${why}`,
  });
  return reconcile.move('deleting', { deletionReason: why });
}
