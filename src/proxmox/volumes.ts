// SPDX-License-Identifier: Apache-2.0
import { InvalidConfig, PvescalerError, Unauthorized } from '../ports/errors.ts';
import type {
  CallOptions,
  ImageOrder,
  TaskRef,
  Volume,
  VolumeContent,
} from '../ports/hypervisor.ts';
import type { Random } from '../ports/random.ts';
import type { SizedBody } from '../ports/transport.ts';
import type { ApiClient, ApiRequest } from './api-client.ts';

import type { TaskFollower } from './tasks.ts';
import { parseStartedTask } from './upid.ts';
import type { VersionCheck } from './version.ts';
import { asNumber, asObjects, asText, encodeSegment } from './wire-values.ts';

/** Names that Proxmox accepts for content type `import`. An Ubuntu `.img` is qcow2 and must be named `.qcow2`. */
const IMAGE_NAME = /^[A-Za-z0-9.+=_-]+\.(ova|qcow2|raw|vmdk)$/;
/** Proxmox stores a file with any other name under a changed name. */
const ISO_NAME = /^[A-Za-z0-9_.-]+\.(iso|img)$/i;

const DELETE_TIMEOUT_MS = 2 * 60 * 1_000;

export interface IsoFile {
  readonly host: string;
  readonly storage: string;
  readonly name: string;
  readonly bytes: Uint8Array;
}

/** Writes a file to the host, where Proxmox takes it from. */
export type StageFile = (
  file: Pick<IsoFile, 'host' | 'bytes'>,
  options: CallOptions,
) => Promise<{ readonly path: string; remove(): Promise<void> }>;

interface VolumesOptions {
  /** Absent: files are part of the request. */
  readonly stageFile?: StageFile | undefined;
  readonly api: ApiClient;
  readonly random: Random;
  readonly version: VersionCheck;
  readonly follower: TaskFollower;
}

/** Volumes on storages: disk images and seed ISOs. */
export class Volumes {
  readonly #api: ApiClient;
  readonly #random: Random;
  readonly #version: VersionCheck;
  readonly #follower: TaskFollower;
  readonly #stageFile: StageFile | undefined;

  constructor(options: VolumesOptions) {
    this.#api = options.api;
    this.#random = options.random;
    this.#version = options.version;
    this.#follower = options.follower;
    this.#stageFile = options.stageFile;
  }

  async list(
    at: { readonly host: string; readonly storage: string },
    content: VolumeContent,
    options: CallOptions,
  ): Promise<readonly Volume[]> {
    const data = await this.#api.requestData({
      method: 'GET',
      path: `${storagePath(at)}/content`,
      query: { content },
      operation: `list the volumes of storage ${at.storage} on ${at.host}`,
      host: at.host,
      ...options,
    });
    return asObjects(data).flatMap((entry) => {
      const id = asText(entry['volid']);
      if (id === undefined) return [];
      const vmId = asNumber(entry['vmid']);
      return [
        {
          id,
          name: id.slice(id.lastIndexOf('/') + 1),
          bytes: asNumber(entry['size']) ?? 0,
          content: asText(entry['content']) ?? content,
          ...(vmId === undefined ? {} : { vmId }),
        },
      ];
    });
  }

  async download(order: ImageOrder, options: CallOptions): Promise<TaskRef> {
    if (!IMAGE_NAME.test(order.fileName)) {
      throw invalidFileName(
        order.fileName,
        'letters, digits, ".+=_-", then .qcow2, .raw, .vmdk or .ova',
      );
    }
    await this.#version.requireAtLeast(
      '8.4',
      'downloading a disk image needs Proxmox VE 8.4',
      options,
    );
    const operation = `download ${order.fileName} to ${order.storage} on ${order.host}`;
    const data = await this.#api.requestData({
      method: 'POST',
      path: `${storagePath(order)}/download-url`,
      form: {
        content: 'import',
        filename: order.fileName,
        url: order.url,
        checksum: order.checksum?.hex,
        'checksum-algorithm': order.checksum?.algorithm,
        'verify-certificates': order.verifyCertificates,
      },
      operation,
      host: order.host,
      needs: [
        { privilege: 'Datastore.AllocateTemplate', path: `/storage/${order.storage}` },
        { privilege: 'Sys.AccessNetwork', path: `/nodes/${order.host}` },
      ],
      ...options,
    });
    return parseStartedTask(data, operation);
  }

  async upload(file: IsoFile, options: CallOptions): Promise<TaskRef> {
    if (!ISO_NAME.test(file.name))
      throw invalidFileName(file.name, 'letters, digits, "_.-", then .iso or .img');
    const operation = `upload ${file.name} to ${file.storage} on ${file.host}`;
    const request = {
      method: 'POST',
      path: `${storagePath(file)}/upload`,
      operation,
      host: file.host,
      ...options,
    } as const;
    if (this.#stageFile !== undefined)
      return this.#uploadStaged(request, file, await this.#stageFile(file, options));
    const data = await this.#api.requestData({
      ...request,
      upload: encodeMultipart({
        fields: [['content', 'iso']],
        fileName: file.name,
        bytes: file.bytes,
        boundary: `pvescaler-${this.#random.uuid()}`,
      }),
      needs: [{ privilege: 'Datastore.AllocateTemplate', path: `/storage/${file.storage}` }],
      isForHostItself: true,
    });
    return parseStartedTask(data, operation);
  }

  /** The task removes the staged file. */
  async #uploadStaged(
    request: ApiRequest,
    { name }: IsoFile,
    staged: Awaited<ReturnType<StageFile>>,
  ): Promise<TaskRef> {
    const form = { content: 'iso', filename: name, tmpfilename: staged.path };
    try {
      const data = await this.#api.requestData({ ...request, form });
      return parseStartedTask(data, request.operation);
    } catch (error) {
      // It contains the secrets of a machine. If the call may have started the task, the task removes it.
      const { status, requestSent } = error instanceof PvescalerError ? error.facts : {};
      if (status !== undefined || requestSent === false)
        await staged.remove().catch(() => undefined);
      throw error;
    }
  }

  async delete(host: string, volumeId: string, options: CallOptions): Promise<void> {
    const storage = volumeId.split(':')[0] ?? '';
    try {
      const data = await this.#api.requestData({
        method: 'DELETE',
        path: `${storagePath({ host, storage })}/content/${encodeSegment(volumeId)}`,
        operation: `delete ${volumeId} on ${host}`,
        repeatable: true,
        host,
        ...options,
      });
      if (data !== null)
        await this.#waitForTask(parseStartedTask(data, `delete ${volumeId}`), options);
    } catch (error) {
      if (!isVolumeNotFound(error)) throw withPrivilegeHint(error, storage);
    }
  }

  async #waitForTask(task: TaskRef, options: CallOptions): Promise<void> {
    const end = await this.#follower.follow(task, { timeoutMs: DELETE_TIMEOUT_MS, ...options });
    if (end.failure !== undefined) throw end.failure;
  }
}

/** `local:iso/seed.iso` */
export function formatVolumeId(file: {
  readonly storage: string;
  readonly content: VolumeContent;
  readonly name: string;
}): string {
  return `${file.storage}:${file.content}/${file.name}`;
}

function storagePath(at: { readonly host: string; readonly storage: string }): string {
  return `/nodes/${encodeSegment(at.host)}/storage/${encodeSegment(at.storage)}`;
}

function invalidFileName(name: string, rule: string): InvalidConfig {
  return new InvalidConfig(
    'PARAMETER_REFUSED',
    `Proxmox does not accept the file name ${name}; use ${rule}`,
  );
}

function isVolumeNotFound(error: unknown): boolean {
  return error instanceof PvescalerError && error.code === 'VOLUME_NOT_FOUND';
}

/** Uploading an ISO does not need this privilege, deleting it does. */
function withPrivilegeHint(error: unknown, storage: string): unknown {
  if (!(error instanceof PvescalerError) || error.code !== 'PERMISSION_MISSING') return error;
  return new Unauthorized('PERMISSION_MISSING', error.message, {
    hint: `Deleting a file needs Datastore.Allocate on /storage/${storage}; AllocateSpace and AllocateTemplate are not sufficient.`,
    cause: error,
    facts: error.facts,
  });
}

interface FileUpload {
  /** Name and value of the fields, in the order in which they precede the file. */
  readonly fields: readonly (readonly [string, string])[];
  readonly fileName: string;
  readonly bytes: Uint8Array;
  readonly boundary: string;
}

/**
 * Encodes an upload for the parser of Proxmox: the fields first, the file last with the name `filename`, and in each part
 * Content-Disposition before all other headers. The length is known, because Proxmox refuses chunked bodies.
 */
function encodeMultipart(upload: FileUpload): {
  readonly contentType: string;
  readonly body: SizedBody;
} {
  const encoder = new TextEncoder();
  const fields = upload.fields.map(
    ([name, value]) =>
      `--${upload.boundary}\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`,
  );
  const fileHead =
    `--${upload.boundary}\r\n` +
    `Content-Disposition: form-data; name="filename"; filename="${upload.fileName}"\r\n` +
    'Content-Type: application/octet-stream\r\n\r\n';
  const head = encoder.encode(fields.join('') + fileHead);
  const tail = encoder.encode(`\r\n--${upload.boundary}--\r\n`);
  return {
    contentType: `multipart/form-data; boundary=${upload.boundary}`,
    body: {
      byteLength: head.length + upload.bytes.length + tail.length,
      async *open() {
        yield head;
        yield upload.bytes;
        yield tail;
      },
    },
  };
}
