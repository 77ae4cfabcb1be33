// SPDX-License-Identifier: Apache-2.0
// placed → creating → configuring. `creating` is written before the call that makes the VM; from then on only
// looking tells whether it was made. Calling again is harmless, because Proxmox gives an id out once: the second
// of two calls is refused, and the VM's marker says whose the first one was.
import { formatMarker } from '../../model/marker.ts';
import { Conflict, InvalidConfig, NotFound, type PvescalerError } from '../../ports/errors.ts';
import type { TaskRef } from '../../ports/hypervisor.ts';
import { type TemplateSource, templateFor } from '../capacity/templates.ts';
import type { MachineReconcile, Step } from '../context/machine-reconcile.ts';
import type { PoolSettings } from '../context/settings.ts';
import { taskSubjectOf } from '../context/upid.ts';
import { imageVolume, isImagePresent } from './images.ts';
import { hardwareOf, markerOf, tagsOf } from './vm-identity.ts';
import { lookUpVm } from './vm-lookup.ts';

export async function placed(reconcile: MachineReconcile): Promise<Step> {
  const pool = poolOf(reconcile);
  if (pool.source.kind === 'image' && !(await isImagePresent(reconcile, pool.source)))
    return 'wait';
  if (pool.source.kind === 'template') await requireTemplate(reconcile, pool.source);
  await reconcile.context.records.refresh();
  if (reconcile.context.records.isDeletionRequested(reconcile.id)) return 'wait';
  await reconcile.move('creating');
  return startCreation(reconcile, pool);
}

export async function creating(reconcile: MachineReconcile): Promise<Step> {
  const task = await reconcile.pollTask();
  if (task.state === 'running') return 'wait';
  if (task.state === 'ended' && task.failure !== undefined && !isTaken(task.failure)) {
    await reconcile.update({ task: undefined });
    throw task.failure;
  }
  const lookup = await lookUpVm(reconcile);
  switch (lookup.kind) {
    case 'ours':
      return reconcile.move('configuring');
    case 'undecided':
      return 'wait';
    case 'foreign':
      return releaseVmId(reconcile, lookup.reason);
    default:
      return task.state === 'ended'
        ? vmDisappeared(reconcile, task.failure)
        : retryCreation(reconcile);
  }
}

/** The task has ended and there is nothing: the id went to a container, or somebody was quick to remove the VM. */
async function vmDisappeared(
  reconcile: MachineReconcile,
  failure: PvescalerError | undefined,
): Promise<Step> {
  if (failure !== undefined) return releaseVmId(reconcile, 'it is taken, and not by a VM');
  await reconcile.update({ task: undefined });
  throw new NotFound('VM_NOT_FOUND', `VM ${reconcile.vm.vmId} was made and is gone again`);
}

async function retryCreation(reconcile: MachineReconcile): Promise<Step> {
  const pool = poolOf(reconcile);
  if (await isCloneInProgress(reconcile, pool)) return 'wait';
  return startCreation(reconcile, pool);
}

async function startCreation(reconcile: MachineReconcile, pool: PoolSettings): Promise<Step> {
  try {
    return await reconcile.recordTask(await createOrClone(reconcile, pool));
  } catch (error) {
    if (!isTaken(error)) throw error;
    const lookup = await lookUpVm(reconcile);
    if (lookup.kind === 'absent') return releaseVmId(reconcile, 'it is taken, and not by a VM');
    return 'again';
  }
}

function createOrClone(reconcile: MachineReconcile, pool: PoolSettings): Promise<TaskRef> {
  return pool.source.kind === 'template' ? clone(reconcile, pool.source) : create(reconcile, pool);
}

function create(reconcile: MachineReconcile, pool: PoolSettings): Promise<TaskRef> {
  const { machine, placement, region, context } = reconcile;
  const { source } = pool;
  return reconcile.hypervisor.createVm(
    {
      ...reconcile.vm,
      identity: {
        name: placement.name,
        description: formatMarker(markerOf(machine, context.settings.cluster)),
        tags: tagsOf(machine.pool, region),
        smbiosUuid: machine.id,
      },
      hardware: hardwareOf(machine, pool),
      disk: {
        ...pool.disk,
        storage: placement.diskStorage,
        bytes: machine.size.diskBytes,
        ...(source.kind === 'image' && { importFrom: imageVolume(reconcile, source) }),
      },
      ...(region.resourcePool !== undefined && { resourcePool: region.resourcePool }),
    },
    context.writeOptions,
  );
}

async function clone(reconcile: MachineReconcile, source: TemplateSource): Promise<TaskRef> {
  const { machine, placement, region, context } = reconcile;
  const template = await requireTemplate(reconcile, source);
  const isLinked = source.clone === 'linked';
  return reconcile.hypervisor.cloneVm(
    {
      ...reconcile.vm,
      source: { vmId: template.vmId, host: template.host },
      linked: isLinked,
      name: placement.name,
      description: formatMarker(markerOf(machine, context.settings.cluster)),
      ...(!isLinked && { storage: placement.diskStorage }),
      ...(region.resourcePool !== undefined && { resourcePool: region.resourcePool }),
    },
    context.writeOptions,
  );
}

async function requireTemplate(reconcile: MachineReconcile, source: TemplateSource) {
  const template = await templateFor(reconcile.context, reconcile.placement, source);
  if (template !== undefined) return template;
  const { host } = reconcile.placement;
  throw new NotFound('TEMPLATE_NOT_FOUND', `host ${host} cannot reach the pool's template`);
}

/**
 * Whether a clone that nobody followed may still be running: its task names the source only, and the new VM may
 * not be visible yet. Clones of other machines are known by their records.
 */
export async function isCloneInProgress(
  reconcile: MachineReconcile,
  pool: PoolSettings | undefined,
): Promise<boolean> {
  if (pool?.source.kind !== 'template') return false;
  const template = await templateFor(reconcile.context, reconcile.placement, pool.source);
  if (template === undefined) return false;
  const known = new Set(reconcile.context.records.machines.map(({ task }) => task?.upid));
  const running = await reconcile.hypervisor.runningTasks(
    template.host,
    'qmclone',
    reconcile.context.readOptions,
  );
  return running.some(
    ({ upid }) => taskSubjectOf(upid) === String(template.vmId) && !known.has(upid),
  );
}

async function releaseVmId(reconcile: MachineReconcile, reason: string): Promise<Step> {
  const { vmId } = reconcile.vm;
  await reconcile.record({
    kind: 'saw',
    reason: 'VmIdLost',
    message: `VM id ${vmId} is somebody else's: ${reason}; another one is chosen`,
    numbers: { vmId },
  });
  await reconcile.move('requested');
  return 'wait';
}

function isTaken(error: unknown): boolean {
  return error instanceof Conflict && error.code === 'VM_ID_TAKEN';
}

export function poolOf(reconcile: MachineReconcile): PoolSettings {
  const { pool } = reconcile;
  if (pool !== undefined) return pool;
  throw new InvalidConfig('CONFIG_INVALID', `pool ${reconcile.machine.pool} is not in the config`);
}
