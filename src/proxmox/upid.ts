// SPDX-License-Identifier: Apache-2.0
// Ids of Proxmox tasks: `UPID:host:pid:pstart:starttime:type:subject:owner:`. Other folders treat them as opaque.
import type { TaskKind } from '../model/machine.ts';
import { Bug, NotFound } from '../ports/errors.ts';
import type { RunningTask, TaskRef } from '../ports/hypervisor.ts';
import { asText } from './wire-values.ts';

export interface Upid {
  readonly text: string;
  readonly host: string;
  readonly startedAtSeconds: number;
  readonly type: string;
  /** VM id, id of the *source* of a clone, file name of a download, or empty. */
  readonly subject: string;
  /** `user@realm`, with `!token` when a token started it. */
  readonly owner: string;
}

// `pstart` counts clock ticks and exceeds eight digits after 497 days of uptime.
const UPID_PATTERN =
  /^UPID:([^:\s]+):([0-9A-F]{8}):([0-9A-F]{8,9}):([0-9A-F]{8}):([^:\s]+):([^:\s]*):([^:\s]+):$/i;

export function parseUpid(text: string): Upid | undefined {
  const match = UPID_PATTERN.exec(text);
  if (match === null) return undefined;
  const [, host = '', , , started = '0', type = '', subject = '', owner = ''] = match;
  return { text, host, startedAtSeconds: Number.parseInt(started, 16), type, subject, owner };
}

/** An invalid UPID, for example from the store, identifies no task. */
export function requireUpid(text: string): Upid {
  const upid = parseUpid(text);
  if (upid === undefined) throw new NotFound('TASK_NOT_FOUND', `invalid task id (UPID): ${text}`);
  return upid;
}

type KnownKind = Exclude<TaskKind, 'other'>;

/** Proxmox's task type for each of our task kinds. */
export const TASK_TYPES: Readonly<Record<KnownKind, string>> = {
  create: 'qmcreate',
  clone: 'qmclone',
  configure: 'qmconfig',
  resize: 'resize',
  start: 'qmstart',
  shutdown: 'qmshutdown',
  stop: 'qmstop',
  destroy: 'qmdestroy',
  template: 'qmtemplate',
  upload: 'imgcopy',
  download: 'download',
};

const KIND_OF_TYPE: ReadonlyMap<string, TaskKind> = new Map(
  Object.entries(TASK_TYPES).flatMap(([kind, type]) => (isKnownKind(kind) ? [[type, kind]] : [])),
);

function isKnownKind(kind: string): kind is KnownKind {
  return Object.hasOwn(TASK_TYPES, kind);
}

export function toTaskRef({ text, host, type }: Upid): TaskRef {
  return { upid: text, kind: KIND_OF_TYPE.get(type) ?? 'other', host };
}

export function toRunningTask(upid: Upid): RunningTask {
  const { subject } = upid;
  const named = subject === '' ? undefined : subject;
  return { ...toTaskRef(upid), subject: /^\d+$/.test(subject) ? Number(subject) : named };
}

/** A call that starts a task returns the UPID and nothing else. */
export function parseStartedTask(data: unknown, operation: string): TaskRef {
  const upid = parseUpid(asText(data) ?? '');
  if (upid === undefined) {
    throw new Bug('UNEXPECTED_ANSWER', `${operation}: Proxmox returned no task id`, {
      facts: { requestSent: true },
    });
  }
  return toTaskRef(upid);
}
