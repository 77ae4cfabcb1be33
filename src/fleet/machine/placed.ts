// SPDX-License-Identifier: Apache-2.0
// placed → creating: waits for the image, then starts the creation.
import {
  DONE,
  type MachineReconcile,
  type ReconcileResult,
  requeue,
} from '../context/machine-reconcile.ts';

import { IMAGE_POLL_MS, isImagePresent, requireTemplate, startCreation } from './create-vm.ts';

export async function placed(reconcile: MachineReconcile): Promise<ReconcileResult> {
  const pool = reconcile.requirePool();
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
