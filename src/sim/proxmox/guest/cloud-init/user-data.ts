// SPDX-License-Identifier: Apache-2.0
// user-data as it comes: one document or a MIME archive of several, plain or compressed; told apart by the
// first line. Never throws: what cannot be used is a warning, as in cloud-init's log.
import { gunzipSync } from 'node:zlib';
import { isRecord, type PlainRecord, parseYaml } from '../plain-values.ts';

export interface UserData {
  /** All cloud-config parts; a later part's keys take the place of an earlier one's. */
  readonly config: PlainRecord;
  readonly scripts: readonly string[];
  readonly bootHooks: readonly string[];
  readonly warnings: readonly string[];
}

interface Collected {
  config: PlainRecord;
  readonly scripts: string[];
  readonly bootHooks: string[];
  readonly warnings: string[];
}

const MAX_UNPACKED_BYTES = 16 * 1024 * 1024;
const MAX_PARTS = 100;

export function readUserData(bytes: Uint8Array): UserData {
  const collected: Collected = { config: {}, scripts: [], bootHooks: [], warnings: [] };
  const text = unpacked(bytes, collected);
  if (/^(content-type|mime-version):/i.test(text)) addArchive(collected, text);
  else addPart(collected, text);
  return collected;
}

function unpacked(bytes: Uint8Array, collected: Collected): string {
  if (bytes[0] !== 0x1f || bytes[1] !== 0x8b) return new TextDecoder().decode(bytes);
  try {
    return gunzipSync(bytes, { maxOutputLength: MAX_UNPACKED_BYTES }).toString();
  } catch {
    collected.warnings.push('user-data: the compressed data cannot be read');
    return '';
  }
}

type PartKind = (collected: Collected, text: string) => void;

const KINDS: readonly (readonly [RegExp, PartKind])[] = [
  [/^#cloud-config[ \t\r]*(\n|$)/, addConfig],
  [/^#!/, (collected, text) => void collected.scripts.push(text)],
  [/^#cloud-boothook/, (collected, text) => void collected.bootHooks.push(text)],
  [/^## template: *jinja/i, addTemplate],
  [/^\s*$/, () => undefined],
];

function addPart(collected: Collected, text: string): void {
  const kind = KINDS.find(([start]) => start.test(text))?.[1];
  if (kind !== undefined) return kind(collected, text);
  const [line = ''] = text.split('\n');
  collected.warnings.push(`user-data: unhandled, it starts with '${line.slice(0, 40)}'`);
}

function addTemplate(collected: Collected, text: string): void {
  const rest = text.slice(text.indexOf('\n') + 1);
  if (/\{\{|\{%/.test(rest)) collected.warnings.push('user-data: jinja is not modelled');
  else addPart(collected, rest);
}

function addConfig(collected: Collected, text: string): void {
  const { value, problem } = parseYaml(text);
  if (problem !== undefined) collected.warnings.push(`user-data: not YAML: ${problem}`);
  else if (isRecord(value)) collected.config = { ...collected.config, ...value };
  else if (value !== null && value !== undefined) {
    collected.warnings.push('user-data: the cloud-config is not a mapping');
  }
}

function addArchive(collected: Collected, text: string): void {
  const { headers, body } = message(text);
  const boundary = /boundary="?([^";\s]+)"?/i.exec(headers.get('content-type') ?? '')?.[1];
  if (boundary === undefined) {
    collected.warnings.push('user-data: multipart without a boundary');
    return;
  }
  const pieces = `\n${body}`.split(`\n--${boundary}`).slice(1, MAX_PARTS);
  for (const piece of pieces) {
    if (piece.startsWith('--')) break;
    addMimePart(collected, piece.replace(/^[ \t]*\n/, ''));
  }
}

function addMimePart(collected: Collected, piece: string): void {
  const { headers, body } = message(piece);
  const isBase64 = /base64/i.test(headers.get('content-transfer-encoding') ?? '');
  const text = isBase64 ? Buffer.from(body, 'base64').toString() : body;
  const type = headers.get('content-type') ?? '';
  // The type wins over the first line, which a typed part need not have.
  if (/text\/cloud-config/i.test(type)) addConfig(collected, text);
  else if (/text\/x-shellscript/i.test(type)) collected.scripts.push(text);
  else if (/text\/cloud-boothook/i.test(type)) collected.bootHooks.push(text);
  else addPart(collected, text);
}

function message(text: string): { headers: ReadonlyMap<string, string>; body: string } {
  const unix = text.replaceAll('\r\n', '\n');
  const end = unix.startsWith('\n') ? 0 : unix.indexOf('\n\n');
  const head = end < 0 ? unix : unix.slice(0, end);
  const headers = new Map<string, string>();
  for (const line of head.replace(/\n[ \t]+/g, ' ').split('\n')) {
    const split = line.indexOf(':');
    if (split > 0) headers.set(line.slice(0, split).toLowerCase(), line.slice(split + 1).trim());
  }
  return { headers, body: end < 0 ? '' : unix.slice(end).replace(/^\n{1,2}/, '') };
}
