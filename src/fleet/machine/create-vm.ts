// SPDX-License-Identifier: Apache-2.0
// The call that creates or clones a machine's VM.
import { formatMarker } from '../../model/marker.ts';
import { Conflict, NotFound } from '../../ports/errors.ts';
import type { TaskRef } from '../../ports/hypervisor.ts';
import { type TemplateSource, templateFor } from '../capacity/templates.ts';
import type { MachineReconcile } from '../context/machine-reconcile.ts';
import { CONTINUE, DONE, type ReconcileResult } from '../context/reconcile-result.ts';
import type { PoolSettings } from '../context/settings.ts';
import { imageVolume } from './images.ts';
import { hardwareOf, markerOf, tagsOf } from './vm-identity.ts';
import { lookUpVm } from './vm-lookup.ts';

export async function startCreation(
  reconcile: MachineReconcile,
  pool: PoolSettings,
): Promise<ReconcileResult> {
  try {
    return await reconcile.recordTask(await createOrClone(reconcile, pool));
  } catch (error) {
    if (!isVmIdTaken(error)) throw error;
    const lookup = await lookUpVm(reconcile);
    if (lookup.kind === 'absent') return releaseVmId(reconcile, 'it is in use, but not by a VM');
    return CONTINUE;
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

export async function requireTemplate(reconcile: MachineReconcile, source: TemplateSource) {
  const template = await templateFor(reconcile.context, reconcile.placement, source);
  if (template !== undefined) return template;
  const { host } = reconcile.placement;
  throw new NotFound('TEMPLATE_NOT_FOUND', `host ${host} cannot reach the pool's template`);
}

/**
 * Whether a clone that no record names may still be running: its task names only the source, and the new VM may not be
 * visible yet. Clones of other machines are known by their records.
 */
export async function isCloneInProgress(
  reconcile: MachineReconcile,
  pool: PoolSettings | undefined,
): Promise<boolean> {
  if (pool?.source.kind !== 'template') return false;
  const template = await templateFor(reconcile.context, reconcile.placement, pool.source);
  if (template === undefined) return false;
  const { records, readOptions } = reconcile.context;
  const known = new Set(records.machines.map(({ task }) => task?.upid));
  const running = await reconcile.hypervisor.runningTasks(template.host, 'clone', readOptions);
  return running.some(({ upid, subject }) => subject === template.vmId && !known.has(upid));
}

/** The next pass places the machine again, with another VM id. */
export async function releaseVmId(
  reconcile: MachineReconcile,
  reason: string,
): Promise<ReconcileResult> {
  const { vmId } = reconcile.vm;
  await reconcile.record({
    kind: 'saw',
    reason: 'VmIdLost',
    message: `VM id ${vmId} is not ours (${reason}); choosing another one`,
    numbers: { vmId },
  });
  await reconcile.move('requested');
  return DONE;
}

export function isVmIdTaken(error: unknown): boolean {
  return error instanceof Conflict && error.code === 'VM_ID_TAKEN';
}
