// SPDX-License-Identifier: Apache-2.0
import type { Machine } from '../model/machine.ts';
import { roleOf } from '../model/role.ts';
import { NotFound, NotOwned } from '../ports/errors.ts';
import type { VmSummary } from '../ports/hypervisor.ts';
import type { OpenFleet } from '../setup/index.ts';
import type { CommandHost } from './context.ts';
import { type DeleteOptions, deleteMachines, requireNoVmLeftBehind } from './run-machine-delete.ts';
import { findVm } from './vm-list.ts';

interface DeleteRequest {
  readonly texts: readonly string[];
  readonly options: DeleteOptions;
}

export async function deleteVms(
  host: CommandHost,
  open: OpenFleet,
  { texts, options }: DeleteRequest,
): Promise<void> {
  for (const text of texts) {
    if ((await findVm(open, text)) === undefined) await refuseOther(open, text);
  }
  const select = async () => {
    const found = await Promise.all(texts.map((text) => findVm(open, text)));
    return found.filter((vm) => vm !== undefined);
  };
  const ids = await deleteMachines(host, open, {
    regions: regionsOf(open, await select()),
    select,
    options,
  });
  await requireNoVmLeftBehind(open, ids);
}

function regionsOf({ config }: OpenFleet, vms: readonly Machine[]): readonly string[] {
  const regions = new Set(vms.map(({ placement }) => placement?.region));
  return Object.keys(config.regions).filter((region) => regions.has(region));
}

/** Says what has that name, if something has. */
async function refuseOther(open: OpenFleet, text: string): Promise<never> {
  const { machines } = await open.fleet.status();
  const ofPool = machines.find(
    ({ id, pool, placement }) =>
      roleOf(pool) === undefined && (id === text || placement?.name === text),
  );
  if (ofPool !== undefined) {
    throw new NotOwned('VM_NOT_OWNED', `${text} is a machine of pool ${ofPool.pool}`, {
      hint: `Delete it with pvescaler machine delete ${text}.`,
    });
  }
  const found = await findOnProxmox(open, text);
  if (found === undefined) {
    throw new NotFound('VM_NOT_FOUND', `no VM has the name or id '${text}'`, {
      hint: 'pvescaler vm list lists the VMs created by hand.',
    });
  }
  const { vmId, host, name } = found;
  throw new NotOwned(
    'VM_NOT_OWNED',
    `VM ${vmId} (${name ?? 'without a name'}) on ${host} was not created by pvescaler`,
  );
}

async function findOnProxmox(
  { hypervisors }: OpenFleet,
  text: string,
): Promise<VmSummary | undefined> {
  const views = await Promise.all([...hypervisors.values()].map((region) => region.view()));
  return views
    .flatMap(({ vms }) => vms)
    .find(({ vmId, name }) => String(vmId) === text || name === text);
}
