// SPDX-License-Identifier: Apache-2.0
// What Proxmox says, and what it means for us. First match wins, so the narrow ones stand above the wide ones.
import {
  Conflict,
  type ErrorDetails,
  InvalidConfig,
  NoCapacity,
  NotFound,
  type PvescalerError,
  TaskFailed,
  Unauthorized,
  Unreachable,
  UnsupportedVersion,
} from '../ports/errors.ts';

export interface KnownText {
  readonly pattern: RegExp;
  make(message: string, details: ErrorDetails, match: RegExpExecArray): PvescalerError;
}

const PERMISSION_CHECK = /Permission check failed \(([^,()]+), ([^)]+)\)/;

const idTaken: KnownText['make'] = (message, details) =>
  new Conflict('VM_ID_TAKEN', message, details);
const lockTimedOut: KnownText['make'] = (message, details) =>
  new Conflict('LOCK_TIMED_OUT', message, details);
const vmNotFound: KnownText['make'] = (message, details) =>
  new NotFound('VM_NOT_FOUND', message, details);
const storageNotFound: KnownText['make'] = (message, details) =>
  new NotFound('STORAGE_NOT_FOUND', message, details);
const volumeNotFound: KnownText['make'] = (message, details) =>
  new NotFound('VOLUME_NOT_FOUND', message, details);
const hostNotFound: KnownText['make'] = (message, details) =>
  new NotFound('HOST_NOT_FOUND', message, details);
const taskNotFound: KnownText['make'] = (message, details) =>
  new NotFound('TASK_NOT_FOUND', message, details);
const refused: KnownText['make'] = (message, details) =>
  new InvalidConfig('PARAMETER_REFUSED', message, details);
const noSpace: KnownText['make'] = (message, details) =>
  new NoCapacity('NO_STORAGE_SPACE', message, details);
const vmChanged: KnownText['make'] = (message, details) =>
  new Conflict('VM_CHANGED', message, details);
const agentSilent: KnownText['make'] = (message, details) =>
  new Unreachable('GUEST_AGENT_SILENT', message, details);
const noQuorum: KnownText['make'] = (message, details) =>
  new Unreachable('PVE_NO_QUORUM', message, details);
const hostUnreachable: KnownText['make'] = (message, details) =>
  new Unreachable('PVE_HOST_UNREACHABLE', message, details);

export const KNOWN_TEXTS: readonly KnownText[] = [
  // An id that somebody else has: three texts when creating, one when asking, and the clone's own.
  { pattern: /unable to create (VM|CT) \d+ - (VM|CT) \d+ already exists/, make: idTaken },
  { pattern: /close \(rename\) atomic file '.*\.conf' failed: File exists/, make: idTaken },
  { pattern: /unable to create (VM|CT) \d+: config file already exists/, make: idTaken },
  { pattern: /(VM|CT) \d+ already exists/, make: idTaken },

  // A guest that does not do as asked looks like a lock that timed out; it is not one.
  {
    pattern: /VM quit\/powerdown failed/,
    make: (message, details) => new TaskFailed('TASK_FAILED', message, details),
  },
  {
    pattern: /VM is locked \(([^)]+)\)/,
    make: (message, details, match) =>
      new Conflict('VM_LOCKED', message, {
        ...details,
        facts: { ...details.facts, lock: match[1] ?? '' },
      }),
  },
  // `qmp` in 8.4, `qga` in 9. The command may have been carried out.
  { pattern: /(qmp|qga) command 'guest-[^']*' failed/, make: agentSilent },
  { pattern: /got (lock (request )?)?timeout|locked command timed out/, make: lockTimedOut },
  { pattern: /checksum mismatch \(file change by other user/, make: vmChanged },
  { pattern: /detected modified configuration/, make: vmChanged },
  {
    pattern: /protection mode enabled/,
    make: (message, details) =>
      new Conflict('VM_LOCKED', message, {
        ...details,
        hint: 'Somebody protected the VM; remove the protection in Proxmox if it should go.',
      }),
  },
  { pattern: /VM \d+ is running - destroy failed/, make: vmChanged },
  { pattern: /VM \d+ already running/, make: vmChanged },
  { pattern: /cluster not ready - no quorum|error: no quorum!/, make: noQuorum },
  // Without a majority the cluster's files can only be read, and who does not ask first fails with this.
  { pattern: /unable to open file '\/etc\/pve\/[^']*' - Permission denied/, make: noQuorum },
  // The cluster file system of one host is down or being restarted, by an upgrade for one.
  {
    pattern: /ipcc_send_rec|Unable to load access control list|cluster filesystem not online/,
    make: hostUnreachable,
  },

  { pattern: /Configuration file '[^']*' does not exist/, make: vmNotFound },
  { pattern: /unable to find configuration file for VM \d+/, make: vmNotFound },
  { pattern: /hostname lookup '[^']*' failed/, make: hostNotFound },
  { pattern: /no such cluster node/, make: hostNotFound },
  { pattern: /no such task|unable to parse worker upid/, make: taskNotFound },
  { pattern: /pool '[^']*' does not exist/, make: refused },
  {
    pattern: /storage '[^']*' (does not exist|is disabled|is not (available|online|active))/,
    make: storageNotFound,
  },
  { pattern: /volume '[^']*' does not exist/, make: volumeNotFound },
  { pattern: /failed to stat '/, make: volumeNotFound },

  { pattern: /QEMU guest agent is not running|VM \d+ (is )?not running/, make: agentSilent },
  {
    pattern: /No QEMU guest agent configured/,
    make: (message, details) =>
      new Unreachable('GUEST_AGENT_SILENT', message, {
        ...details,
        hint: 'Set agent=1 on the VM; it takes effect with the next cold start.',
      }),
  },
  { pattern: /Agent error: /, make: agentSilent },

  {
    pattern:
      /No space left on device|(not enough|insufficient) (free )?space|out of space|free space .* reached threshold|Disk quota exceeded/i,
    make: noSpace,
  },
  {
    pattern: /Cannot allocate memory|not enough memory/i,
    make: (message, details) => new NoCapacity('NO_HOST_FITS', message, details),
  },
  {
    pattern: PERMISSION_CHECK,
    make: (message, details, match) =>
      new Unauthorized('PERMISSION_MISSING', message, {
        ...details,
        facts: { ...details.facts, path: match[1] ?? '', privilege: match[2] ?? '' },
      }),
  },
  {
    pattern: /Permission check failed/,
    make: (message, details) => new Unauthorized('PERMISSION_MISSING', message, details),
  },

  { pattern: /MAX \d+ vcpus allowed/, make: refused },
  { pattern: /bridge '[^']*' does not exist/, make: refused },
  { pattern: /(Linked|Full) clone feature is not supported/, make: refused },
  { pattern: /not allowed for linked clones/, make: refused },
  { pattern: /can't clone (VM to node|to non-shared storage)/, make: refused },
  { pattern: /Only root can pass arbitrary filesystem paths/, make: refused },
  { pattern: /only root can/i, make: refused },
  { pattern: /you can't start a vm if it's a template/, make: refused },
  { pattern: /backing file not allowed for untrusted image/, make: refused },
  {
    pattern: /Method '.*' not implemented/,
    make: (message, details) => new UnsupportedVersion('PVE_TOO_OLD', message, details),
  },
];
