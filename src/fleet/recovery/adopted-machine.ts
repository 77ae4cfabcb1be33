// SPDX-License-Identifier: Apache-2.0
import type { Machine, MachineSize, Phase } from '../../model/machine.ts';
import type { Marker } from '../../model/marker.ts';
import { isTemplateGroup } from '../../model/role.ts';
import { isSelftestMarker } from '../../model/selftest.ts';
import type { VmConfig, VmState } from '../../ports/hypervisor.ts';
import type { ReconcileContext } from '../context/reconcile-context.ts';
import type { PoolSettings } from '../context/settings.ts';
import { seedVolumeOf } from '../machine/vm-identity.ts';

export interface AdoptedVm {
  readonly region: string;
  readonly config: VmConfig;
  readonly marker: Marker;
  readonly power: VmState['power'];
}

/** The record of a machine, made from its VM alone. */
export function adoptedMachine(context: ReconcileContext, found: AdoptedVm): Machine {
  const { region, config, marker } = found;
  const pool = context.pool(marker.pool);
  const hasSeed = pool === undefined || pool.seed !== undefined;
  return {
    id: marker.machine,
    pool: marker.pool,
    phase: phaseOf(context, found),
    phaseSince: context.now,
    requestedAt: marker.createdAtSeconds * 1_000,
    size: sizeOf(config, pool),
    placement: {
      region,
      host: config.host,
      vmId: config.vmId,
      name: config.name ?? `vm-${config.vmId}`,
      diskStorage: config.bootDisk?.storage ?? '',
      addresses: marker.addresses,
      hasRegionInMarker: marker.region !== undefined,
    },
    placedAt: context.now,
    configured: config.smbiosUuid === marker.machine,
    // It is not known whether the seed exists; deleting a missing one succeeds.
    ...(hasSeed && {
      seedVolume: seedVolumeOf({
        id: marker.machine,
        hypervisor: context.hypervisor(region),
        region: context.region(region),
        context,
      }),
    }),
    attempts: 0,
    ...(isSelftestMarker(marker) && { isSelftest: true }),
    ...(marker.deletingSinceSeconds !== undefined && {
      deletionReason: 'it was being deleted when its record was lost',
    }),
  };
}

function sizeOf(config: VmConfig, pool: PoolSettings | undefined): MachineSize {
  return {
    cpu: config.cpus,
    memoryBytes: Math.max(0, config.memoryBytes - (pool?.memoryOverheadBytes ?? 0)),
    diskBytes: Math.max(config.bootDisk?.bytes ?? 0, pool?.size.diskBytes ?? 0),
  };
}

function phaseOf(context: ReconcileContext, { config, marker, power }: AdoptedVm): Phase {
  if (marker.deletingSinceSeconds !== undefined) return 'deleting';
  // Whether its build was complete is not known, unless a person has adopted it.
  const isHalfBuilt = isTemplateGroup(marker.pool) && !config.isTemplate;
  if (isHalfBuilt && marker.readySinceSeconds === undefined) return 'deleting';
  // Without its pool's settings the machine cannot be configured; it is left as it is.
  if (context.pool(marker.pool) === undefined) return 'ready';
  // It may run pods: no error while it starts again may delete it.
  if (marker.readySinceSeconds !== undefined) return 'ready';
  return power === 'running' ? 'booting' : 'configuring';
}
