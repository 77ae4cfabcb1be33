// SPDX-License-Identifier: Apache-2.0
// The call that creates or clones a machine's VM.
import { withoutPrefixLength } from '../../model/machine.ts';
import { formatMarker } from '../../model/marker.ts';
import { Conflict, NotFound, TaskFailed } from '../../ports/errors.ts';
import type { RunningTask, TaskRef } from '../../ports/hypervisor.ts';
import { type TemplateSource, templateFor } from '../capacity/templates.ts';
import { isMachineError } from '../context/machine-error.ts';
import {
  CONTINUE,
  DONE,
  type MachineReconcile,
  type ReconcileResult,
  requeue,
} from '../context/machine-reconcile.ts';

import { isStorageShared } from '../context/region-views.ts';
import type { ImageSettings, PoolSettings } from '../context/settings.ts';
import { failMachine } from './fail-machine.ts';
import { lookUpVm, type OwnVm, type VmLookup } from './own-vm.ts';
import { hardwareOf, markerOf, tagsOf } from './vm-identity.ts';

const RECHECK_MS = 1_000;

export async function startCreation(
  reconcile: MachineReconcile,
  pool: PoolSettings,
  { isFirstCall } = { isFirstCall: false },
): Promise<ReconcileResult> {
  const address = addressOfOther(reconcile);
  if (address !== undefined) return releaseAddress(reconcile, address);
  try {
    return await reconcile.recordTask(await createOrClone(reconcile, pool));
  } catch (error) {
    if (!isVmIdTaken(error)) throw error;
    const lookup = await lookUpVm(reconcile);
    if (lookup.kind === 'ours') return CONTINUE;
    if (isFirstCall) return releaseVmId(reconcile, takenReason(lookup));
    return handleVmIdTaken(reconcile, lookup);
  }
}

/** An address that another machine has got too: a VM was adopted, or a write of an earlier driver took effect late. */
function addressOfOther({ context, placement, id }: MachineReconcile): string | undefined {
  const { index } = context.records;
  return placement.addresses.find(
    (address) => index.otherHolder(placement.region, address, id) !== undefined,
  );
}

/**
 * The next pass places the machine again, with another address. It gives the address up at once: two machines that both
 * release it must not keep it from each other.
 */
async function releaseAddress(
  reconcile: MachineReconcile,
  address: string,
): Promise<ReconcileResult> {
  await reconcile.record({
    kind: 'saw',
    reason: 'AddressLost',
    message: `another machine has address ${withoutPrefixLength(address)}; choosing another one`,
  });
  const { placement } = reconcile;
  const addresses = placement.addresses.filter((each) => each !== address);
  await reconcile.move('requested', { placement: { ...placement, addresses } });
  return DONE;
}

export type OtherVm = Exclude<VmLookup, OwnVm>;

/**
 * Proxmox refused to create the VM because its id is taken. An earlier call whose response was lost may have taken
 * effect: as long as its task may run, the VM may become ours.
 */
export async function handleVmIdTaken(
  reconcile: MachineReconcile,
  lookup: OtherVm,
): Promise<ReconcileResult> {
  const isUnknown = lookup.kind === 'undecided' || lookup.kind === 'unreadable';
  return isUnknown && (await isOwnCreationRunning(reconcile))
    ? requeue(RECHECK_MS, `VM ${reconcile.vm.vmId} is being created`)
    : releaseVmId(reconcile, takenReason(lookup));
}

function takenReason(lookup: OtherVm): string {
  switch (lookup.kind) {
    case 'absent':
      return 'it is in use, but not by a VM';
    case 'foreign':
      return lookup.reason;
    case 'undecided':
      return `another user creates a VM with it, lock ${lookup.lock}`;
    case 'unreadable':
      return `the VM that has it cannot be read: ${lookup.error.message}`;
  }
}

/** Whether a task that no record names may be creating the machine's VM. */
export async function isOwnCreationRunning(reconcile: MachineReconcile): Promise<boolean> {
  const { hypervisor, vm, context, pool } = reconcile;
  const running = await hypervisor.runningTasks(vm.host, 'create', context.readOptions);
  if (running.some(({ subject }) => subject === vm.vmId)) return true;
  return isCloneInProgress(reconcile, pool);
}

function createOrClone(reconcile: MachineReconcile, pool: PoolSettings): Promise<TaskRef> {
  return pool.source.kind === 'template' ? clone(reconcile, pool.source) : create(reconcile, pool);
}

async function create(reconcile: MachineReconcile, pool: PoolSettings): Promise<TaskRef> {
  const { machine, placement, region, context } = reconcile;
  const image = pool.source.kind === 'image' ? await withChecksum(pool.source) : undefined;
  return reconcile.hypervisor.createVm(
    {
      ...reconcile.vm,
      identity: {
        name: placement.name,
        description: formatMarker(markerOf(machine, context.settings.cluster)),
        tags: tagsOf(machine, region, context.settings),
        smbiosUuid: machine.id,
      },
      hardware: hardwareOf(machine, pool),
      disk: {
        ...pool.disk,
        storage: placement.diskStorage,
        bytes: machine.size.diskBytes,
        ...(image !== undefined && { importFrom: imageVolume(reconcile, image) }),
      },
      ...(region.resourcePool !== undefined && { resourcePool: region.resourcePool }),
    },
    context.writeOptions(),
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
    context.writeOptions(),
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
  const { clock, state } = reconcile.context;
  const { region } = reconcile.placement;
  if (reconcile.machine.vm?.vmId === vmId) {
    // A person named the id. Nothing was created with it, so nothing is deleted.
    await reconcile.move('requested');
    await failMachine(
      reconcile,
      new Conflict('VM_ID_TAKEN', `VM id ${vmId} is taken: ${reason}`, {
        hint: 'Name another VM id, or none.',
      }),
    );
    return DONE;
  }
  const refused = state.refusedVmIds.get(region) ?? new Map<number, number>();
  state.refusedVmIds.set(region, refused.set(vmId, clock.monotonic()));
  state.ownerUnknownSince.delete(reconcile.id);
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

// Cloud images are downloaded by Proxmox itself, once per storage; machines that need one wait for the same download.

/** Interval at which a download is polled, however many machines wait for it. */
export const IMAGE_POLL_MS = 500;

/** The name contains twelve digits of the checksum: the image behind a `current/` URL changes, the file must not. */
function imageFileName({ url, checksum, format }: ImageSettings): string {
  const last = new URL(url).pathname.split('/').at(-1) ?? '';
  const stem = last.replace(/\.(img|qcow2|raw|vmdk)$/i, '').replaceAll(/[^A-Za-z0-9.+=_-]/g, '-');
  const digits = checksum === undefined ? '' : `-${checksum.hex.slice(0, 12)}`;
  return `${stem === '' ? 'image' : stem}${digits}.${format}`;
}

async function withChecksum(image: ImageSettings): Promise<ImageSettings> {
  const checksum = image.checksum ?? (await image.readChecksum?.());
  return { ...image, checksum };
}

function imageVolume(reconcile: MachineReconcile, image: ImageSettings): string {
  return reconcile.hypervisor.volumeId({
    storage: reconcile.region.storage.images,
    content: 'import',
    name: imageFileName(image),
  });
}

/** True once the machine's host can import the image. Concurrent checks on one host share a result. */
export async function isImagePresent(
  reconcile: MachineReconcile,
  source: ImageSettings,
): Promise<boolean> {
  const image = await withChecksum(source);
  const { imageChecks } = reconcile.context.state;
  const { region, host } = reconcile.placement;
  const key = `${region}/${host}/${imageVolume(reconcile, image)}`;
  const current = imageChecks.get(key);
  if (current !== undefined) return current;
  const check = checkImage(reconcile, image).finally(() => imageChecks.delete(key));
  imageChecks.set(key, check);
  return check;
}

async function checkImage(reconcile: MachineReconcile, image: ImageSettings): Promise<boolean> {
  const { host } = reconcile.placement;
  const { readOptions, state } = reconcile.context;
  const key = downloadKey(reconcile, image);
  // While the download runs, its task is polled: listing a storage costs the host more.
  if ((await pollDownload(reconcile, key)) === 'running') return false;
  const storage = reconcile.region.storage.images;
  const present = await reconcile.hypervisor.volumes(host, storage, 'import', readOptions);
  if (present.some(({ id }) => id === imageVolume(reconcile, image))) return true;
  const running = await findRunningDownload(reconcile, image);
  if (state.downloads.has(key)) return false;
  if (running === undefined) await startDownload(reconcile, image);
  else rememberDownload(reconcile, image, running);
  return false;
}

async function startDownload(reconcile: MachineReconcile, image: ImageSettings): Promise<void> {
  const order = {
    host: reconcile.placement.host,
    storage: reconcile.region.storage.images,
    url: image.url,
    fileName: imageFileName(image),
    verifyCertificates: image.verifyCertificates,
    ...(image.checksum !== undefined && { checksum: image.checksum }),
  };
  // Without a task until Proxmox has answered: another host that shares the storage must not start a second download.
  rememberDownload(reconcile, image, undefined);
  try {
    const { hypervisor, context } = reconcile;
    const task = await hypervisor.downloadImage(order, context.writeOptions());
    rememberDownload(reconcile, image, task);
  } catch (error) {
    reconcile.context.state.downloads.delete(downloadKey(reconcile, image));
    throw error;
  }
  await reconcile.record({
    kind: 'did',
    reason: 'ImageDownloadStarted',
    message: `downloading ${order.fileName} to ${order.storage} on ${order.host}`,
  });
}

function rememberDownload(
  reconcile: MachineReconcile,
  image: ImageSettings,
  task: TaskRef | undefined,
): void {
  const polledAt = reconcile.context.clock.monotonic();
  reconcile.context.state.downloads.set(downloadKey(reconcile, image), { task, polledAt });
}

/** By storage: hosts that share one wait for the same download. */
function downloadKey(reconcile: MachineReconcile, image: ImageSettings): string {
  const { region, host } = reconcile.placement;
  const volume = imageVolume(reconcile, image);
  return isImageStorageShared(reconcile, host)
    ? `${region}/${volume}`
    : `${region}/${host}/${volume}`;
}

function isImageStorageShared({ context, placement, region }: MachineReconcile, host: string) {
  const view = context.views.get(placement.region);
  return view !== undefined && isStorageShared(view, host, region.storage.images);
}

async function findRunningDownload(
  reconcile: MachineReconcile,
  image: ImageSettings,
): Promise<TaskRef | undefined> {
  const name = imageFileName(image);
  const running = await Promise.all(
    downloadHosts(reconcile).map((host) => downloadsOn(reconcile, host)),
  );
  return running.flat().find(({ subject }) => subject === name);
}

/** The hosts that may be downloading to the machine's storage. */
function downloadHosts(reconcile: MachineReconcile): readonly string[] {
  const { context, placement } = reconcile;
  if (!isImageStorageShared(reconcile, placement.host)) return [placement.host];
  const hosts = context.views.get(placement.region)?.hosts ?? [];
  return hosts
    .filter(({ name, online }) => online && isImageStorageShared(reconcile, name))
    .map(({ name }) => name);
}

async function downloadsOn(
  { hypervisor, placement, context }: MachineReconcile,
  host: string,
): Promise<readonly RunningTask[]> {
  try {
    return await hypervisor.runningTasks(host, 'download', context.readOptions);
  } catch (error) {
    // A host that does not answer must not block the others: at worst the image is downloaded twice.
    if (host !== placement.host && isMachineError(error)) return [];
    throw error;
  }
}

async function pollDownload(
  { context, hypervisor }: MachineReconcile,
  key: string,
): Promise<'none' | 'running' | 'ended'> {
  const { state, clock, readOptions } = context;
  const known = state.downloads.get(key);
  if (known === undefined) return 'none';
  const { task, polledAt } = known;
  if (task === undefined || clock.monotonic() - polledAt < IMAGE_POLL_MS) return 'running';
  // Before the request: one poll for all hosts that wait.
  state.downloads.set(key, { task, polledAt: clock.monotonic() });
  const status = await hypervisor.task(task, readOptions).catch((error: unknown) => {
    // Its host is down, or Proxmox does not know the task any more: the next check lists the storage.
    state.downloads.delete(key);
    throw error;
  });
  if (status.state === 'running') return 'running';
  state.downloads.delete(key);
  if (!status.succeeded) throw status.failure ?? new TaskFailed('TASK_FAILED', status.message);
  return 'ended';
}
