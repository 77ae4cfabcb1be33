// SPDX-License-Identifier: Apache-2.0
// systemd's units: found in files or brought by packages, started by running what their file says.
import { failure, OK, type Outcome, type Runner } from '../shell/command.ts';
import type { GuestSystem } from '../system/system.ts';
import { startKubeletUnit } from './kubeadm.ts';

const UNIT_DIRECTORIES = [
  '/etc/systemd/system',
  '/run/systemd/system',
  '/usr/local/lib/systemd/system',
  '/usr/lib/systemd/system',
  '/lib/systemd/system',
];

/** Units that are there without a unit file in our tree, and the packages that bring them; none: every image. */
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
  readonly runner: Runner;
}

export function isAlwaysActive(unit: string): boolean {
  return Object.hasOwn(KNOWN_UNITS, unit) && KNOWN_UNITS[unit]?.length === 0;
}

function isKnown(system: GuestSystem, unit: string): boolean {
  if (unitFile(system, unit) !== undefined) return true;
  const packages = Object.hasOwn(KNOWN_UNITS, unit) ? KNOWN_UNITS[unit] : undefined;
  if (packages === undefined) return false;
  return packages.length === 0 || packages.some((name) => system.packages.has(name));
}

export function known(call: UnitCall, act: () => Outcome | void): Outcome {
  if (isKnown(call.system, call.unit)) return act() ?? OK;
  return failure(5, `Failed: Unit file ${call.unit}.service does not exist.`);
}

/** Units in whose process the kubelet runs. */
const KUBELETS = new Set(['k3s-agent', 'rke2-agent', 'kubelet']);

export function stopUnit({ unit, system }: UnitCall): Outcome {
  system.activeUnits.delete(unit);
  if (KUBELETS.has(unit)) system.kubelet?.abort();
  system.changed();
  return OK;
}

/** Runs what the unit's file says, or just marks the unit when it is one of a package. */
export async function startUnit(call: UnitCall): Promise<Outcome> {
  const { unit, system } = call;
  if (!isKnown(system, unit))
    return failure(5, `Failed to start ${unit}.service: Unit ${unit}.service not found.`);
  const hasPort = unit !== 'qemu-guest-agent' || system.input.agentEnabled;
  if (!hasPort) return failure(1, `A dependency job for ${unit}.service failed: no virtio port.`);
  const text = unitFile(system, unit);
  const outcome = text === undefined ? await startPackaged(call) : await runUnit(call, text);
  const now = outcome.code === 0 ? system.activeUnits : system.failedUnits;
  system.activeUnits.delete(unit);
  system.failedUnits.delete(unit);
  now.add(unit);
  system.changed();
  if (outcome.code === 0) return OK;
  system.fail(`${unit}.service: exit code ${outcome.code}: ${(outcome.err ?? '').trim()}`);
  return failure(
    1,
    `Job for ${unit}.service failed because the control process exited with error code.`,
  );
}

async function startPackaged({ unit, system }: UnitCall): Promise<Outcome> {
  if (unit === 'kubelet') await startKubeletUnit(system);
  return OK;
}

export function unitFile(system: GuestSystem, unit: string): string | undefined {
  const name = /\.[a-z]+$/.test(unit) ? unit : `${unit}.service`;
  for (const directory of UNIT_DIRECTORIES) {
    const text = system.files.read(`${directory}/${name}`);
    if (text !== undefined) return text;
  }
  return undefined;
}

async function runUnit(call: UnitCall, text: string): Promise<Outcome> {
  const settings = settingsOf(text);
  const variables = unitEnvironment(call.system, settings);
  if (typeof variables === 'string') return failure(1, variables);
  for (const [key, value] of settings) {
    if (!/^ExecStart(Pre|Post)?$/.test(key) || value === '') continue;
    const [, prefix = '', command = ''] = /^([-@:+!]*)(.*)$/s.exec(value) ?? [];
    const outcome = await call.runner.script(command.replaceAll('%H', call.system.hostname), {
      variables,
    });
    if (outcome.code !== 0 && !prefix.includes('-')) return outcome;
  }
  return OK;
}

/** `Key=value` lines in order; a backslash at a line's end joins the next one. */
function settingsOf(text: string): [string, string][] {
  const lines = text.replace(/\\\n\s*/g, ' ').split('\n');
  const settings: [string, string][] = [];
  for (const line of lines) {
    const match = /^\s*([A-Za-z]+)\s*=\s*(.*?)\s*$/.exec(line);
    if (match !== null) settings.push([match[1] ?? '', match[2] ?? '']);
  }
  return settings;
}

function unitEnvironment(
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
