// SPDX-License-Identifier: Apache-2.0
// systemd units from unit files or packages. Starting a unit runs its `ExecStart` commands.
import { type CommandResult, type CommandRunner, failure, OK } from '../shell/command.ts';
import { baseName } from '../system/files.ts';
import type { GuestSystem } from '../system/system.ts';
import { startKubeletUnit } from './kubeadm.ts';

const UNIT_DIRECTORIES = [
  '/etc/systemd/system',
  '/run/systemd/system',
  '/usr/local/lib/systemd/system',
  '/usr/lib/systemd/system',
  '/lib/systemd/system',
];

/** Units without a simulated unit file, and the packages that contain them. An empty list means every image. */
const KNOWN_UNITS: Readonly<Record<string, readonly string[]>> = {
  'qemu-guest-agent': ['qemu-guest-agent'],
  containerd: ['containerd', 'containerd.io'],
  crio: ['cri-o'],
  kubelet: ['kubelet', 'kubeadm'],
  docker: ['docker.io', 'docker-ce'],
  cron: ['cron'],
  iscsid: ['open-iscsi'],
  chrony: ['chrony'],
  ssh: [],
  sshd: [],
  'systemd-networkd': [],
  'systemd-resolved': [],
  'systemd-timesyncd': [],
  'systemd-sysctl': [],
  'systemd-modules-load': [],
  'systemd-journald': [],
  'cloud-init': [],
  'cloud-final': [],
  'unattended-upgrades': [],
  'apt-daily': [],
  'apt-daily-upgrade': [],
  multipathd: [],
  'swap.target': [],
  'multi-user.target': [],
};

export interface UnitCall {
  readonly unit: string;
  readonly system: GuestSystem;
  readonly runner: CommandRunner;
}

export function isAlwaysActive(unit: string): boolean {
  return Object.hasOwn(KNOWN_UNITS, unit) && KNOWN_UNITS[unit]?.length === 0;
}

function unitExists(system: GuestSystem, unit: string): boolean {
  if (readUnitFile(system, unit) !== undefined) return true;
  const packages = Object.hasOwn(KNOWN_UNITS, unit) ? KNOWN_UNITS[unit] : undefined;
  if (packages === undefined) return false;
  return packages.length === 0 || packages.some((name) => system.packages.has(name));
}

export function ifUnitExists(call: UnitCall, act: () => CommandResult | void): CommandResult {
  if (unitExists(call.system, call.unit)) return act() ?? OK;
  return failure(5, `Failed: Unit file ${call.unit}.service does not exist.`);
}

/** Units that run the kubelet. */
const KUBELET_UNITS = new Set(['k3s-agent', 'rke2-agent', 'kubelet']);

export function stopUnit({ unit, system }: UnitCall): CommandResult {
  system.activeUnits.delete(unit);
  if (KUBELET_UNITS.has(unit)) system.kubelet?.abort();
  system.notifyChange();
  return OK;
}

/** Runs the commands of the unit file. A package unit without a file is only marked active. */
export async function startUnit(call: UnitCall): Promise<CommandResult> {
  const { unit, system } = call;
  if (!unitExists(system, unit))
    return failure(5, `Failed to start ${unit}.service: Unit ${unit}.service not found.`);
  const hasPort = unit !== 'qemu-guest-agent' || system.input.agentEnabled;
  if (!hasPort) return failure(1, `A dependency job for ${unit}.service failed: no virtio port.`);
  const text = readUnitFile(system, unit);
  const result =
    text === undefined
      ? await startPackageUnit(call)
      : await runUnit(call, text + readDropIns(system, unit));
  const target = result.code === 0 ? system.activeUnits : system.failedUnits;
  system.activeUnits.delete(unit);
  system.failedUnits.delete(unit);
  target.add(unit);
  system.notifyChange();
  if (result.code === 0) return OK;
  system.recordError(`${unit}.service: exit code ${result.code}: ${(result.err ?? '').trim()}`);
  return failure(
    1,
    `Job for ${unit}.service failed because the control process exited with error code.`,
  );
}

async function startPackageUnit({ unit, system }: UnitCall): Promise<CommandResult> {
  if (unit === 'kubelet') await startKubeletUnit(system);
  return OK;
}

export function readUnitFile(system: GuestSystem, unit: string): string | undefined {
  const name = /\.[a-z]+$/.test(unit) ? unit : `${unit}.service`;
  for (const directory of UNIT_DIRECTORIES) {
    const text = system.files.read(`${directory}/${name}`);
    if (text !== undefined) return text;
  }
  return undefined;
}

/** The drop-ins of a unit, in the order of their file names. */
function readDropIns(system: GuestSystem, unit: string): string {
  const isDropIn = (path: string) =>
    UNIT_DIRECTORIES.some((directory) => path.startsWith(`${directory}/${unit}.service.d/`)) &&
    path.endsWith('.conf');
  const paths = system.files.paths().filter(isDropIn);
  return paths
    .toSorted((one, two) => (baseName(one) < baseName(two) ? -1 : 1))
    .map((path) => `\n${system.files.read(path) ?? ''}`)
    .join('');
}

const COMMAND_ORDER = ['ExecCondition', 'ExecStartPre', 'ExecStart', 'ExecStartPost'];

async function runUnit(call: UnitCall, text: string): Promise<CommandResult> {
  const settings = parseUnitFile(text);
  const variables = buildEnvironment(call.system, settings);
  if (typeof variables === 'string') return failure(1, variables);
  const commands = COMMAND_ORDER.flatMap((key) => settings.filter(([name]) => name === key));
  for (const [, value] of commands.filter(([, each]) => each !== '')) {
    const [, prefix = '', command = ''] = /^([-@:+!]*)(.*)$/s.exec(value) ?? [];
    const result = await call.runner.runScript(command.replaceAll('%H', call.system.hostname), {
      variables,
    });
    if (result.code !== 0 && !prefix.includes('-')) return result;
  }
  return OK;
}

/** Reads `Key=value` lines in order; a backslash at the end of a line joins it with the next. */
function parseUnitFile(text: string): [string, string][] {
  const lines = text.replace(/\\\n\s*/g, ' ').split('\n');
  const settings: [string, string][] = [];
  for (const line of lines) {
    const match = /^\s*([A-Za-z]+)\s*=\s*(.*?)\s*$/.exec(line);
    if (match !== null) settings.push([match[1] ?? '', match[2] ?? '']);
  }
  return settings;
}

function buildEnvironment(
  system: GuestSystem,
  settings: readonly [string, string][],
): Map<string, string> | string {
  const variables = new Map<string, string>();
  for (const [key, value] of settings) {
    if (key === 'Environment') addAssignments(variables, value.match(/"[^"]*"|'[^']*'|\S+/g) ?? []);
    if (key !== 'EnvironmentFile') continue;
    const text = system.files.read(value.replace(/^-/, ''));
    if (text === undefined && !value.startsWith('-'))
      return `Failed to load environment file: ${value}`;
    addAssignments(variables, (text ?? '').split('\n'));
  }
  return variables;
}

function addAssignments(variables: Map<string, string>, words: readonly string[]): void {
  for (const word of words) {
    const bare = word.trim().replace(/^(["'])(.*)\1$/s, '$2');
    const match = /^(\w+)=(.*)$/s.exec(bare);
    if (match !== null)
      variables.set(match[1] ?? '', (match[2] ?? '').replace(/^(["'])(.*)\1$/s, '$2'));
  }
}
