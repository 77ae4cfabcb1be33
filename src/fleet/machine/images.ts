// SPDX-License-Identifier: Apache-2.0
// Cloud images are downloaded by Proxmox itself, once per storage; machines that need one wait for the same download.
import { TaskFailed } from '../../ports/errors.ts';
import type { TaskRef } from '../../ports/hypervisor.ts';
import type { MachineReconcile } from '../context/machine-reconcile.ts';
import type { ImageSettings } from '../context/settings.ts';

/** Interval at which a download is polled, however many machines wait for it. */
export const IMAGE_POLL_MS = 500;

/** The name contains twelve digits of the checksum: the image behind a `current/` URL changes, the file must not. */
export function imageFileName({ url, checksum, format }: ImageSettings): string {
  const last = new URL(url).pathname.split('/').at(-1) ?? '';
  const stem = last.replace(/\.(img|qcow2|raw|vmdk)$/i, '').replaceAll(/[^A-Za-z0-9.+=_-]/g, '-');
  const digits = checksum === undefined ? '' : `-${checksum.hex.slice(0, 12)}`;
  return `${stem === '' ? 'image' : stem}${digits}.${format}`;
}

export function imageVolume(reconcile: MachineReconcile, image: ImageSettings): string {
  return reconcile.hypervisor.volumeId({
    storage: reconcile.region.storage.images,
    content: 'import',
    name: imageFileName(image),
  });
}

/** True once the machine's host can import the image. Concurrent checks of the same image share one result. */
export function isImagePresent(
  reconcile: MachineReconcile,
  image: ImageSettings,
): Promise<boolean> {
  const { imageChecks } = reconcile.context.state;
  const key = downloadKey(reconcile, image);
  const current = imageChecks.get(key);
  if (current !== undefined) return current;
  const check = checkImage(reconcile, image).finally(() => imageChecks.delete(key));
  imageChecks.set(key, check);
  return check;
}

async function checkImage(reconcile: MachineReconcile, image: ImageSettings): Promise<boolean> {
  const { host } = reconcile.placement;
  const { readOptions, state } = reconcile.context;
  // While the download runs, its task is polled: listing a storage costs the host more.
  const task = state.downloads.get(downloadKey(reconcile, image))?.task;
  if (task !== undefined && (await pollDownload(reconcile, image, task)) === 'running')
    return false;
  const storage = reconcile.region.storage.images;
  const present = await reconcile.hypervisor.volumes(host, storage, 'import', readOptions);
  if (present.some(({ id }) => id === imageVolume(reconcile, image))) return true;
  const running = await findRunningDownload(reconcile, image);
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
  const task = await reconcile.hypervisor.downloadImage(order, reconcile.context.writeOptions);
  rememberDownload(reconcile, image, task);
  await reconcile.record({
    kind: 'did',
    reason: 'ImageDownloadStarted',
    message: `downloading ${order.fileName} to ${order.storage} on ${order.host}`,
  });
}

function rememberDownload(reconcile: MachineReconcile, image: ImageSettings, task: TaskRef): void {
  const polledAt = reconcile.context.clock.monotonic();
  reconcile.context.state.downloads.set(downloadKey(reconcile, image), { task, polledAt });
}

function downloadKey(reconcile: MachineReconcile, image: ImageSettings): string {
  const { region, host } = reconcile.placement;
  return `${region}/${host}/${imageVolume(reconcile, image)}`;
}

async function findRunningDownload(
  reconcile: MachineReconcile,
  image: ImageSettings,
): Promise<TaskRef | undefined> {
  const { readOptions } = reconcile.context;
  const { host } = reconcile.placement;
  const running = await reconcile.hypervisor.runningTasks(host, 'download', readOptions);
  const name = imageFileName(image);
  return running.find(({ subject }) => subject === name);
}

async function pollDownload(
  reconcile: MachineReconcile,
  image: ImageSettings,
  task: TaskRef,
): Promise<'running' | 'ended'> {
  const { state, clock, readOptions } = reconcile.context;
  const key = downloadKey(reconcile, image);
  const polledAt = state.downloads.get(key)?.polledAt ?? Number.NEGATIVE_INFINITY;
  if (clock.monotonic() - polledAt < IMAGE_POLL_MS) return 'running';
  const status = await reconcile.hypervisor.task(task, readOptions).catch((error: unknown) => {
    // Proxmox does not know the task any more: the next check lists the storage.
    state.downloads.delete(key);
    throw error;
  });
  if (status.state === 'running') {
    rememberDownload(reconcile, image, task);
    return 'running';
  }
  state.downloads.delete(key);
  if (!status.succeeded) throw status.failure ?? new TaskFailed('TASK_FAILED', status.message);
  return 'ended';
}
