// SPDX-License-Identifier: Apache-2.0
import type { Host } from '../../model/host.ts';
import type { MachineReconcile } from '../context/machine-reconcile.ts';

/**
 * The host to ask for the deletion of a machine's seed: its own, unless that is down and the storage can be reached
 * from another, or it was taken out of the cluster. What lay on its own disks is gone with it then, and deleting what
 * is not there does no harm.
 */
export function seedHost({ placement, region, context }: MachineReconcile): string {
  const hosts = context.views.get(placement.region)?.hosts ?? [];
  const own = hosts.find(({ name }) => name === placement.host);
  if (own?.online === true) return own.name;
  const { seeds } = region.storage;
  const others = hosts.filter((host) => host.online && hasStorage(host, seeds));
  const isShared = others.some((host) => hasStorage(host, seeds, true));
  const mayAskAnother = isShared || own === undefined;
  return (mayAskAnother ? others[0]?.name : undefined) ?? placement.host;
}

function hasStorage({ storages }: Host, wanted: string, isShared = false): boolean {
  return storages.some(
    ({ name, active, shared }) => name === wanted && active && (shared || !isShared),
  );
}
