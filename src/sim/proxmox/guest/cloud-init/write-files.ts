// SPDX-License-Identifier: Apache-2.0
import { gunzipSync } from 'node:zlib';
import { isRecord, isTruthy, listOf, type PlainRecord, textOf } from '../plain-values.ts';
import { parentOf } from '../system/files.ts';
import type { GuestSystem } from '../system/system.ts';

const MAX_UNPACKED_BYTES = 64 * 1024 * 1024;

/**
 * write_files, the early half or the deferred one. As in cloud-init, the first file that fails (an owner who
 * does not exist yet, data that cannot be decoded) ends the module: what comes after it is not written.
 */
export function writeFiles(system: GuestSystem, entries: unknown, deferred: boolean): void {
  for (const entry of listOf(entries)) {
    const file = isRecord(entry) ? entry : {};
    if (isTruthy(file['defer']) !== deferred) continue;
    const path = textOf(file['path']);
    if (path === undefined) {
      system.warn('write_files: an entry without a path');
      continue;
    }
    const problem = writeFile(system, path, file);
    if (problem !== undefined) return system.fail(`write_files: ${path}: ${problem}`);
  }
}

function writeFile(system: GuestSystem, path: string, file: PlainRecord): string | undefined {
  const content = decoded(textOf(file['content']) ?? '', textOf(file['encoding']) ?? '');
  if (content === undefined) return 'the content cannot be decoded';
  system.files.makeDirectory(parentOf(path));
  const append = isTruthy(file['append']);
  system.files.write(path, content, { append, mode: modeOf(system, path, file['permissions']) });
  const owner = textOf(file['owner']) ?? 'root:root';
  const [user = ''] = owner.split(':');
  if (!system.users.has(user)) return `unknown user or group: ${owner}`;
  system.files.chown(path, owner);
  return undefined;
}

/** A text is octal; a number is already what YAML made of it, so that a plain `0644` is right and `644` is not. */
function modeOf(system: GuestSystem, path: string, value: unknown): string {
  if (value === undefined || value === null) return '0644';
  const mode = typeof value === 'number' ? value : Number.parseInt(textOf(value) ?? '', 8);
  if (Number.isInteger(mode) && mode >= 0) return (mode & 0o7777).toString(8).padStart(4, '0');
  system.warn(`write_files: ${path}: permissions cannot be read, 0644 taken`);
  return '0644';
}

function decoded(content: string, encoding: string): string | Uint8Array | undefined {
  const name = encoding.toLowerCase().trim();
  const isBase64 = /b64|base64/.test(name);
  const isGzip = /gz/.test(name);
  if (!isBase64 && !isGzip) return content;
  const bytes = isBase64 ? base64(content) : Buffer.from(content, 'latin1');
  if (bytes === undefined || !isGzip) return bytes;
  try {
    return new Uint8Array(gunzipSync(bytes, { maxOutputLength: MAX_UNPACKED_BYTES }));
  } catch {
    return undefined;
  }
}

function base64(content: string): Uint8Array | undefined {
  const text = content.replace(/\s+/g, '');
  if (!/^[A-Za-z0-9+/]*={0,2}$/.test(text) || text.length % 4 !== 0) return undefined;
  return new Uint8Array(Buffer.from(text, 'base64'));
}
