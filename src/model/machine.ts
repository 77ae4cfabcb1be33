// SPDX-License-Identifier: Apache-2.0
// A machine is one VM on its way to being, or being, a node. This file fixes its phases, the moves between
// them, and the record that survives a crash. Only the fleet writes machine records.
import type { MachineId } from './machine-id.ts';
import { accepted, type Parsed, refused } from './parsed.ts';

export const PHASES = [
  'requested', // wanted; nothing decided, nothing made
  'placed', // region, host, VM id, name and addresses are decided and reserved; nothing made
  'creating', // the VM is being created, imported or cloned
  'configuring', // it exists; seed, size and identity are being put on it
  'starting', // the start task runs
  'booting', // it runs; the guest agent has not answered yet
  'joining', // the guest is up; its Node is not there or not Ready yet
  'ready', // its Node is Ready (without Kubernetes: the guest is up)
  'draining', // pods are being moved away; may still be called off
  'deleting', // everything that belongs to it is being removed; there is no way back
  'failed', // it never became ready, its host is clean again, and the reason is kept
  'gone', // nothing of it is left; the record stays a while so that ids are not reused hot
] as const;

export type Phase = (typeof PHASES)[number];

/**
 * The legal moves. A creation that fails goes through `deleting` (with `failure` set) to `failed`, so that
 * `failed` always means that nothing is left on the host; before `creating` nothing was made, and it may
 * fail directly. `placed` and `creating` may go back to `requested` when the VM id or the host was lost to
 * somebody else and nothing was made.
 */
export const MOVES: Readonly<Record<Phase, readonly Phase[]>> = {
  requested: ['placed', 'failed', 'gone'],
  placed: ['creating', 'requested', 'failed', 'gone'],
  creating: ['configuring', 'requested', 'deleting'],
  configuring: ['starting', 'deleting'],
  starting: ['booting', 'deleting'],
  booting: ['joining', 'ready', 'deleting'],
  joining: ['ready', 'deleting'],
  ready: ['draining', 'deleting'],
  draining: ['ready', 'deleting'],
  deleting: ['failed', 'gone'],
  failed: ['gone'],
  gone: [],
};

export function mayMove(from: Phase, to: Phase): boolean {
  return MOVES[from].includes(to);
}

/** Counts towards the pool's target size: wanted and neither on its way out nor given up. */
export function countsTowardsTarget(phase: Phase): boolean {
  return phase !== 'deleting' && phase !== 'failed' && phase !== 'gone';
}

/** Something of it may exist on Proxmox: its VM id, addresses and host share are taken. */
export function mayExist(phase: Phase): boolean {
  return phase !== 'requested' && phase !== 'failed' && phase !== 'gone';
}

/** Nothing is left to be done about it until somebody wants something else. */
export function isAtRest({ phase, seedVolume }: Pick<Machine, 'phase' | 'seedVolume'>): boolean {
  if (phase === 'ready') return seedVolume === undefined;
  return phase === 'draining' || phase === 'failed' || phase === 'gone';
}

export interface MachineSize {
  readonly cpu: number;
  readonly memoryBytes: number;
  readonly diskBytes: number;
}

/** Decided once, by placement; written down before the first call to Proxmox. */
export interface Placement {
  readonly region: string;
  readonly host: string;
  readonly vmId: number;
  /** VM name, host name of the guest and name of the Node. */
  readonly name: string;
  readonly diskStorage: string;
  /** CIDR form, v4 and v6; empty with DHCP. */
  readonly addresses: readonly string[];
}

/** What a task of the hypervisor does. `other`: a task that pvescaler does not start, or of unknown kind. */
export const TASK_KINDS = {
  create: true,
  clone: true,
  configure: true,
  resize: true,
  start: true,
  shutdown: true,
  stop: true,
  destroy: true,
  upload: true,
  download: true,
  other: true,
} as const;

export type TaskKind = keyof typeof TASK_KINDS;

/** The hypervisor task that was started last for this machine. */
export interface TaskInProgress {
  readonly upid: string;
  /** Absent in records of earlier versions, like `host`. */
  readonly kind?: TaskKind;
  /** The host that runs the task. */
  readonly host?: string;
  readonly startedAt: number;
}

export interface MachineFailure {
  /** An error code of the product. */
  readonly code: string;
  readonly message: string;
  readonly at: number;
  /** The phase it had reached. */
  readonly phase: Phase;
}

export interface Machine {
  readonly id: MachineId;
  readonly pool: string;
  readonly phase: Phase;
  /** Wall clock of the last move. */
  readonly phaseSince: number;
  readonly requestedAt: number;
  /** The intent that asked for it; absent for a machine adopted from Proxmox after the database was lost. */
  readonly intent?: string;
  readonly size: MachineSize;
  readonly placement?: Placement;
  /** When it was placed: what the provision timeout counts from, since waiting for room is nobody's fault. */
  readonly placedAt?: number;
  /** Set once configured: from then on the SMBIOS UUID is part of the proof of ownership. */
  readonly configured?: boolean;
  readonly task?: TaskInProgress;
  /** Volume id of the seed ISO while it exists. */
  readonly seedVolume?: string;
  /** Known once the Node exists: its name and spec.providerID, verbatim. */
  readonly nodeName?: string;
  readonly nodeUid?: string;
  readonly providerId?: string;
  /** How often the present phase was tried in vain. */
  readonly attempts: number;
  readonly failure?: MachineFailure;
  /** Why it is being, or was, taken away; set when deletion is decided. */
  readonly deletionReason?: string;
}

/** The machine after a legal move, with its clock and attempts set anew; a refusal names both phases. */
export function moved(machine: Machine, to: Phase, at: number): Parsed<Machine> {
  if (!mayMove(machine.phase, to)) {
    return refused(`machine ${machine.id} cannot move from ${machine.phase} to ${to}`);
  }
  return accepted({ ...machine, phase: to, phaseSince: at, attempts: 0 });
}
