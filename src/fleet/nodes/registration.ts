// SPDX-License-Identifier: Apache-2.0
// What a machine's Node is to be registered with: labels, taints and the facts they are made from.
import { buildRegistration, type MachineInput, type Registration } from '../../bootstrap/index.ts';
import type { MachineSize } from '../../model/machine.ts';
import type { MachineReconcile } from '../context/machine-reconcile.ts';
import type { NamedSize } from '../context/settings.ts';

/** Undefined for a pool without a seed, and for one that is no longer in the config. */
export function registrationFor(reconcile: MachineReconcile): Registration | undefined {
  const seed = reconcile.pool?.seed;
  if (seed === undefined) return undefined;
  const registration = buildRegistration(machineInput(reconcile), seed.registration);
  return registration.ok ? registration.value : undefined;
}

export function machineInput({
  machine,
  placement,
  pool: settings,
}: MachineReconcile): MachineInput {
  const { id, pool, size } = machine;
  const { name, region, host, vmId } = placement;
  const instanceType = instanceTypeOf(size, settings?.instanceTypes ?? []);
  return { id, name, pool, region, host, vmId, instanceType };
}

/** A machine whose size has no name has no instance type. */
function instanceTypeOf(size: MachineSize, named: readonly NamedSize[]): string | undefined {
  const { cpu, memoryBytes, diskBytes } = size;
  return named.find(
    (one) => one.cpu === cpu && one.memoryBytes === memoryBytes && one.diskBytes === diskBytes,
  )?.name;
}
