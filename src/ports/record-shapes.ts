// SPDX-License-Identifier: Apache-2.0
// What each kind of stored record looks like, for every implementation of the Store: checked when a value is
// written, because a record nobody can read again must not become durable, and when it is read, because a
// file may have been damaged or edited by hand.
import type { AddressLease } from '../model/address-lease.ts';
import { DRAIN_MOVES, type Drain, type DrainState } from '../model/drain.ts';
import type { CancelIntent, CreateIntent, DeleteIntent, Intent } from '../model/intent.ts';
import type { JournalEntry, JournalKind, JournalSubject } from '../model/journal-entry.ts';
import {
  type Machine,
  type MachineFailure,
  type MachineSize,
  MOVES,
  type Phase,
  type Placement,
  TASK_KINDS,
  type TaskInProgress,
  type TaskKind,
} from '../model/machine.ts';
import type { LearnedAllocatable, PoolBackoff, PoolState } from '../model/pool.ts';
import {
  byKind,
  dictionary,
  finite,
  list,
  machineId,
  object,
  optional,
  type Shape,
  text,
  textOrNumber,
  truth,
  whole,
  word,
} from './shape.ts';

/** The collections of the Store and what their records are. */
export interface RecordKinds {
  readonly intents: Intent;
  readonly machines: Machine;
  readonly addresses: AddressLease;
  readonly drains: Drain;
  readonly pools: PoolState;
}

export type CollectionName = keyof RecordKinds;

const size = object<MachineSize>({ cpu: finite, memoryBytes: finite, diskBytes: finite });
const phase = word<Phase>(MOVES);

const intentCommon = {
  id: text,
  pool: text,
  requestedAt: finite,
  requestedBy: text,
  reason: text,
  state: word<Intent['state']>({ open: true, done: true }),
  machines: list(machineId),
} as const;

const intent = byKind<Intent>({
  create: object<CreateIntent>({ ...intentCommon, kind: word<'create'>({ create: true }), size }),
  delete: object<DeleteIntent>({ ...intentCommon, kind: word<'delete'>({ delete: true }) }),
  cancel: object<CancelIntent>({ ...intentCommon, kind: word<'cancel'>({ cancel: true }) }),
});

const machine = object<Machine>({
  id: machineId,
  pool: text,
  phase,
  phaseSince: finite,
  requestedAt: finite,
  intent: optional(text),
  size,
  placement: optional(
    object<Placement>({
      region: text,
      host: text,
      vmId: whole,
      name: text,
      diskStorage: text,
      addresses: list(text),
    }),
  ),
  placedAt: optional(finite),
  configured: optional(truth),
  task: optional(
    object<TaskInProgress>({
      upid: text,
      kind: optional(word<TaskKind>(TASK_KINDS)),
      host: optional(text),
      startedAt: finite,
    }),
  ),
  seedVolume: optional(text),
  nodeName: optional(text),
  nodeUid: optional(text),
  providerId: optional(text),
  attempts: whole,
  failure: optional(object<MachineFailure>({ code: text, message: text, at: finite, phase })),
  deletionReason: optional(text),
});

const addressLease = object<AddressLease>({
  address: text,
  region: text,
  pool: text,
  machine: machineId,
  leasedAt: finite,
  releasedAt: optional(finite),
});

const drain = object<Drain>({
  machine: machineId,
  nodeName: text,
  nodeUid: text,
  state: word<DrainState>(DRAIN_MOVES),
  stateSince: finite,
  reason: text,
  requestedAt: finite,
  deadlineAt: finite,
  wasCordonedBefore: truth,
  blockedBy: list(object<Drain['blockedBy'][number]>({ pod: text, reason: text })),
});

const poolState = object<PoolState>({
  pool: text,
  backoff: optional(
    object<PoolBackoff>({
      failures: whole,
      since: finite,
      until: finite,
      code: text,
      message: text,
    }),
  ),
  allocatable: dictionary(
    object<LearnedAllocatable>({
      cpuMilli: finite,
      memoryBytes: finite,
      ephemeralStorageBytes: finite,
      pods: finite,
      learnedAt: finite,
    }),
  ),
});

export const RECORD_SHAPES: {
  readonly [K in CollectionName]: Shape<RecordKinds[K]>;
} = {
  intents: intent,
  machines: machine,
  addresses: addressLease,
  drains: drain,
  pools: poolState,
};

export const JOURNAL_SHAPE = object<JournalEntry>({
  at: finite,
  kind: word<JournalKind>({ did: true, refused: true, failed: true, saw: true }),
  subject: object<JournalSubject>({
    pool: optional(text),
    machine: optional(text),
    node: optional(text),
    host: optional(text),
    region: optional(text),
  }),
  reason: text,
  message: text,
  numbers: optional(dictionary(textOrNumber)),
});
