// SPDX-License-Identifier: Apache-2.0
import type { MachineReconcile } from '../context/machine-reconcile.ts';
import { CONTINUE, type ReconcileResult } from '../context/reconcile-result.ts';
import { writeMilestone } from './milestone.ts';
import { lookUpOwnVm } from './vm-lookup.ts';

export async function becomeReady(reconcile: MachineReconcile): Promise<ReconcileResult> {
  await writeMilestone(reconcile, await lookUpOwnVm(reconcile), 'readySinceSeconds');
  await reconcile.move('ready');
  const { context, machine, placement } = reconcile;
  context.state.tokens.delete(reconcile.id);
  await context.records.changePool(machine.pool, ({ backoff, ...rest }) =>
    backoff === undefined ? undefined : rest,
  );
  const { name, host, vmId } = placement;
  const { nodeName, requestedAt } = machine;
  await reconcile.record({
    kind: 'did',
    reason: 'MachineReady',
    message: `${nodeName === undefined ? name : `node ${nodeName}`} is ready: VM ${vmId} on host ${host}`,
    numbers: { vmId, seconds: Math.round((context.now - requestedAt) / 1_000) },
  });
  return CONTINUE;
}
