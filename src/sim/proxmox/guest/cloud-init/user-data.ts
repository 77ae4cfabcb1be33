// SPDX-License-Identifier: Apache-2.0
// Reads user-data: one document or a MIME archive, plain or compressed. The first line decides the type. Never throws:
// unusable data gives a warning, as in cloud-init's log.
import { gunzipSync } from 'node:zlib';
import { isRecord, type PlainRecord, parseYaml } from '../untyped-values.ts';

export interface UserData {
  /** The merged cloud-config parts; keys of later parts replace those of earlier parts. */
  readonly config: PlainRecord;
  readonly scripts: readonly string[];
  readonly bootHooks: readonly string[];
  readonly warnings: readonly string[];
}

interface MutableUserData {
  config: PlainRecord;
  readonly scripts: string[];
  readonly bootHooks: string[];
  readonly warnings: string[];
}

const MAX_UNPACKED_BYTES = 16 * 1024 * 1024;
const MAX_PARTS = 100;

export function readUserData(bytes: Uint8Array): UserData {
  const collected: MutableUserData = { config: {}, scripts: [], bootHooks: [], warnings: [] };
  const text = decompress(bytes, collected);
  if (/^(content-type|mime-version):/i.test(text)) addArchive(collected, text);
  else addPart(collected, text);
  return collected;
}

function decompress(bytes: Uint8Array, collected: MutableUserData): string {
  if (bytes[0] !== 0x1f || bytes[1] !== 0x8b) return new TextDecoder().decode(bytes);
  try {
    return gunzipSync(bytes, { maxOutputLength: MAX_UNPACKED_BYTES }).toString();
  } catch {
    collected.warnings.push('user-data: cannot decompress the data');
    return '';
  }
}

type PartHandler = (collected: MutableUserData, text: string) => void;

const PART_HANDLERS: readonly (readonly [RegExp, PartHandler])[] = [
  [/^#cloud-config[ \t\r]*(\n|$)/, addConfig],
  [/^#!/, (collected, text) => void collected.scripts.push(text)],
  [/^#cloud-boothook/, (collected, text) => void collected.bootHooks.push(text)],
  [/^## template: *jinja/i, addTemplate],
  [/^\s*$/, () => undefined],
];

function addPart(collected: MutableUserData, text: string): void {
  const kind = PART_HANDLERS.find(([start]) => start.test(text))?.[1];
  if (kind !== undefined) return kind(collected, text);
  const [line = ''] = text.split('\n');
  collected.warnings.push(`user-data: unknown type, starts with '${line.slice(0, 40)}'`);
}

function addTemplate(collected: MutableUserData, text: string): void {
  const rest = text.slice(text.indexOf('\n') + 1);
  if (/\{\{|\{%/.test(rest)) collected.warnings.push('user-data: jinja is not simulated');
  else addPart(collected, rest);
}

function addConfig(collected: MutableUserData, text: string): void {
  const { value, problem } = parseYaml(text);
  if (problem !== undefined) collected.warnings.push(`user-data: not YAML: ${problem}`);
  else if (isRecord(value)) collected.config = { ...collected.config, ...value };
  else if (value !== null && value !== undefined) {
    collected.warnings.push('user-data: the cloud-config is not a mapping');
  }
}

function addArchive(collected: MutableUserData, text: string): void {
  const { headers, body } = parseMimeMessage(text);
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

function addMimePart(collected: MutableUserData, piece: string): void {
  const { headers, body } = parseMimeMessage(piece);
  const isBase64 = /base64/i.test(headers.get('content-transfer-encoding') ?? '');
  const text = isBase64 ? Buffer.from(body, 'base64').toString() : body;
  const type = headers.get('content-type') ?? '';
  // The content type takes precedence over the first line, which is optional in a typed part.
  if (/text\/cloud-config/i.test(type)) addConfig(collected, text);
  else if (/text\/x-shellscript/i.test(type)) collected.scripts.push(text);
  else if (/text\/cloud-boothook/i.test(type)) collected.bootHooks.push(text);
  else addPart(collected, text);
}

function parseMimeMessage(text: string): { headers: ReadonlyMap<string, string>; body: string } {
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

/** Keys that the simulated cloud-init applies. */
const APPLIED_KEYS = [
  'bootcmd fqdn hostname manage_etc_hosts package_update package_upgrade packages password power_state',
  'prefer_fqdn_over_hostname preserve_hostname runcmd ssh_authorized_keys swap user users write_files',
].flatMap((line) => line.split(' '));

/** Keys of real modules whose effect is not visible from outside the guest. */
const IGNORED_KEYS = [
  'apt apt_pipelining byobu_by_default ca_certs chpasswd datasource disable_root final_message growpart groups',
  'keyboard locale merge_how mounts network no_ssh_fingerprints ntp output package_reboot_if_required phone_home',
  'random_seed resize_rootfs rsyslog snap ssh ssh_deletekeys ssh_genkeytypes ssh_import_id ssh_keys ssh_pwauth',
  'timezone updates vendor_data yum_repos allow_public_ssh_keys disable_ec2_metadata cloud_config_modules',
  'cloud_final_modules cloud_init_modules system_info',
].flatMap((line) => line.split(' '));

const KNOWN_KEYS = new Set([...APPLIED_KEYS, ...IGNORED_KEYS]);

/** Keys that no cloud-init module reads. Real cloud-init reports them as schema warnings, not as errors. */
export function findUnknownKeys(config: PlainRecord): readonly string[] {
  return Object.keys(config).filter((key) => !KNOWN_KEYS.has(key));
}
