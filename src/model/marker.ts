// SPDX-License-Identifier: Apache-2.0
// The marker in a VM's description proves ownership and contains everything needed to adopt a running machine
// after the database was lost. It is one line; people may write other text around it:
//
//   pvescaler/v1 cluster=<uid> region=<name> pool=<name>|role=<role> machine=<uuid> vmid=<n> created=<seconds> [address=<cidr>]… [ready=<seconds>] [deleting=<seconds>]
//     [template=<name> version=<n>]
//
// A VM is ours only if the marker's vmid equals the VM's id: clones, copies and restored backups inherit the
// text but have another id. Its region must be the one in which the VM was found: a VM that was restored or migrated
// to another Proxmox keeps its id. Once the machine is configured, the SMBIOS UUID must equal the machine id too.

import { type MachineId, parseMachineId } from './machine.ts';
import { parsePoolName } from './names.ts';
import { accepted, type Parsed, refused } from './parsed.ts';
import { roleGroup, roleOf, type TemplateVersion } from './role.ts';

export interface Marker {
  /** UID of the kube-system namespace, or a generated id; never the cluster's name. */
  readonly cluster: string;
  /** Name of the region in the config. Absent in markers of earlier versions. */
  readonly region?: string;
  /** Name of the pool; `role:<role>` of a hand-made VM, whose marker has a role instead. */
  readonly pool: string;
  readonly machine: MachineId;
  readonly vmId: number;
  /** Seconds since 1970. */
  readonly createdAtSeconds: number;
  /** Static addresses in CIDR form; empty with DHCP. */
  readonly addresses: readonly string[];
  /** When it became ready (seconds). From then on it is deleted only on request or by a stated policy. */
  readonly readySinceSeconds?: number;
  /** When its deletion began (seconds). A crash or a lost database never makes it live again. */
  readonly deletingSinceSeconds?: number;
  /** The template that the VM is, or becomes. */
  readonly template?: TemplateVersion;
  /** Keys that a newer version added. This version keeps them when it rewrites the line. */
  readonly unknown?: readonly (readonly [string, string])[];
}

/** `none`: no marker. `damaged`: an unreadable marker, so the VM must neither be deleted nor be ignored. */
export type MarkerReading =
  | { readonly kind: 'none' }
  | { readonly kind: 'marked'; readonly marker: Marker }
  | { readonly kind: 'damaged'; readonly problem: string };

const PREFIX = 'pvescaler/v1';
const LINE = /^[ \t]*pvescaler\/(v\d+)(?:[ \t]+(.*?))?[ \t]*$/;
const CLUSTER = /^[0-9A-Za-z][0-9A-Za-z._-]{0,127}$/;
const KEY = /^[a-z][a-z0-9-]*$/;
const VALUE = /^[^\s=<>`]+$/;

export function formatMarker(marker: Marker): string {
  const fields: (readonly [string, string])[] = [
    ['cluster', marker.cluster],
    ...(marker.region === undefined ? [] : [['region', marker.region] as const]),
    groupField(marker.pool),
    ['machine', marker.machine],
    ['vmid', String(marker.vmId)],
    ['created', String(marker.createdAtSeconds)],
    ...marker.addresses.map((address) => ['address', address] as const),
    ...sinceField('ready', marker.readySinceSeconds),
    ...sinceField('deleting', marker.deletingSinceSeconds),
    ...templateFields(marker.template),
    ...(marker.unknown ?? []),
  ];
  return [PREFIX, ...fields.map(([key, value]) => `${key}=${value}`)].join(' ');
}

function groupField(pool: string): readonly [string, string] {
  const role = roleOf(pool);
  return role === undefined ? ['pool', pool] : ['role', role];
}

function templateFields(
  template: TemplateVersion | undefined,
): readonly (readonly [string, string])[] {
  if (template === undefined) return [];
  return [
    ['template', template.name],
    ['version', String(template.version)],
  ];
}

function sinceField(
  key: string,
  seconds: number | undefined,
): readonly (readonly [string, string])[] {
  return seconds === undefined ? [] : [[key, String(seconds)]];
}

/** A person has decided that the VM is not ours, although its id, tags or SMBIOS UUID are like ours. */
const IGNORED = 'pvescaler/ignored';

export function isIgnored(description: string | undefined): boolean {
  return (
    readMarker(description).kind === 'none' && splitLines(description ?? '').some(isIgnoredLine)
  );
}

/** Replaces every marker line by one that says that the VM is to be ignored; keeps all other text. */
export function withoutMarker(description: string): string {
  const kept = splitLines(description).filter((text) => !LINE.test(text) && !isIgnoredLine(text));
  return [...kept, IGNORED].join('\n');
}

/** Why the marker lines are not to be replaced: they may belong to another cluster or a newer version. */
export function foreignMarkerReason(
  description: string | undefined,
  cluster: string,
): string | undefined {
  for (const line of splitLines(description ?? '')) {
    const [, version, rest = ''] = LINE.exec(line) ?? [];
    if (version === undefined) continue;
    if (version !== 'v1') return `marker version ${version} is not supported by this version`;
    const [, named] = /(?:^|[ \t])cluster=(\S+)/.exec(rest) ?? [];
    if (named !== undefined && named !== cluster) return `it belongs to cluster ${named}`;
  }
  return undefined;
}

function isIgnoredLine(line: string): boolean {
  return line.trim() === IGNORED;
}

function splitLines(description: string): readonly string[] {
  return description === '' ? [] : description.split(/\r?\n/);
}

/** Inserts the marker into a description: replaces an existing marker line and keeps all other text. */
export function withMarker(description: string, marker: Marker): string {
  const all = description === '' ? [] : description.split('\n');
  const lines = all.filter((text) => !isIgnoredLine(text));
  const line = formatMarker(marker);
  const at = lines.findIndex((text) => LINE.test(text));
  if (at < 0) return [...lines, line].join('\n');
  return [
    ...lines.slice(0, at),
    line,
    ...lines.slice(at + 1).filter((text) => !LINE.test(text)),
  ].join('\n');
}

export function readMarker(description: string | undefined): MarkerReading {
  const found = (description ?? '')
    .split(/\r?\n/)
    .map((line) => LINE.exec(line))
    .filter((match) => match !== null);
  const [match] = found;
  if (match === undefined) return { kind: 'none' };
  if (found.length > 1)
    return { kind: 'damaged', problem: 'the description has more than one marker' };
  const [, version, rest = ''] = match;
  if (version !== 'v1')
    return {
      kind: 'damaged',
      problem: `marker version ${version} is not supported by this version`,
    };
  const marker = parseFields(rest);
  return marker.ok
    ? { kind: 'marked', marker: marker.value }
    : { kind: 'damaged', problem: marker.problem };
}

const SINGLE = [
  'cluster',
  'region',
  'pool',
  'role',
  'machine',
  'vmid',
  'created',
  'ready',
  'deleting',
  'template',
  'version',
];

function parseFields(text: string): Parsed<Marker> {
  const single = new Map<string, string>();
  const addresses: string[] = [];
  const unknown: (readonly [string, string])[] = [];
  for (const field of text.split(/[ \t]+/).filter((part) => part !== '')) {
    const at = field.indexOf('=');
    const [key, value] = [field.slice(0, Math.max(at, 0)), field.slice(at + 1)];
    if (!KEY.test(key) || !VALUE.test(value))
      return refused(`marker field '${field}' must have the form key=value`);
    if (key === 'address') addresses.push(value);
    else if (!SINGLE.includes(key)) unknown.push([key, value]);
    else if (single.has(key)) return refused(`marker contains ${key} twice`);
    else single.set(key, value);
  }
  return buildMarker(single, { addresses, ...(unknown.length > 0 && { unknown }) });
}

type Extras = Pick<Marker, 'addresses' | 'unknown'>;

function buildMarker(fields: ReadonlyMap<string, string>, extras: Extras): Parsed<Marker> {
  const cluster = fields.get('cluster') ?? '';
  if (!CLUSTER.test(cluster)) return refused('marker has no valid cluster');
  const group = readGroup(fields);
  if (!group.ok) return group;
  const machine = parseMachineId(fields.get('machine') ?? '');
  if (!machine.ok) return refused(`marker's machine ${machine.problem}`);
  const numbers = readNumbers(fields);
  if (!numbers.ok) return numbers;
  const region = fields.get('region');
  return accepted({
    cluster,
    ...(region !== undefined && { region }),
    pool: group.value,
    machine: machine.value,
    ...numbers.value,
    ...readTemplate(fields),
    ...extras,
  });
}

function readGroup(fields: ReadonlyMap<string, string>): Parsed<string> {
  const role = fields.get('role');
  const pool = fields.get('pool');
  if (role !== undefined && pool !== undefined) return refused('marker has a pool and a role');
  const kind = role === undefined ? 'pool' : 'role';
  const name = parsePoolName(role ?? pool ?? '');
  if (!name.ok) return refused(`marker's ${kind} ${name.problem}`);
  return accepted(role === undefined ? name.value : roleGroup(name.value));
}

function readTemplate(fields: ReadonlyMap<string, string>): Pick<Marker, 'template'> {
  const name = fields.get('template');
  const version = readWholeNumber(fields.get('version'));
  return name === undefined || version === undefined ? {} : { template: { name, version } };
}

type Since = Pick<Marker, 'readySinceSeconds' | 'deletingSinceSeconds'>;
type Numbers = Pick<Marker, 'vmId' | 'createdAtSeconds'> & Since;

function readNumbers(fields: ReadonlyMap<string, string>): Parsed<Numbers> {
  const vmId = readWholeNumber(fields.get('vmid'));
  if (vmId === undefined) return refused('marker has no valid vmid');
  const createdAtSeconds = readWholeNumber(fields.get('created'));
  if (createdAtSeconds === undefined) return refused('marker has no valid creation time');
  const invalid = ['ready', 'deleting'].find(
    (key) => fields.has(key) && readWholeNumber(fields.get(key)) === undefined,
  );
  if (invalid !== undefined) return refused(`marker has an invalid ${invalid}`);
  const readySinceSeconds = readWholeNumber(fields.get('ready'));
  const deletingSinceSeconds = readWholeNumber(fields.get('deleting'));
  return accepted({
    vmId,
    createdAtSeconds,
    ...(readySinceSeconds !== undefined && { readySinceSeconds }),
    ...(deletingSinceSeconds !== undefined && { deletingSinceSeconds }),
  });
}

function readWholeNumber(text: string | undefined): number | undefined {
  return text !== undefined && /^(0|[1-9]\d{0,14})$/.test(text) ? Number(text) : undefined;
}

export type Ownership =
  | { readonly owned: true; readonly marker: Marker }
  | { readonly owned: false; readonly reason: string };

export interface ObservedVm {
  readonly vmId: number;
  readonly description: string | undefined;
  /** Undefined while unknown or not set yet: a new clone has a random UUID until it is configured. */
  readonly smbiosUuid: string | undefined;
  /** True once the machine is configured: the SMBIOS UUID must then equal the machine id. */
  readonly configured: boolean;
}

/** Where the VM must belong to be ours. */
export interface Owner {
  readonly cluster: string;
  readonly region: string;
}

/** Decides whether a VM is ours. Everything that changes or destroys a VM calls this first. */
export function verifyOwnership(vm: ObservedVm, owner: Owner): Ownership {
  const reading = readMarker(vm.description);
  if (reading.kind === 'none') return { owned: false, reason: 'it has no marker' };
  if (reading.kind === 'damaged')
    return { owned: false, reason: `its marker is damaged: ${reading.problem}` };
  const { marker } = reading;
  const foreign = foreignReason(marker, vm.vmId, owner);
  if (foreign !== undefined) return { owned: false, reason: foreign };
  if (vm.configured && vm.smbiosUuid?.toLowerCase() !== marker.machine) {
    return {
      owned: false,
      reason: `its SMBIOS UUID ${vm.smbiosUuid ?? '(none)'} is not machine ${marker.machine}`,
    };
  }
  return { owned: true, marker };
}

function foreignReason(
  marker: Marker,
  vmId: number,
  { cluster, region }: Owner,
): string | undefined {
  if (marker.cluster !== cluster) return `it belongs to cluster ${marker.cluster}`;
  if (marker.region !== undefined && marker.region !== region)
    return `it belongs to region ${marker.region}`;
  return marker.vmId === vmId ? undefined : `it is a copy of VM ${marker.vmId}`;
}
