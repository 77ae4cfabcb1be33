// SPDX-License-Identifier: Apache-2.0

import type { MachineReconcile, Step } from '../context/machine-reconcile.ts';
import { requireOurs } from './configuring.ts';
import { writeMilestone } from './milestone.ts';
import { lookUpVm } from './vm-lookup.ts';

export async function becomeReady(reconcile: MachineReconcile): Promise<Step> {
  await writeMilestone(
    reconcile,
    requireOurs(await lookUpVm(reconcile), reconcile),
    'readySinceSeconds',
  );
  await reconcile.move('ready');
  reconcile.context.state.tokens.delete(reconcile.id);
  await reconcile.context.records.changePool(reconcile.machine.pool, ({ backoff, ...rest }) =>
    backoff === undefined ? undefined : rest,
  );
  const { name, host, vmId } = reconcile.placement;
  const { nodeName } = reconcile.machine;
  await reconcile.record({
    kind: 'did',
    reason: 'MachineReady',
    message: `${nodeName === undefined ? name : `node ${nodeName}`} is up: VM ${vmId} on host ${host}`,
    numbers: {
      vmId,
      seconds: Math.round((reconcile.context.now - reconcile.machine.requestedAt) / 1_000),
    },
  });
  return 'again';
}
