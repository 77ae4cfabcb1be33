// SPDX-License-Identifier: Apache-2.0
// placed → creating → configuring. `creating` is written before the call that makes the VM; from then on only
// looking tells whether it was made. Calling again is harmless, because Proxmox gives an id out once: the second
// of two calls is refused, and the VM's marker says whose the first one was.
import { formatMarker } from '../../model/marker.ts';
import { Conflict, InvalidConfig, NotFound, type PvescalerError } from '../../ports/errors.ts';
import type { TaskRef } from '../../ports/hypervisor.ts';
import type { PoolSettings } from '../settings.ts';
import { taskSubjectOf } from '../upid.ts';
import { hardwareOf, markerOf, tagsOf } from './identity.ts';
import { imageIsThere, imageVolume } from './images.ts';
import type { Job, Step } from './job.ts';
import { look } from './look.ts';
import { type TemplateSource, templateFor } from './templates.ts';

export async function placed(job: Job): Promise<Step> {
  const pool = poolOf(job);
  if (pool.source.kind === 'image' && !(await imageIsThere(job, pool.source))) return 'wait';
  if (pool.source.kind === 'template') await requireTemplate(job, pool.source);
  await job.turn.books.follow();
  if (job.turn.books.isLeaving(job.id)) return 'wait';
  await job.move('creating');
  return order(job, pool);
}

export async function creating(job: Job): Promise<Step> {
  const task = await job.task();
  if (task.state === 'running') return 'wait';
  if (task.state === 'ended' && task.failure !== undefined && !isTaken(task.failure)) {
    await job.update({ task: undefined });
    throw task.failure;
  }
  const sight = await look(job);
  switch (sight.kind) {
    case 'ours':
      return job.move('configuring');
    case 'undecided':
      return 'wait';
    case 'foreign':
      return giveIdUp(job, sight.reason);
    default:
      return task.state === 'ended' ? vanished(job, task.failure) : orderAgain(job);
  }
}

/** The task has ended and there is nothing: the id went to a container, or somebody was quick to remove the VM. */
async function vanished(job: Job, failure: PvescalerError | undefined): Promise<Step> {
  if (failure !== undefined) return giveIdUp(job, 'it is taken, and not by a VM');
  await job.update({ task: undefined });
  throw new NotFound('VM_NOT_FOUND', `VM ${job.vm.vmId} was made and is gone again`);
}

async function orderAgain(job: Job): Promise<Step> {
  const pool = poolOf(job);
  if (await isCloneUnderWay(job, pool)) return 'wait';
  return order(job, pool);
}

async function order(job: Job, pool: PoolSettings): Promise<Step> {
  try {
    return await job.started(await make(job, pool));
  } catch (error) {
    if (!isTaken(error)) throw error;
    const sight = await look(job);
    if (sight.kind === 'absent') return giveIdUp(job, 'it is taken, and not by a VM');
    return 'again';
  }
}

function make(job: Job, pool: PoolSettings): Promise<TaskRef> {
  return pool.source.kind === 'template' ? clone(job, pool.source) : create(job, pool);
}

function create(job: Job, pool: PoolSettings): Promise<TaskRef> {
  const { machine, placement, region, turn } = job;
  const { source } = pool;
  return job.hypervisor.createVm(
    {
      ...job.vm,
      identity: {
        name: placement.name,
        description: formatMarker(markerOf(machine, turn.settings.cluster)),
        tags: tagsOf(machine.pool, region),
        smbiosUuid: machine.id,
      },
      hardware: hardwareOf(machine, pool),
      disk: {
        ...pool.disk,
        storage: placement.diskStorage,
        bytes: machine.size.diskBytes,
        ...(source.kind === 'image' && { importFrom: imageVolume(job, source) }),
      },
      ...(region.resourcePool !== undefined && { resourcePool: region.resourcePool }),
    },
    turn.acting,
  );
}

async function clone(job: Job, source: TemplateSource): Promise<TaskRef> {
  const { machine, placement, region, turn } = job;
  const template = await requireTemplate(job, source);
  const isLinked = source.clone === 'linked';
  return job.hypervisor.cloneVm(
    {
      ...job.vm,
      source: { vmId: template.vmId, host: template.host },
      linked: isLinked,
      name: placement.name,
      description: formatMarker(markerOf(machine, turn.settings.cluster)),
      ...(!isLinked && { storage: placement.diskStorage }),
      ...(region.resourcePool !== undefined && { resourcePool: region.resourcePool }),
    },
    turn.acting,
  );
}

async function requireTemplate(job: Job, source: TemplateSource) {
  const template = await templateFor(job.turn, job.placement, source);
  if (template !== undefined) return template;
  const { host } = job.placement;
  throw new NotFound('TEMPLATE_NOT_FOUND', `host ${host} cannot reach the pool's template`);
}

/**
 * Whether a clone that nobody followed may still be running: its task names the source only, and the new VM may
 * not be visible yet. Clones of other machines are known by their records.
 */
export async function isCloneUnderWay(job: Job, pool: PoolSettings | undefined): Promise<boolean> {
  if (pool?.source.kind !== 'template') return false;
  const template = await templateFor(job.turn, job.placement, pool.source);
  if (template === undefined) return false;
  const known = new Set(job.turn.books.machines.map(({ task }) => task?.upid));
  const running = await job.hypervisor.runningTasks(template.host, 'qmclone', job.turn.reading);
  return running.some(
    ({ upid }) => taskSubjectOf(upid) === String(template.vmId) && !known.has(upid),
  );
}

async function giveIdUp(job: Job, reason: string): Promise<Step> {
  const { vmId } = job.vm;
  await job.tell({
    kind: 'saw',
    reason: 'VmIdLost',
    message: `VM id ${vmId} is somebody else's: ${reason}; another one is chosen`,
    numbers: { vmId },
  });
  await job.move('requested');
  return 'wait';
}

function isTaken(error: unknown): boolean {
  return error instanceof Conflict && error.code === 'VM_ID_TAKEN';
}

export function poolOf(job: Job): PoolSettings {
  const { pool } = job;
  if (pool !== undefined) return pool;
  throw new InvalidConfig('CONFIG_INVALID', `pool ${job.machine.pool} is not in the config`);
}
