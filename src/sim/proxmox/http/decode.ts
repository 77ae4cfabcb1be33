// SPDX-License-Identifier: Apache-2.0
// Decoding of parameters: query and form as Proxmox splits them, JSON bodies, multipart uploads.
import { Buffer } from 'node:buffer';
import { ApiError } from '../api-error.ts';
import type { Params, ParamValue } from '../schema/verify.ts';

const utf8 = new TextDecoder();

/** Decodes `%XX` to bytes, then the bytes as UTF-8. */
export function unescapeBytes(text: string): string {
  if (!text.includes('%')) return text;
  const source = Buffer.from(text, 'utf8').toString('latin1');
  const bytes = source.replaceAll(/%([0-9a-fA-F]{2})/g, (_, code: string) =>
    String.fromCharCode(Number.parseInt(code, 16)),
  );
  return utf8.decode(Buffer.from(bytes, 'latin1'));
}

function toList(value: ParamValue): readonly ParamValue[] {
  return Array.isArray(value) ? value.map((item: ParamValue) => item) : [value];
}

/**
 * Splits on `&` and `;`, and each part on every `=`: a second `=` truncates the value. A repeated key becomes
 * a list.
 */
export function decodeForm(text: string): Record<string, ParamValue> {
  const result: Record<string, ParamValue> = {};
  for (const piece of text.split(/[&;]/)) {
    if (piece === '') continue;
    const [rawKey = '', rawValue] = piece.split('=');
    const key = unescapeBytes(rawKey.replaceAll('+', ' '));
    const value = unescapeBytes((rawValue ?? '').replaceAll('+', ' '));
    const known = result[key];
    result[key] = known === undefined ? value : [...toList(known), value];
  }
  return result;
}

function fromJson(value: unknown): ParamValue | undefined {
  if (value === null || value === undefined) return undefined;
  if (Array.isArray(value)) return value.map((item) => fromJson(item) ?? '');
  if (typeof value === 'object') {
    const entries = Object.entries(value).map(
      ([key, item]) => [key, fromJson(item) ?? ''] as const,
    );
    return Object.fromEntries(entries);
  }
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
    ? value
    : '';
}

/** At most twenty characters of the invalid text. */
function formatRest(text: string): string {
  if (text === '') return '(end of string)';
  return text.length > 20 ? `${text.slice(0, 20)}...` : text;
}

/** The messages of Perl's JSON parser for the common mistakes. */
function describeJsonError(text: string): string {
  const key = /^\s*\{\s*(?=[^\s"}])/.exec(text);
  const comma = /,\s*(?=\})/.exec(text);
  const at = key?.[0].length ?? (comma === null ? undefined : comma.index + comma[0].length);
  const problem =
    at === undefined
      ? 'malformed JSON string, neither tag, array, object, number, string or atom'
      : `'"' expected`;
  return `${problem}, at character offset ${at ?? 0} (before "${formatRest(text.slice(at ?? 0))}")\n`;
}

export function decodeJson(text: string): Params {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    throw new ApiError(500, describeJsonError(text));
  }
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) {
    throw new ApiError(500, 'Not a HASH reference\n');
  }
  const result: Record<string, ParamValue> = {};
  for (const [key, value] of Object.entries(parsed)) {
    const given = fromJson(value);
    if (given !== undefined) result[key] = given;
  }
  return result;
}

export interface Multipart {
  readonly fields: Readonly<Record<string, string>>;
  readonly fileName: string;
  readonly bytes: Uint8Array;
}

function parseDisposition(header: string): { readonly name?: string; readonly filename?: string } {
  const line = header.split(/\r?\n/).find((text) => /^content-disposition\s*:/i.test(text)) ?? '';
  const [kind = '', ...params] = line.replace(/^[^:]*:\s*/, '').split(/\s*[;,]\s*/);
  if (kind !== 'form-data') return {};
  const find = (key: string) =>
    params
      .find((part) => part.startsWith(`${key}=`))
      ?.slice(key.length + 1)
      .replace(/^"(.*)"$/, '$1');
  const name = find('name');
  const filename = find('filename');
  return {
    ...(name === undefined ? {} : { name }),
    ...(filename === undefined ? {} : { filename }),
  };
}

export function parseBoundary(contentType: string | undefined): string | undefined {
  const [type = '', ...params] = (contentType ?? '').split(/\s*[;,]\s*/);
  if (type !== 'multipart/form-data') return undefined;
  return params
    .map((part) => /^\s*boundary\s*=\s*"?([^"\s]+?)"?\s*$/.exec(part)?.[1])
    .find((text) => text !== undefined);
}

/** The file must be the last part: later parts are ignored. */
export function decodeMultipart(body: Uint8Array, boundary: string): Multipart {
  const text = Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('latin1');
  const fields: Record<string, string> = {};
  const marker = `--${boundary}`;
  let at = text.indexOf(marker);
  while (at !== -1) {
    const headerStart = at + marker.length + 2;
    const headerEnd = text.indexOf('\r\n\r\n', headerStart);
    if (headerEnd === -1) break;
    const { name, filename } = parseDisposition(text.slice(headerStart, headerEnd));
    const start = headerEnd + 4;
    const next = text.indexOf(`\r\n${marker}`, start);
    if (name === undefined || next === -1) break;
    if (filename !== undefined) {
      if (name !== 'filename') {
        throw new ApiError(
          500,
          `wrong field name '${name}' for file upload, expected 'filename'\n`,
        );
      }
      return { fields, fileName: unescapeLatin(filename), bytes: body.subarray(start, next) };
    }
    fields[name] = unescapeLatin(text.slice(start, next));
    at = next + 2;
  }
  throw new ApiError(501, 'upload failed\n');
}

function unescapeLatin(text: string): string {
  return utf8.decode(Buffer.from(text, 'latin1'));
}
