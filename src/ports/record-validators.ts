// SPDX-License-Identifier: Apache-2.0
// Validators for all stored records, shared by all implementations of the Store. They run on write, because an invalid
// record must not become durable, and on read, because a file may have been damaged or edited by hand.
import { DRAIN_TRANSITIONS, type Drain, type DrainState, type UndoCause } from '../model/drain.ts';
import type {
  AdoptIntent,
  CancelDrainIntent,
  CancelIntent,
  CreateIntent,
  DeleteIntent,
  DestroyIntent,
  DrainIntent,
  ForgetIntent,
  Intent,
  ResumeIntent,
  VmIntent,
} from '../model/intent.ts';
import type { JournalEntry, JournalKind, JournalSubject } from '../model/journal-entry.ts';
import {
  type GuestDiagnostics,
  type HostRef,
  type Machine,
  type MachineFailure,
  type MachineSize,
  PHASE_TRANSITIONS,
  type Phase,
  type Placement,
  TASK_KINDS,
  type TaskInProgress,
  type TaskKind,
} from '../model/machine.ts';
import { accepted, type Parsed, refused } from '../model/parsed.ts';
import type {
  FailedRemovals,
  LearnedAllocatable,
  LostMachines,
  PoolBackoff,
  PoolPause,
  PoolScaling,
  PoolState,
  ReplacementInProgress,
} from '../model/pool.ts';
import type { TemplateVersion, VmNetwork, VmRequest, VmSource } from '../model/role.ts';
import { Bug } from './errors.ts';
import {
  array,
  boolean,
  dictionary,
  integer,
  machineId,
  number,
  object,
  oneOf,
  optional,
  string,
  stringOrNumber,
  unionByKind,
  type Validator,
} from './validator.ts';

/** The collections of the Store and their record types. */
export interface RecordKinds {
  readonly intents: Intent;
  readonly machines: Machine;
  readonly drains: Drain;
  readonly pools: PoolState;
}

export type CollectionName = keyof RecordKinds;

const size = object<MachineSize>({ cpu: number, memoryBytes: number, diskBytes: number });
const phase = oneOf<Phase>(PHASE_TRANSITIONS);

const hostRef = object<HostRef>({ region: string, host: string });

const vmRequest = object<VmRequest>({
  from: unionByKind<VmSource>({
    image: object<Extract<VmSource, { kind: 'image' }>>({
      kind: oneOf<'image'>({ image: true }),
      image: string,
    }),
    template: object<Extract<VmSource, { kind: 'template' }>>({
      kind: oneOf<'template'>({ template: true }),
      template: string,
      clone: oneOf<'full' | 'linked'>({ full: true, linked: true }),
    }),
    netboot: object<Extract<VmSource, { kind: 'netboot' }>>({
      kind: oneOf<'netboot'>({ netboot: true }),
    }),
  }),
  regions: optional(array(string)),
  vmId: optional(integer),
  strategy: optional(string),
  network: optional(
    unionByKind<VmNetwork>({
      dhcp: object<Extract<VmNetwork, { kind: 'dhcp' }>>({ kind: oneOf<'dhcp'>({ dhcp: true }) }),
      static: object<Extract<VmNetwork, { kind: 'static' }>>({
        kind: oneOf<'static'>({ static: true }),
        address: string,
        gateway: optional(string),
        dns: array(string),
      }),
    }),
  ),
  template: optional(object<TemplateVersion>({ name: string, version: integer })),
});

const intentCommon = {
  id: string,
  pool: string,
  requestedAt: number,
  requestedBy: string,
  reason: string,
  state: oneOf<Intent['state']>({ open: true, done: true }),
  machines: array(machineId),
} as const;

const vmIntentCommon = {
  ...intentCommon,
  region: string,
  vmId: integer,
  digest: string,
  failure: optional(object<NonNullable<VmIntent['failure']>>({ code: string, message: string })),
} as const;

const intent = unionByKind<Intent>({
  create: object<CreateIntent>({
    ...intentCommon,
    kind: oneOf<'create'>({ create: true }),
    size,
    host: optional(hostRef),
    vm: optional(vmRequest),
    isSelftest: optional(boolean),
  }),
  resume: object<ResumeIntent>({ ...intentCommon, kind: oneOf<'resume'>({ resume: true }) }),
  delete: object<DeleteIntent>({ ...intentCommon, kind: oneOf<'delete'>({ delete: true }) }),
  cancel: object<CancelIntent>({ ...intentCommon, kind: oneOf<'cancel'>({ cancel: true }) }),
  drain: object<DrainIntent>({
    ...intentCommon,
    kind: oneOf<'drain'>({ drain: true }),
    reasons: optional(dictionary(string)),
    timeoutMs: optional(number),
  }),
  'cancel-drain': object<CancelDrainIntent>({
    ...intentCommon,
    kind: oneOf<'cancel-drain'>({ 'cancel-drain': true }),
  }),
  adopt: object<AdoptIntent>({ ...vmIntentCommon, kind: oneOf<'adopt'>({ adopt: true }) }),
  forget: object<ForgetIntent>({ ...vmIntentCommon, kind: oneOf<'forget'>({ forget: true }) }),
  destroy: object<DestroyIntent>({ ...vmIntentCommon, kind: oneOf<'destroy'>({ destroy: true }) }),
});

const machine = object<Machine>({
  id: machineId,
  pool: string,
  vm: optional(vmRequest),
  phase,
  phaseSince: number,
  phaseTimes: optional(dictionary(number)),
  requestedAt: number,
  intent: optional(string),
  isSelftest: optional(boolean),
  size,
  requiredHost: optional(hostRef),
  placement: optional(
    object<Placement>({
      region: string,
      host: string,
      vmId: integer,
      name: string,
      diskStorage: string,
      addresses: array(string),
      hasRegionInMarker: optional(boolean),
    }),
  ),
  placedAt: optional(number),
  configured: optional(boolean),
  task: optional(
    object<TaskInProgress>({
      upid: string,
      kind: optional(oneOf<TaskKind>(TASK_KINDS)),
      host: optional(string),
      startedAt: number,
    }),
  ),
  guestAddresses: optional(array(string)),
  seedVolume: optional(string),
  nodeName: optional(string),
  nodeUid: optional(string),
  providerId: optional(string),
  attempts: integer,
  diagnostics: optional(
    object<GuestDiagnostics>({ at: number, lines: array(string), error: optional(string) }),
  ),
  failure: optional(object<MachineFailure>({ code: string, message: string, at: number, phase })),
  missingSince: optional(number),
  deletionReason: optional(string),
  isVmLeft: optional(boolean),
});

const drain = object<Drain>({
  machine: machineId,
  nodeName: string,
  nodeUid: string,
  state: oneOf<DrainState>(DRAIN_TRANSITIONS),
  stateSince: number,
  intent: string,
  requestedBy: string,
  reason: string,
  requestedAt: number,
  timeoutMs: number,
  isCordonedByDrain: boolean,
  blockedBy: array(object<Drain['blockedBy'][number]>({ object: string, reason: string })),
  undo: optional(
    object<NonNullable<Drain['undo']>>({
      cause: oneOf<UndoCause>({ cancelled: true, changed: true, 'timed-out': true }),
      message: string,
    }),
  ),
});

const poolState = object<PoolState>({
  pool: string,
  pause: optional(object<PoolPause>({ since: number, until: number, reason: string })),
  backoff: optional(
    object<PoolBackoff>({
      failures: integer,
      since: number,
      until: number,
      code: string,
      message: string,
    }),
  ),
  lost: optional(object<LostMachines>({ since: number, machines: array(machineId) })),
  scaling: optional(
    object<PoolScaling>({
      at: number,
      unneededSince: dictionary(number),
      trials: dictionary(array(string)),
      streak: array(string),
      replacement: optional(
        object<ReplacementInProgress>({
          at: number,
          replaced: array(machineId),
          added: array(machineId),
        }),
      ),
      failedRemovals: optional(
        dictionary(object<FailedRemovals>({ count: integer, until: number })),
      ),
    }),
  ),
  allocatable: dictionary(
    object<LearnedAllocatable>({
      cpuMilli: number,
      memoryBytes: number,
      ephemeralStorageBytes: number,
      pods: number,
      learnedAt: number,
    }),
  ),
});

export const RECORD_VALIDATORS: {
  readonly [K in CollectionName]: Validator<RecordKinds[K]>;
} = {
  intents: intent,
  machines: machine,
  drains: drain,
  pools: poolState,
};

export const JOURNAL_VALIDATOR = object<JournalEntry>({
  at: number,
  kind: oneOf<JournalKind>({ did: true, refused: true, failed: true, saw: true }),
  subject: object<JournalSubject>({
    pool: optional(string),
    machine: optional(string),
    node: optional(string),
    pod: optional(string),
    host: optional(string),
    region: optional(string),
  }),
  reason: string,
  message: string,
  numbers: optional(dictionary(stringOrNumber)),
});

// Encodes records as JSON and decodes them. The text also separates the caller's object from the stored one: changing
// the object afterwards does not change the record.

/** Throws a Bug for a value that its own type forbids, because it could not be decoded again. */
export function encodeRecord<T>(validate: Validator<T>, value: T, description: string): string {
  const problem = validate(value, 'value');
  if (problem !== undefined) {
    throw new Bug('BUG', `${description} cannot be stored: ${problem}`);
  }
  return JSON.stringify(value);
}

/** Returns a deeply frozen value, so that an attempt to change it fails immediately. */
export function decodeRecord<T>(validate: Validator<T>, json: string): Parsed<T> {
  let value: unknown;
  try {
    value = deepFreeze(JSON.parse(json));
  } catch {
    return refused('is not JSON');
  }
  return isValid(validate, value) ? accepted(value) : refused(validate(value, 'value') ?? '');
}

/** Much faster than a JSON reviver, which runs for every number too. */
function deepFreeze(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  for (const inner of Object.values(value)) deepFreeze(inner);
  return Object.freeze(value);
}

function isValid<T>(validate: Validator<T>, value: unknown): value is T {
  return validate(value, 'value') === undefined;
}

/** Refuses lone surrogates, because UTF-8 would map two such keys to one, and empty keys. */
export function assertKey(key: string): void {
  if (key === '' || !key.isWellFormed() || key.includes('\0')) {
    throw new Bug('BUG', `${JSON.stringify(key)} is not a valid record key`);
  }
}
