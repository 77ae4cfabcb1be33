// SPDX-License-Identifier: Apache-2.0
// A machine is one VM that is, or is becoming, a node. This file defines its phases, the transitions between
// them and the record that survives a crash. Only the fleet writes machine records.
import { accepted, type Parsed, refused } from './parsed.ts';
import type { VmRequest } from './role.ts';

export const PHASES = [
  'requested', // requested; nothing is decided, nothing exists
  'placed', // region, host, VM id, name and addresses are decided and reserved; nothing exists
  'creating', // the VM is being created, imported or cloned
  'configuring', // the VM exists; seed, size and identity are being configured
  'starting', // the start task is in progress
  'booting', // the VM runs; the guest agent has not responded yet
  'joining', // the guest is up; its Node does not exist or is not Ready yet
  'ready', // its Node is Ready (without Kubernetes: the guest is up)
  'draining', // pods are being evicted; can still be cancelled
  'deleting', // everything that belongs to it is being removed; cannot be cancelled
  'kept', // it never became ready; its VM is stopped and kept to be examined, without seed and token
  'failed', // it never became ready; nothing is left on the host; the reason is kept
  'gone', // nothing is left; the record is kept for a while so that its ids are not reused soon
] as const;

export type Phase = (typeof PHASES)[number];

/**
 * The legal transitions. A failed creation goes through `deleting` (with `failure` set) to `failed`, so
 * `failed` always means that nothing is left on the host; with `keepFailed` it stops at `kept` first. Before `creating` nothing exists, and the machine may
 * fail directly. `placed` and `creating` return to `requested` when another VM took the VM id or the host
 * became unusable, and nothing was created.
 */
export const PHASE_TRANSITIONS: Readonly<Record<Phase, readonly Phase[]>> = {
  requested: ['placed', 'failed', 'gone'],
  placed: ['creating', 'requested', 'failed', 'gone'],
  creating: ['configuring', 'requested', 'deleting'],
  configuring: ['starting', 'deleting'],
  starting: ['booting', 'deleting'],
  booting: ['joining', 'ready', 'deleting'],
  joining: ['ready', 'deleting'],
  ready: ['draining', 'deleting'],
  draining: ['ready', 'deleting'],
  deleting: ['kept', 'failed', 'gone'],
  kept: ['deleting'],
  failed: ['gone'],
  gone: [],
};

export function canTransition(from: Phase, to: Phase): boolean {
  return PHASE_TRANSITIONS[from].includes(to);
}

const LEAVING: readonly Phase[] = ['draining', 'deleting', 'kept', 'failed', 'gone'];

/** Whether it counts towards the pool's target size. A machine whose drain is undone counts again. */
export function countsTowardsTarget(phase: Phase): boolean {
  return !LEAVING.includes(phase);
}

/** Whether something of it may exist on Proxmox: it holds its VM id, addresses and share of the host. */
export function mayHaveVm(phase: Phase): boolean {
  return phase !== 'requested' && phase !== 'failed' && phase !== 'gone';
}

/** Whether nothing is left to do until something new is requested. */
export function isPhaseSettled({
  phase,
  seedVolume,
  isSelftest,
}: Pick<Machine, 'phase' | 'seedVolume' | 'isSelftest'>): boolean {
  if (phase === 'ready') return seedVolume === undefined && isSelftest !== true;
  return phase === 'kept' || phase === 'failed' || phase === 'gone';
}

export interface MachineSize {
  readonly cpu: number;
  readonly memoryBytes: number;
  readonly diskBytes: number;
}

/** A host of a region. */
export interface HostRef {
  readonly region: string;
  readonly host: string;
}

/** Decided once by placement, and recorded before the first call to Proxmox. */
export interface Placement {
  readonly region: string;
  readonly host: string;
  readonly vmId: number;
  /** VM name, host name of the guest and Node name. */
  readonly name: string;
  readonly diskStorage: string;
  /**
   * CIDR form, v4 and v6; empty with DHCP. They are held by the machine until it is gone or failed, and are not assigned
   * again until the end of their cool-down.
   */
  readonly addresses: readonly string[];
  /** Whether the VM's marker has the region. Markers of earlier versions do not, and are rewritten. */
  readonly hasRegionInMarker?: boolean;
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
  template: true,
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
  /** One of pvescaler's error codes. */
  readonly code: string;
  readonly message: string;
  readonly at: number;
  /** The phase in which it failed. */
  readonly phase: Phase;
}

/** What the guest reported before its machine was deleted, without secrets. */
export interface GuestDiagnostics {
  readonly at: number;
  readonly lines: readonly string[];
  /** Why nothing could be read. */
  readonly error?: string;
}

export interface Machine {
  readonly id: MachineId;
  /** Name of its pool; `role:<role>` of a hand-made VM. */
  readonly pool: string;
  /** What a person asked for. Absent for machines of pools, and for hand-made VMs adopted from Proxmox. */
  readonly vm?: VmRequest;
  readonly phase: Phase;
  /** Wall clock of the last transition. */
  readonly phaseSince: number;
  /** When it last entered each phase, to show where the time went. Nothing is decided by it. */
  readonly phaseTimes?: Readonly<Partial<Record<Phase, number>>>;
  readonly requestedAt: number;
  /** The intent that requested it. Absent for a machine adopted from Proxmox after the database was lost. */
  readonly intent?: string;
  /** Created by `pvescaler selftest`: no member of its pool, and deleted as soon as it is ready. */
  readonly isSelftest?: boolean;
  readonly size: MachineSize;
  /** The only host it may be placed on; absent: any host of the pool. */
  readonly requiredHost?: HostRef;
  readonly placement?: Placement;
  /** When it was placed. The provision timeout counts from here, so that waiting for capacity does not count. */
  readonly placedAt?: number;
  /** Set once configured. From then on the SMBIOS UUID is part of the proof of ownership. */
  readonly configured?: boolean;
  readonly task?: TaskInProgress;
  /** With DHCP: the addresses that the guest agent reported since the last start, in CIDR form. */
  readonly guestAddresses?: readonly string[];
  /** Volume id of the seed ISO while it exists. */
  readonly seedVolume?: string;
  /** Set once the Node exists: its name and its spec.providerID, verbatim. */
  readonly nodeName?: string;
  readonly nodeUid?: string;
  readonly providerId?: string;
  /** Failed attempts of the current phase. */
  readonly attempts: number;
  readonly failure?: MachineFailure;
  /** Set before the VM of a machine that failed to boot or join is stopped. */
  readonly diagnostics?: GuestDiagnostics;
  /** Since when the VM of a ready machine has been missing. */
  readonly missingSince?: number;
  /** Why it is being, or was, deleted. Set when the deletion is decided. */
  readonly deletionReason?: string;
  /** Its VM was left alone and still exists: the machine holds its static addresses, although it is gone or failed. */
  readonly isVmLeft?: boolean;
}

/** The fields of a machine that has just entered the phase. */
export function enteredPhase(
  { phaseTimes }: Pick<Machine, 'phaseTimes'>,
  phase: Phase,
  at: number,
): Pick<Machine, 'phase' | 'phaseSince' | 'phaseTimes' | 'attempts'> {
  return { phase, phaseSince: at, phaseTimes: { ...phaseTimes, [phase]: at }, attempts: 0 };
}

/** The phases that lead to `ready`, in their order. */
export const PROVISIONING_PHASES = PHASES.slice(0, PHASES.indexOf('ready'));

/** How long a machine that is ready spent in each phase before, as far as it is known. */
export function provisioningTimes({
  requestedAt,
  phaseTimes = {},
}: Pick<Machine, 'requestedAt' | 'phaseTimes'>): readonly {
  readonly phase: Phase;
  readonly ms: number;
}[] {
  const entered = [...PROVISIONING_PHASES, 'ready' as const].flatMap((phase) => {
    const at = phase === 'requested' ? requestedAt : phaseTimes[phase];
    return at === undefined ? [] : [{ phase, at }];
  });
  return entered.slice(0, -1).map(({ phase, at }, index) => ({
    phase,
    ms: Math.max(0, (entered[index + 1]?.at ?? at) - at),
  }));
}

/** Returns the machine in its new phase, with `phaseSince` and `attempts` reset. Refuses an illegal transition. */
export function transitionMachine(machine: Machine, to: Phase, at: number): Parsed<Machine> {
  if (!canTransition(machine.phase, to)) {
    return refused(`machine ${machine.id} cannot change from phase ${machine.phase} to ${to}`);
  }
  return accepted({ ...machine, ...enteredPhase(machine, to, at) });
}

// A machine's id is a version 4 UUID in lower case. It is also the VM's SMBIOS UUID. The guest's kernel passes
// that to the kubelet, which reports it as the Node's status.nodeInfo.systemUUID: one id proves identity in the
// database, in Proxmox and in Kubernetes.

export type MachineId = string & { readonly brand: 'MachineId' };

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** Accepts upper case, which firmware and people write, and returns lower case. */
export function parseMachineId(text: string): Parsed<MachineId> {
  const lower = text.toLowerCase();
  return isMachineId(lower) ? accepted(lower) : refused('is not a UUID');
}

function isMachineId(text: string): text is MachineId {
  return UUID.test(text);
}

/** The part of the id that ends default machine names: short enough to read, long enough to avoid collisions. */
export function shortMachineId(id: MachineId): string {
  return id.slice(0, 8);
}

export function withoutPrefixLength(cidr: string): string {
  return cidr.split('/')[0] ?? cidr;
}

/** Static addresses, or those that its guest has by DHCP, as far as they are known. */
export function addressesOf({ placement, guestAddresses = [] }: Machine): readonly string[] {
  const fixed = placement?.addresses ?? [];
  return fixed.length > 0 ? fixed : guestAddresses;
}
