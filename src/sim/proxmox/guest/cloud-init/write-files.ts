// SPDX-License-Identifier: Apache-2.0
import { gunzipSync } from 'node:zlib';
import { parentPath } from '../system/files.ts';
import type { GuestSystem } from '../system/system.ts';
import { asList, asText, isRecord, isTruthy, type PlainRecord } from '../untyped-values.ts';

const MAX_UNPACKED_BYTES = 64 * 1024 * 1024;

/**
 * Writes the immediate or the deferred entries of write_files. As in cloud-init, the first failure (an unknown owner,
 * undecodable content) ends the module, and the remaining files are not written.
 */
export function writeFiles(system: GuestSystem, entries: unknown, isDeferred: boolean): void {
  for (const entry of asList(entries)) {
    const file = isRecord(entry) ? entry : {};
    if (isTruthy(file['defer']) !== isDeferred) continue;
    const path = asText(file['path']);
    if (path === undefined) {
      system.recordWarning('write_files: an entry has no path');
      continue;
    }
    const problem = writeFile(system, path, file);
    if (problem !== undefined) return system.recordError(`write_files: ${path}: ${problem}`);
  }
}

function writeFile(system: GuestSystem, path: string, file: PlainRecord): string | undefined {
  const content = decodeContent(asText(file['content']) ?? '', asText(file['encoding']) ?? '');
  if (content === undefined) return 'cannot decode the content';
  system.files.makeDirectory(parentPath(path));
  const append = isTruthy(file['append']);
  system.files.write(path, content, {
    append,
    mode: parsePermissions(system, path, file['permissions']),
  });
  const owner = asText(file['owner']) ?? 'root:root';
  const [user = ''] = owner.split(':');
  if (!system.users.has(user)) return `unknown user or group: ${owner}`;
  system.files.chown(path, owner);
  return undefined;
}

/** A string is octal. A number was parsed by YAML 1.1: `0644` is octal, but `644` is decimal. */
function parsePermissions(system: GuestSystem, path: string, value: unknown): string {
  if (value === undefined || value === null) return '0644';
  const mode = typeof value === 'number' ? value : Number.parseInt(asText(value) ?? '', 8);
  if (Number.isInteger(mode) && mode >= 0) return (mode & 0o7777).toString(8).padStart(4, '0');
  system.recordWarning(`write_files: ${path}: cannot parse the permissions, using 0644`);
  return '0644';
}

function decodeContent(content: string, encoding: string): string | Uint8Array | undefined {
  const name = encoding.toLowerCase().trim();
  const isBase64 = /b64|base64/.test(name);
  const isGzip = /gz/.test(name);
  if (!isBase64 && !isGzip) return content;
  const bytes = isBase64 ? decodeBase64(content) : Buffer.from(content, 'latin1');
  if (bytes === undefined || !isGzip) return bytes;
  try {
    return new Uint8Array(gunzipSync(bytes, { maxOutputLength: MAX_UNPACKED_BYTES }));
  } catch {
    return undefined;
  }
}

function decodeBase64(content: string): Uint8Array | undefined {
  const text = content.replace(/\s+/g, '');
  if (!/^[A-Za-z0-9+/]*={0,2}$/.test(text) || text.length % 4 !== 0) return undefined;
  return new Uint8Array(Buffer.from(text, 'base64'));
}
