// SPDX-License-Identifier: Apache-2.0
// Error texts of Proxmox and the errors they become. The first match wins: specific patterns precede general ones.
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

export interface KnownErrorText {
  readonly pattern: RegExp;
  createError(message: string, details: ErrorDetails, match: RegExpExecArray): PvescalerError;
}

const PERMISSION_CHECK_FAILED = /Permission check failed \(([^,()]+), ([^)]+)\)/;

const idTaken: KnownErrorText['createError'] = (message, details) =>
  new Conflict('VM_ID_TAKEN', message, details);
const lockTimedOut: KnownErrorText['createError'] = (message, details) =>
  new Conflict('LOCK_TIMED_OUT', message, details);
const vmNotFound: KnownErrorText['createError'] = (message, details) =>
  new NotFound('VM_NOT_FOUND', message, details);
const storageNotFound: KnownErrorText['createError'] = (message, details) =>
  new NotFound('STORAGE_NOT_FOUND', message, details);
const volumeNotFound: KnownErrorText['createError'] = (message, details) =>
  new NotFound('VOLUME_NOT_FOUND', message, details);
const hostNotFound: KnownErrorText['createError'] = (message, details) =>
  new NotFound('HOST_NOT_FOUND', message, details);
const taskNotFound: KnownErrorText['createError'] = (message, details) =>
  new NotFound('TASK_NOT_FOUND', message, details);
const parameterRefused: KnownErrorText['createError'] = (message, details) =>
  new InvalidConfig('PARAMETER_REFUSED', message, details);
const noStorageSpace: KnownErrorText['createError'] = (message, details) =>
  new NoCapacity('NO_STORAGE_SPACE', message, details);
const vmChanged: KnownErrorText['createError'] = (message, details) =>
  new Conflict('VM_CHANGED', message, details);
const agentSilent: KnownErrorText['createError'] = (message, details) =>
  new Unreachable('GUEST_AGENT_SILENT', message, details);
const noQuorum: KnownErrorText['createError'] = (message, details) =>
  new Unreachable('PVE_NO_QUORUM', message, details);
const hostUnreachable: KnownErrorText['createError'] = (message, details) =>
  new Unreachable('PVE_HOST_UNREACHABLE', message, details);

export const KNOWN_ERROR_TEXTS: readonly KnownErrorText[] = [
  // The VM id is taken: texts of create and clone tasks and of parameter verification.
  { pattern: /unable to create (VM|CT) \d+ - (VM|CT) \d+ already exists/, createError: idTaken },
  { pattern: /close \(rename\) atomic file '.*\.conf' failed: File exists/, createError: idTaken },
  { pattern: /unable to create (VM|CT) \d+: config file already exists/, createError: idTaken },
  { pattern: /(VM|CT) \d+ already exists/, createError: idTaken },

  // Contains "got timeout" like a lock timeout, but the guest did not shut down.
  {
    pattern: /VM quit\/powerdown failed/,
    createError: (message, details) => new TaskFailed('TASK_FAILED', message, details),
  },
  {
    pattern: /VM is locked \(([^)]+)\)/,
    createError: (message, details, match) =>
      new Conflict('VM_LOCKED', message, {
        ...details,
        facts: { ...details.facts, lock: match[1] ?? '' },
      }),
  },
  // `qmp` in 8.4, `qga` in 9. The command may have been executed.
  { pattern: /(qmp|qga) command 'guest-[^']*' failed/, createError: agentSilent },
  { pattern: /got (lock (request )?)?timeout|locked command timed out/, createError: lockTimedOut },
  { pattern: /checksum miss?match \(file change by other user/, createError: vmChanged },
  { pattern: /detected modified configuration/, createError: vmChanged },
  {
    pattern: /protection mode enabled/,
    createError: (message, details) =>
      new Conflict('VM_LOCKED', message, {
        ...details,
        hint: 'The VM is protected. Remove the protection in Proxmox if the VM may be deleted.',
      }),
  },
  { pattern: /VM \d+ is running - destroy failed/, createError: vmChanged },
  { pattern: /VM \d+ already running/, createError: vmChanged },
  { pattern: /cluster not ready - no quorum|error: no quorum!/, createError: noQuorum },
  // Without quorum /etc/pve is read-only. Calls that do not check quorum first fail with this text.
  { pattern: /unable to open file '\/etc\/pve\/[^']*' - Permission denied/, createError: noQuorum },
  // The cluster file system of the host is down or restarts, for example during an upgrade.
  {
    pattern: /ipcc_send_rec|Unable to load access control list|cluster filesystem not online/,
    createError: hostUnreachable,
  },

  // An upload for another host than the endpoint's.
  { pattern: /on node '[^']*': command '\S*\/ssh /, createError: hostUnreachable },

  { pattern: /Configuration file '[^']*' does not exist/, createError: vmNotFound },
  { pattern: /unable to find configuration file for VM \d+/, createError: vmNotFound },
  { pattern: /hostname lookup '[^']*' failed/, createError: hostNotFound },
  { pattern: /no such cluster node/, createError: hostNotFound },
  { pattern: /no such task|unable to parse worker upid/, createError: taskNotFound },
  { pattern: /pool '[^']*' does not exist/, createError: parameterRefused },
  {
    pattern: /storage '[^']*' (does not exist|is disabled|is not (available|online|active))/,
    createError: storageNotFound,
  },
  { pattern: /volume '[^']*' does not exist/, createError: volumeNotFound },
  { pattern: /failed to stat '/, createError: volumeNotFound },

  { pattern: /QEMU guest agent is not running|VM \d+ (is )?not running/, createError: agentSilent },
  {
    pattern: /No QEMU guest agent configured/,
    createError: (message, details) =>
      new Unreachable('GUEST_AGENT_SILENT', message, {
        ...details,
        hint: 'Set agent=1 on the VM; it takes effect when the VM is stopped and started again.',
      }),
  },
  { pattern: /Agent error: /, createError: agentSilent },

  {
    pattern:
      /No space left on device|(not enough|insufficient) (free )?space|out of space|free space .* reached threshold|Disk quota exceeded/i,
    createError: noStorageSpace,
  },
  {
    pattern: /Cannot allocate memory|not enough memory/i,
    createError: (message, details) => new NoCapacity('NO_HOST_FITS', message, details),
  },
  {
    pattern: PERMISSION_CHECK_FAILED,
    createError: (message, details, match) =>
      new Unauthorized('PERMISSION_MISSING', message, {
        ...details,
        facts: { ...details.facts, path: match[1] ?? '', privilege: match[2] ?? '' },
      }),
  },
  {
    pattern: /Permission check failed/,
    createError: (message, details) => new Unauthorized('PERMISSION_MISSING', message, details),
  },

  { pattern: /MAX \d+ vcpus allowed/, createError: parameterRefused },
  { pattern: /bridge '[^']*' does not exist/, createError: parameterRefused },
  { pattern: /(Linked|Full) clone feature is not supported/, createError: parameterRefused },
  { pattern: /not allowed for linked clones/, createError: parameterRefused },
  { pattern: /can't clone (VM to node|to non-shared storage)/, createError: parameterRefused },
  { pattern: /Only root can pass arbitrary filesystem paths/, createError: parameterRefused },
  { pattern: /only root can/i, createError: parameterRefused },
  { pattern: /you can't start a vm if it's a template/, createError: parameterRefused },
  { pattern: /backing file not allowed for untrusted image/, createError: parameterRefused },
  {
    pattern: /Method '.*' not implemented/,
    createError: (message, details) => new UnsupportedVersion('PVE_TOO_OLD', message, details),
  },
];
