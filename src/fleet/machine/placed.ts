// SPDX-License-Identifier: Apache-2.0
// placed → creating: waits for the image, then starts the creation.
import {
  DONE,
  type MachineReconcile,
  type ReconcileResult,
  requeue,
} from '../context/machine-reconcile.ts';

import { unknownVmReason } from '../context/unknown-vms.ts';
import { IMAGE_POLL_MS, isImagePresent, requireTemplate, startCreation } from './create-vm.ts';

const RECHECK_MS = 1_000;

export async function placed(reconcile: MachineReconcile): Promise<ReconcileResult> {
  const pool = reconcile.requirePool();
  const unknown = unknownVmReason(reconcile.context, reconcile.machine, pool);
  if (unknown !== undefined) return waitForVms(reconcile, unknown);
  if (pool.source.kind === 'image' && !(await isImagePresent(reconcile, pool.source))) {
    return requeue(IMAGE_POLL_MS, 'its image is being downloaded');
  }
  if (pool.source.kind === 'template') await requireTemplate(reconcile, pool.source);
  await reconcile.context.records.refresh();
  // The next pass applies the cancellation.
  if (reconcile.context.records.isDeletionRequested(reconcile.id)) return DONE;
  await reconcile.move('creating');
  return startCreation(reconcile, pool, { isFirstCall: true });
}

async function waitForVms(reconcile: MachineReconcile, why: string): Promise<ReconcileResult> {
  const { context, id, machine } = reconcile;
  await context.recordOnce(id, {
    kind: 'refused',
    subject: { pool: machine.pool, machine: id },
    reason: 'VIEW_STALE',
    message: why,
  });
  return requeue(RECHECK_MS, why);
}
