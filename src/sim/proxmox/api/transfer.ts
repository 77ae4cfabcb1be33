// SPDX-License-Identifier: Apache-2.0
// File transfers into a storage: uploads, downloads by URL, metadata of a URL.
import { createHash } from 'node:crypto';
import { CONTENT_FILE_NAMES } from '../../../proxmox/wire-facts/index.ts';
import { parameterError, serverError } from '../api-error.ts';
import type { Call, Handlers, Upload } from '../core.ts';
import type { UrlDescription } from '../state/cluster-description.ts';
import type { Storage, Volume } from '../state/model.ts';
import {
  isFileStorageFull,
  requireActiveStorage,
  requireEnabledStorage,
  volumePath,
  volumesOn,
} from '../storage/volumes.ts';
import { SIMULATED_DURATIONS_MS } from '../tasks/durations.ts';
import type { TaskContext } from '../tasks/engine.ts';

/** Keeps the last path segment and replaces special characters by `_`. */
function normaliseFileName(name: string): string {
  return (name.split(/[/\\]/).at(-1) ?? '').replaceAll(/[^a-zA-Z0-9_.-]/g, '_');
}

function readFileName(call: Call): string {
  const name = normaliseFileName(call.text('filename'));
  const content = call.text('content');
  const rule =
    content === 'iso' || content === 'vztmpl' || content === 'import'
      ? CONTENT_FILE_NAMES[content]
      : undefined;
  if (rule === undefined) {
    throw parameterError({ content: `upload content type '${content}' not allowed` });
  }
  if (!rule.regex.test(name)) throw parameterError({ filename: rule.error });
  return name;
}

interface TransferredFile {
  readonly name: string;
  readonly size: number;
  readonly virtualSize?: number | undefined;
  readonly bytes?: Uint8Array | undefined;
  readonly checksums?: Readonly<Record<string, string>> | undefined;
  readonly backingFile?: string | undefined;
}

function storeFile(call: Call, storage: Storage, file: TransferredFile): void {
  const content = call.text('content');
  const name = `${content}/${file.name}`;
  const extension = /\.([a-z0-9]+)$/i.exec(file.name)?.[1] ?? 'raw';
  const volume: Volume = {
    name,
    content,
    format: content === 'iso' ? 'iso' : extension,
    size: file.size,
    virtualSize: file.virtualSize,
    vmId: undefined,
    createdAt: call.state.nowSeconds(),
    bytes: file.bytes,
    checksums: file.checksums,
    backingFile: file.backingFile,
    image: content === 'import' ? file.name : undefined,
    guestState: undefined,
    everBooted: false,
  };
  volumesOn(storage, call.host).set(name, volume);
}

function verifyUpload(call: Call, bytes: Uint8Array, context: TaskContext): void {
  const algorithm = call.optional('checksum-algorithm');
  const expected = call.text('checksum');
  if (algorithm === undefined) return;
  const got = createHash(algorithm).update(bytes).digest('hex');
  if (got.toLowerCase() !== expected.toLowerCase()) {
    context.log('calculating checksum...');
    throw serverError(`checksum mismatch: got '${got}' != expect '${expected}'`);
  }
  context.log('calculating checksum...OK, checksum verified');
}

const QCOW2_MAGIC = [0x51, 0x46, 0x49, 0xfb];

/** An image must have the format of its extension; any content is valid as raw. */
function verifyImage(call: Call, name: string, file: Upload): void {
  if (call.text('content') !== 'import' || !name.endsWith('.qcow2')) return;
  if (QCOW2_MAGIC.every((byte, index) => file.bytes[index] === byte)) return;
  throw serverError(`qemu-img: Could not open '${file.tmpName}': Image is not in qcow2 format`);
}

function uploadFile(call: Call): string {
  const storage = requireEnabledStorage(
    call.state,
    call.text('storage'),
    call.text('node') === 'localhost' ? call.host : call.text('node'),
  );
  if (storage.path === undefined)
    throw serverError(`can't upload to storage type '${storage.type}'`);
  const file = call.upload;
  if (file === undefined) throw serverError('missing temporary file name');
  const name = readFileName(call);
  const content = call.text('content');
  if (!storage.content.includes(content)) {
    throw serverError(`storage '${storage.id}' does not support '${content}' content`);
  }
  requireActiveStorage(call.state, storage.id, call.host);
  requireSsh(call, storage.id, file);
  const target = volumePath(storage, `${content}/${name}`);
  return call.forkTask({ type: 'imgcopy' }, async (context) => {
    context.log(`starting file import from: ${file.tmpName}`);
    verifyUpload(call, file.bytes, context);
    verifyImage(call, name, file);
    context.log(`target node: ${call.host}`);
    context.log(`target file: ${target}`);
    context.log(`file size is: ${file.bytes.length}`);
    context.log(`command: cp -- ${file.tmpName} ${target}`);
    const mib = file.bytes.length / 2 ** 20;
    await context.work(SIMULATED_DURATIONS_MS.upload + SIMULATED_DURATIONS_MS.uploadPerMib * mib);
    storeFile(call, storage, { name, size: file.bytes.length, bytes: file.bytes });
    context.log('finished file import successfully');
  });
}

/** Another host gets the file by ssh, also on a shared storage. The temporary file stays when that fails. */
function requireSsh({ core, state, host, entryHost }: Call, storage: string, file: Upload): void {
  if (host === entryHost || state.hasSsh) return;
  core.state.leftUploads.push(`${entryHost}:${file.tmpName}`);
  const command = `/usr/bin/ssh -e none -o 'BatchMode=yes' -o 'HostKeyAlias=${host}' ${host} -- pvesm status --storage ${storage}`;
  throw serverError(
    `can't activate storage '${storage}' on node '${host}': command '${command}' failed: exit code 255`,
  );
}

async function lookUpUrl(
  call: Call,
  url: string,
): Promise<(UrlDescription & { readonly bytes?: Uint8Array }) | undefined> {
  return call.state.urls.get(url) ?? (await call.core.urlSource(url));
}

/** Checksum of the bytes, or the one in the cluster description. */
function findChecksum(
  found: {
    readonly bytes?: Uint8Array | undefined;
    readonly checksums?: Readonly<Record<string, string>> | undefined;
  },
  algorithm: string,
): string | undefined {
  const { bytes, checksums } = found;
  if (bytes !== undefined && bytes.length > 0)
    return createHash(algorithm).update(bytes).digest('hex');
  return checksums?.[algorithm];
}

/** True when the file exists with the expected checksum. */
function isAlreadyDownloaded(
  call: Call,
  at: { readonly storage: Storage; readonly name: string; readonly context: TaskContext },
): boolean {
  const existing = volumesOn(at.storage, call.host).get(`${call.text('content')}/${at.name}`);
  if (existing === undefined) return false;
  const path = volumePath(at.storage, existing.name);
  const expected = call.optional('checksum');
  if (expected === undefined) throw serverError(`refusing to override existing file '${path}'`);
  const got = findChecksum(existing, call.text('checksum-algorithm'));
  if (got?.toLowerCase() !== expected.toLowerCase()) {
    throw serverError(`checksum mismatch: got '${got ?? ''}' != expect '${expected}', aborting`);
  }
  at.context.log(`OK, got correct file already, no need to download`);
  return true;
}

async function fetchUrl(
  call: Call,
  { storage, context }: { readonly storage: Storage; readonly context: TaskContext },
): Promise<UrlDescription & { readonly bytes?: Uint8Array }> {
  const url = call.text('url');
  context.log(`downloading ${url} to ${call.text('filename')}`);
  await context.work(SIMULATED_DURATIONS_MS.download);
  const found = await lookUpUrl(call, url);
  const name = new URL(url).hostname;
  if (found === undefined) {
    throw wgetFailed(context, 4, `wget: unable to resolve host address '${name}'`);
  }
  if (found.untrusted === true && call.optional('verify-certificates') !== '0') {
    throw wgetFailed(context, 5, `ERROR: cannot verify ${name}'s certificate:`);
  }
  const { status = 200 } = found;
  if (status >= 400) {
    const time = new Date(call.state.clock.now()).toISOString().slice(0, 19).replace('T', ' ');
    throw wgetFailed(context, 8, `${time} ERROR ${status}: Not Found.`);
  }
  const bytes = found.size ?? found.bytes?.length ?? 0;
  await context.work((SIMULATED_DURATIONS_MS.downloadPerMib * bytes) / 2 ** 20);
  if (isFileStorageFull(storage, call.host, bytes)) {
    const file = volumePath(storage, `${call.text('content')}/${call.text('filename')}`);
    throw wgetFailed(context, 3, `Cannot write to '${file}.tmp' (No space left on device).`);
  }
  return found;
}

/** wget prints the cause into the log; the exit status of the task has only its exit code. */
function wgetFailed(context: TaskContext, exitCode: number, line: string): Error {
  context.log(line);
  return serverError(`download failed: exit code ${exitCode}`);
}

/** Returns the checksums to store with the file; throws when the expected one differs. */
function verifyDownload(
  call: Call,
  found: UrlDescription & { readonly bytes?: Uint8Array },
): Readonly<Record<string, string>> {
  const algorithm = call.optional('checksum-algorithm');
  if (algorithm === undefined) return found.checksums ?? {};
  const expected = call.text('checksum').toLowerCase();
  // A URL without a described checksum always matches.
  const got = findChecksum(found, algorithm) ?? expected;
  if (got.toLowerCase() !== expected) {
    throw serverError(`checksum mismatch: got '${got}' != expect '${call.text('checksum')}'`);
  }
  return { ...found.checksums, [algorithm]: expected };
}

/** Checked inside the task: the parameter schema accepts any text. */
function checkCompression(compression: string, content: string): void {
  if (compression === '' || compression === '0') return;
  if (content !== 'iso') throw serverError(`decompression not supported for ${content}`);
  if (!['gz', 'lzo', 'zst', 'bz2'].includes(compression)) {
    throw serverError('no decompression method found');
  }
}

async function downloadTask(
  call: Call,
  at: { readonly storage: Storage; readonly name: string; readonly context: TaskContext },
): Promise<void> {
  const { storage, name, context } = at;
  const content = call.text('content');
  checkCompression(call.text('compression'), content);
  if (isAlreadyDownloaded(call, at)) return;
  const found = await fetchUrl(call, at);
  const checksums = verifyDownload(call, found);
  if (found.backingFile !== undefined && content === 'import') {
    const path = volumePath(storage, `import/${name}`);
    throw serverError(`backing file not allowed for untrusted image '${path}'!`);
  }
  storeFile(call, storage, {
    ...found,
    name,
    size: found.size ?? found.bytes?.length ?? 0,
    checksums,
  });
  context.log(`download of '${call.text('url')}' to '${name}' finished`);
}

function downloadUrl(call: Call): string {
  const storage = requireEnabledStorage(call.state, call.text('storage'), call.host);
  if (storage.path === undefined) {
    throw serverError(`can't upload to storage type '${storage.type}', not a file based storage!`);
  }
  const content = call.text('content');
  if (!storage.content.includes(content)) {
    throw serverError(`storage '${storage.id}' is not configured for content-type '${content}'`);
  }
  const name = readFileName(call);
  requireActiveStorage(call.state, storage.id, call.host);
  return call.forkTask({ type: 'download', id: name }, (context) =>
    downloadTask(call, { storage, name, context }),
  );
}

function formatHostAndPort(url: string): string {
  const { hostname, port, protocol } = new URL(url);
  const usual = protocol === 'https:' ? '443' : '80';
  return `${hostname}:${port === '' ? usual : port}`;
}

async function queryUrlMetadata(call: Call): Promise<unknown> {
  const url = call.text('url');
  const found = await lookUpUrl(call, url);
  if (found === undefined)
    throw serverError(
      `invalid server response: '500 Can't connect to ${formatHostAndPort(url)} (Name or service not known)'`,
    );
  const status = found.status ?? 200;
  if (status >= 400)
    throw serverError(
      `invalid server response: '${status} ${status === 404 ? 'Not Found' : 'Error'}'`,
    );
  const filename = /^[^?]+\/([^?/]*)(?:\?.*)?$/s.exec(url)?.[1] ?? '';
  return {
    ...(filename === '' ? {} : { filename }),
    ...(found.size === undefined ? {} : { size: found.size }),
    ...(found.type === undefined ? {} : { mimetype: found.type }),
  };
}

export const TRANSFER_HANDLERS: Handlers = {
  'POST /nodes/{node}/storage/{storage}/upload': uploadFile,
  'POST /nodes/{node}/storage/{storage}/download-url': downloadUrl,
  'GET /nodes/{node}/query-url-metadata': queryUrlMetadata,
};
