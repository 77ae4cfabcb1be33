// SPDX-License-Identifier: Apache-2.0
import type { Machine, MachineSize, Phase } from '../../model/machine.ts';
import type { Marker } from '../../model/marker.ts';
import type { VmConfig, VmState } from '../../ports/hypervisor.ts';
import type { ReconcileContext } from '../context/reconcile-context.ts';
import type { PoolSettings } from '../context/settings.ts';
import { bootDiskSlot } from '../machine/clone-options.ts';
import { seedFileName } from '../machine/vm-identity.ts';

interface Found {
  readonly region: string;
  readonly config: VmConfig;
  readonly marker: Marker;
  readonly power: VmState['power'];
}

const UNITS: Readonly<Record<string, number>> = {
  K: 2 ** 10,
  M: 2 ** 20,
  G: 2 ** 30,
  T: 2 ** 40,
};

/** The record of a machine that is known from its VM alone. */
export function adoptedMachine(context: ReconcileContext, found: Found): Machine {
  const { region, config, marker } = found;
  const pool = context.pool(marker.pool);
  const disk = config.options[bootDiskSlot(config) ?? ''] ?? '';
  const hasSeed = pool === undefined || pool.seed !== undefined;
  const seeds = context.region(region).storage.seeds;
  return {
    id: marker.machine,
    pool: marker.pool,
    phase: phaseOf(context, found),
    phaseSince: context.now,
    requestedAt: marker.createdAtSeconds * 1_000,
    size: sizeOf(config, disk, pool),
    placement: {
      region,
      host: config.host,
      vmId: config.vmId,
      name: config.name ?? `vm-${config.vmId}`,
      diskStorage: disk.split(':')[0] ?? '',
      addresses: marker.addresses,
    },
    placedAt: context.now,
    configured: config.smbiosUuid === marker.machine,
    // Whether there is one is not known; removing one that is not there is no trouble.
    ...(hasSeed && {
      seedVolume: `${seeds}:iso/${seedFileName(context.settings.cluster, marker.machine)}`,
    }),
    attempts: 0,
    ...(marker.deletingSinceSeconds !== undefined && {
      deletionReason: 'it was being deleted when its record was lost',
    }),
  };
}

function sizeOf(config: VmConfig, disk: string, pool: PoolSettings | undefined): MachineSize {
  return {
    cpu: config.cpus,
    memoryBytes: Math.max(0, config.memoryBytes - (pool?.memoryOverheadBytes ?? 0)),
    diskBytes: Math.max(diskBytes(disk), pool?.size.diskBytes ?? 0),
  };
}

function phaseOf(context: ReconcileContext, { marker, power }: Found): Phase {
  if (marker.deletingSinceSeconds !== undefined) return 'deleting';
  // Without its pool's settings nothing can be made of it; it is left as it is.
  if (context.pool(marker.pool) === undefined) return 'ready';
  // It may be at work: no trouble in coming up again may cost it its life.
  if (marker.readySinceSeconds !== undefined) return 'ready';
  return power === 'running' ? 'booting' : 'configuring';
}

function diskBytes(option: string): number {
  const [, amount, unit = ''] = /size=(\d+)([KMGT]?)/.exec(option) ?? [];
  return amount === undefined ? 0 : Number(amount) * (UNITS[unit] ?? 1);
}
