// SPDX-License-Identifier: Apache-2.0
// Where requested VMs would be created now. Changes nothing.
import type { HostRef, Machine, MachineSize, Placement } from '../../model/machine.ts';
import { roleGroup, type VmRequest } from '../../model/role.ts';
import { ERROR_CODES, isErrorCode } from '../../ports/error-codes.ts';
import { deserializeError, InvalidConfig } from '../../ports/errors.ts';
import { decideVm, PlannedVms } from '../capacity/place-vm.ts';
import { readStorages } from '../capacity/storage-space.ts';
import { readAddresses } from '../capacity/taken-addresses.ts';
import { readTemplates } from '../capacity/templates.ts';
import type { FleetOptions } from '../context/options.ts';
import { missingSettings, settingsOf } from '../context/vm-settings.ts';
import type { RecordCache } from '../records/record-cache.ts';
import { newMachineId } from '../records/records.ts';
import { readContext } from './list-orphans.ts';
import { immediateJobs } from './read-capacity.ts';

export interface PlannedVm extends Omit<Placement, 'hasRegionInMarker'> {
  /** Why this host. */
  readonly reason: string;
}

export interface VmPlanRequest {
  readonly role: string;
  readonly count: number;
  readonly size: MachineSize;
  readonly host?: HostRef | undefined;
  readonly vm: VmRequest;
}

/** Throws what would make the first VM fail. */
export async function planVms(
  options: FleetOptions,
  cache: RecordCache,
  { role, count, size, host, vm }: VmPlanRequest,
): Promise<readonly PlannedVm[]> {
  const context = await readContext(options, cache);
  const machine = (): Machine => ({
    id: newMachineId(options.random),
    pool: roleGroup(role),
    vm,
    phase: 'requested',
    phaseSince: context.now,
    requestedAt: context.now,
    size,
    ...(host !== undefined && { requiredHost: host }),
    attempts: 0,
  });
  const machines = Array.from({ length: count }, machine);
  const pool = settingsOf(context.settings, { pool: roleGroup(role), vm });
  if (pool === undefined) {
    const message = `${missingSettings({ pool: roleGroup(role), vm })} is not in the config`;
    throw new InvalidConfig('CONFIG_INVALID', message);
  }
  const jobs = immediateJobs(context);
  await jobs.settle([
    ...readTemplates(context, jobs, [pool]),
    ...readAddresses(context, jobs, [pool]),
    ...readStorages(context, jobs, machines),
  ]);
  const planned = new PlannedVms();
  return machines.map((one) => {
    const decided = decideVm(context, one, { pool, planned });
    if ('code' in decided) throw refusalError(decided);
    planned.add(one, decided);
    const { where, vmId, name, addresses } = decided;
    const { host: chosen, storage, message } = decided.host;
    const region = where.region.name;
    return { region, host: chosen, vmId, name, diskStorage: storage, addresses, reason: message };
  });
}

function refusalError({ code, message }: { readonly code: string; readonly message: string }) {
  const known = isErrorCode(code) ? code : 'NO_HOST_FITS';
  return deserializeError({ code: known, message, hint: ERROR_CODES[known].hint, facts: {} });
}
