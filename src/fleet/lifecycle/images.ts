// SPDX-License-Identifier: Apache-2.0
// Cloud images are fetched by Proxmox itself, once per storage; machines that need one wait for the same download.
import { TaskFailed } from '../../ports/errors.ts';
import type { TaskRef } from '../../ports/hypervisor.ts';
import type { ImageSettings } from '../settings.ts';
import { taskSubjectOf } from '../upid.ts';
import type { Job } from './job.ts';

/** Twelve digits of the checksum: the image behind a `current/` address changes, the file must not. */
export function imageFileName({ url, checksum, format }: ImageSettings): string {
  const last = new URL(url).pathname.split('/').at(-1) ?? '';
  const stem = last.replace(/\.(img|qcow2|raw|vmdk)$/i, '').replaceAll(/[^A-Za-z0-9.+=_-]/g, '-');
  const digits = checksum === undefined ? '' : `-${checksum.hex.slice(0, 12)}`;
  return `${stem === '' ? 'image' : stem}${digits}.${format}`;
}

export function imageVolume(job: Job, image: ImageSettings): string {
  return `${job.region.storage.images}:import/${imageFileName(image)}`;
}

/** True once the image is where the machine's host can import it from. Whoever asks meanwhile shares the answer. */
export function imageIsThere(job: Job, image: ImageSettings): Promise<boolean> {
  const { imageChecks } = job.turn.memory;
  const key = placeKey(job, image);
  const asked = imageChecks.get(key);
  if (asked !== undefined) return asked;
  const check = checkImage(job, image).finally(() => imageChecks.delete(key));
  imageChecks.set(key, check);
  return check;
}

async function checkImage(job: Job, image: ImageSettings): Promise<boolean> {
  const { host } = job.placement;
  const storage = job.region.storage.images;
  // While it comes, its task tells; listing a storage takes a host longer.
  const known = job.turn.memory.downloads.get(placeKey(job, image));
  if (known !== undefined && (await follow(job, image, known)) === 'running') return false;
  const present = await job.hypervisor.volumes(host, storage, 'import', job.turn.reading);
  if (present.some(({ id }) => id === imageVolume(job, image))) return true;
  const running = await downloadUnderWay(job, image);
  if (running === undefined) await download(job, image);
  else job.turn.memory.downloads.set(placeKey(job, image), running);
  return false;
}

async function download(job: Job, image: ImageSettings): Promise<void> {
  const order = {
    host: job.placement.host,
    storage: job.region.storage.images,
    url: image.url,
    fileName: imageFileName(image),
    verifyCertificates: image.verifyCertificates,
    ...(image.checksum !== undefined && { checksum: image.checksum }),
  };
  const task = await job.hypervisor.downloadImage(order, job.turn.acting);
  job.turn.memory.downloads.set(placeKey(job, image), task);
  await job.tell({
    kind: 'did',
    reason: 'ImageDownloadStarted',
    message: `${order.fileName} is being downloaded to ${order.storage} on ${order.host}`,
  });
}

function placeKey(job: Job, image: ImageSettings): string {
  const { region, host } = job.placement;
  return `${region}/${host}/${imageVolume(job, image)}`;
}

async function downloadUnderWay(job: Job, image: ImageSettings): Promise<TaskRef | undefined> {
  const running = await job.hypervisor.runningTasks(
    job.placement.host,
    'download',
    job.turn.reading,
  );
  const name = imageFileName(image);
  return running.find(({ upid }) => taskSubjectOf(upid) === name);
}

async function follow(job: Job, image: ImageSettings, task: TaskRef): Promise<'running' | 'ended'> {
  const { downloads } = job.turn.memory;
  const status = await job.hypervisor.task(task, job.turn.reading).catch((error: unknown) => {
    // Nobody knows the task any more: the storage tells, next time.
    downloads.delete(placeKey(job, image));
    throw error;
  });
  if (status.state === 'running') return 'running';
  downloads.delete(placeKey(job, image));
  if (!status.succeeded) throw status.failure ?? new TaskFailed('TASK_FAILED', status.message);
  return 'ended';
}
