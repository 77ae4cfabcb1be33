// SPDX-License-Identifier: Apache-2.0
// Cloud images are fetched by Proxmox itself, once per storage; machines that need one wait for the same download.
import { TaskFailed } from '../../ports/errors.ts';
import type { TaskRef } from '../../ports/hypervisor.ts';
import type { MachineReconcile } from '../context/machine-reconcile.ts';
import type { ImageSettings } from '../context/settings.ts';
import { taskSubjectOf } from '../context/upid.ts';

/** Twelve digits of the checksum: the image behind a `current/` address changes, the file must not. */
export function imageFileName({ url, checksum, format }: ImageSettings): string {
  const last = new URL(url).pathname.split('/').at(-1) ?? '';
  const stem = last.replace(/\.(img|qcow2|raw|vmdk)$/i, '').replaceAll(/[^A-Za-z0-9.+=_-]/g, '-');
  const digits = checksum === undefined ? '' : `-${checksum.hex.slice(0, 12)}`;
  return `${stem === '' ? 'image' : stem}${digits}.${format}`;
}

export function imageVolume(reconcile: MachineReconcile, image: ImageSettings): string {
  return `${reconcile.region.storage.images}:import/${imageFileName(image)}`;
}

/** True once the image is where the machine's host can import it from. Whoever asks meanwhile shares the answer. */
export function isImagePresent(
  reconcile: MachineReconcile,
  image: ImageSettings,
): Promise<boolean> {
  const { imageChecks } = reconcile.context.state;
  const key = placeKey(reconcile, image);
  const asked = imageChecks.get(key);
  if (asked !== undefined) return asked;
  const check = checkImage(reconcile, image).finally(() => imageChecks.delete(key));
  imageChecks.set(key, check);
  return check;
}

async function checkImage(reconcile: MachineReconcile, image: ImageSettings): Promise<boolean> {
  const { host } = reconcile.placement;
  const storage = reconcile.region.storage.images;
  // While it comes, its task tells; listing a storage takes a host longer.
  const known = reconcile.context.state.downloads.get(placeKey(reconcile, image));
  if (known !== undefined && (await follow(reconcile, image, known)) === 'running') return false;
  const present = await reconcile.hypervisor.volumes(
    host,
    storage,
    'import',
    reconcile.context.readOptions,
  );
  if (present.some(({ id }) => id === imageVolume(reconcile, image))) return true;
  const running = await downloadUnderWay(reconcile, image);
  if (running === undefined) await download(reconcile, image);
  else reconcile.context.state.downloads.set(placeKey(reconcile, image), running);
  return false;
}

async function download(reconcile: MachineReconcile, image: ImageSettings): Promise<void> {
  const order = {
    host: reconcile.placement.host,
    storage: reconcile.region.storage.images,
    url: image.url,
    fileName: imageFileName(image),
    verifyCertificates: image.verifyCertificates,
    ...(image.checksum !== undefined && { checksum: image.checksum }),
  };
  const task = await reconcile.hypervisor.downloadImage(order, reconcile.context.writeOptions);
  reconcile.context.state.downloads.set(placeKey(reconcile, image), task);
  await reconcile.record({
    kind: 'did',
    reason: 'ImageDownloadStarted',
    message: `${order.fileName} is being downloaded to ${order.storage} on ${order.host}`,
  });
}

function placeKey(reconcile: MachineReconcile, image: ImageSettings): string {
  const { region, host } = reconcile.placement;
  return `${region}/${host}/${imageVolume(reconcile, image)}`;
}

async function downloadUnderWay(
  reconcile: MachineReconcile,
  image: ImageSettings,
): Promise<TaskRef | undefined> {
  const running = await reconcile.hypervisor.runningTasks(
    reconcile.placement.host,
    'download',
    reconcile.context.readOptions,
  );
  const name = imageFileName(image);
  return running.find(({ upid }) => taskSubjectOf(upid) === name);
}

async function follow(
  reconcile: MachineReconcile,
  image: ImageSettings,
  task: TaskRef,
): Promise<'running' | 'ended'> {
  const { downloads } = reconcile.context.state;
  const status = await reconcile.hypervisor
    .task(task, reconcile.context.readOptions)
    .catch((error: unknown) => {
      // Nobody knows the task any more: the storage tells, next time.
      downloads.delete(placeKey(reconcile, image));
      throw error;
    });
  if (status.state === 'running') return 'running';
  downloads.delete(placeKey(reconcile, image));
  if (!status.succeeded) throw status.failure ?? new TaskFailed('TASK_FAILED', status.message);
  return 'ended';
}
