// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import {
  readErrorMessage,
  redactSecrets,
  translateErrorResponse,
  translateTaskFailure,
} from './translate-errors.ts';

const context = {
  operation: 'do it',
  facts: { host: 'pve1', vmId: 160 },
  secrets: ['s3cr3t-value'],
};

function translate(status: number, reason: string, body: unknown = { data: null }) {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return translateErrorResponse({ status, reason, body: text }, context);
}

describe('error responses', () => {
  it.each([
    ["Configuration file 'nodes/pve1/qemu-server/999.conf' does not exist", 'VM_NOT_FOUND'],
    ["unable to find configuration file for VM 999 on node 'pve1'", 'VM_NOT_FOUND'],
    ["storage 'x' does not exist", 'STORAGE_NOT_FOUND'],
    ["storage 'x' is disabled", 'STORAGE_NOT_FOUND'],
    ["hostname lookup 'nosuch' failed - failed to get address info for: nosuch", 'HOST_NOT_FOUND'],
    ['no such cluster node', 'HOST_NOT_FOUND'],
    ['cluster not ready - no quorum?', 'PVE_NO_QUORUM'],
    ["cfs-lock 'storage-ceph' error: no quorum!", 'PVE_NO_QUORUM'],
    [
      "unable to open file '/etc/pve/nodes/pve1/qemu-server/160.conf.tmp.4711' - Permission denied",
      'PVE_NO_QUORUM',
    ],
    ['pve cluster filesystem not online.', 'PVE_HOST_UNREACHABLE'],
    ['Unable to load access control list: Connection refused', 'PVE_HOST_UNREACHABLE'],
    ['ipcc_send_rec[1] failed: Connection refused', 'PVE_HOST_UNREACHABLE'],
    ["unable to create VM 160 - VM 160 already exists on node 'pve1'", 'VM_ID_TAKEN'],
    ["unable to create VM 160 - CT 160 already exists on node 'pve1'", 'VM_ID_TAKEN'],
    [
      "unable to create VM 300 - close (rename) atomic file '/etc/pve/nodes/pve3/qemu-server/300.conf' failed: File exists",
      'VM_ID_TAKEN',
    ],
    ['unable to create VM 181: config file already exists', 'VM_ID_TAKEN'],
    ['VM is locked (backup)', 'VM_LOCKED'],
    ['VM is locked (snapshot-delete)', 'VM_LOCKED'],
    ["can't lock file '/var/lock/qemu-server/lock-224.conf' - got timeout", 'LOCK_TIMED_OUT'],
    ["can't lock file '/var/lock/pve-manager/pve-storage-local' - got timeout", 'LOCK_TIMED_OUT'],
    ["cfs-lock 'storage-X' error: got lock request timeout", 'LOCK_TIMED_OUT'],
    ["cfs-lock 'storage-X' error: got lock timeout - aborting command", 'LOCK_TIMED_OUT'],
    ["'storage-X'-locked command timed out - aborting", 'LOCK_TIMED_OUT'],
    ["command '/sbin/lvs --separator : --noheadings' failed: got timeout", 'LOCK_TIMED_OUT'],
    ['checksum mismatch (file change by other user?)', 'VM_CHANGED'],
    ['checksum missmatch (file change by other user?)', 'VM_CHANGED'],
    ['VM 100 is running - destroy failed', 'VM_CHANGED'],
    ["can't remove VM 100 - protection mode enabled", 'VM_LOCKED'],
    ['No QEMU guest agent configured', 'GUEST_AGENT_SILENT'],
    ['VM 100 is not running', 'GUEST_AGENT_SILENT'],
    ['QEMU guest agent is not running', 'GUEST_AGENT_SILENT'],
    ["Agent error: Invalid parameter 'pid'", 'GUEST_AGENT_SILENT'],
    ["VM 100 qmp command 'guest-ping' failed - got timeout", 'GUEST_AGENT_SILENT'],
    ["VM 100 qga command 'guest-exec' failed - got timeout", 'GUEST_AGENT_SILENT'],
    ["VM 100 qga command 'guest-ping' failed - client closed connection", 'GUEST_AGENT_SILENT'],
    ["VM 100 qmp command 'query-status' failed - got timeout", 'LOCK_TIMED_OUT'],
    ["parameter 'storage' not allowed for linked clones", 'PARAMETER_REFUSED'],
    [
      "Linked clone feature is not supported for 'local-lvm:vm-100-disk-0' (scsi0)",
      'PARAMETER_REFUSED',
    ],
    ["Full clone feature is not supported for 'x:vm-1-disk-0' (scsi0)", 'PARAMETER_REFUSED'],
    ["can't clone VM to node 'pve3' (VM uses local storage)", 'PARAMETER_REFUSED'],
    ["can't clone to non-shared storage 'local'", 'PARAMETER_REFUSED'],
    ['Only root can pass arbitrary filesystem paths.', 'PARAMETER_REFUSED'],
    ['no options specified', 'TASK_FAILED'],
    ['an unknown error text', 'TASK_FAILED'],
  ])('500 %s becomes %s', (text, code) => {
    const error = translate(500, text);
    expect(error.code).toBe(code);
    expect(error.message).toBe(`do it: ${text}`);
    expect(error.facts).toMatchObject({ host: 'pve1', vmId: 160, status: 500, requestSent: true });
  });

  it('have the lock, or privilege and path, as facts', () => {
    expect(translate(500, 'VM is locked (clone)').facts['lock']).toBe('clone');
    const missing = translate(403, 'Permission check failed (/vms/100, VM.PowerMgmt)');
    expect(missing.code).toBe('PERMISSION_MISSING');
    expect(missing.facts).toMatchObject({ path: '/vms/100', privilege: 'VM.PowerMgmt' });
  });

  it.each([
    [400, 'Parameter verification failed.', 'PARAMETER_REFUSED'],
    [401, 'No ticket', 'CREDENTIALS_REFUSED'],
    [401, 'Authentication failed!', 'CREDENTIALS_REFUSED'],
    [401, 'Permission denied - invalid csrf token', 'CREDENTIALS_REFUSED'],
    [401, 'invalid token value!', 'CREDENTIALS_REFUSED'],
    [403, 'Permission check failed', 'PERMISSION_MISSING'],
    [403, 'Permission check failed (user != root@pam)', 'PERMISSION_MISSING'],
    [403, "Permission check failed (pool 'x' does not exist)", 'PARAMETER_REFUSED'],
    [501, "Method 'GET /x' not implemented", 'PVE_TOO_OLD'],
    [501, 'chunked transfer encoding not supported', 'UNEXPECTED_ANSWER'],
    [502, 'Bad Gateway', 'PVE_UNREACHABLE'],
    [595, 'Connection refused', 'PVE_HOST_UNREACHABLE'],
    [595, 'No route to host', 'PVE_HOST_UNREACHABLE'],
    [596, 'Connection timed out', 'REQUEST_TIMED_OUT'],
    [597, 'Broken pipe', 'PVE_HOST_UNREACHABLE'],
    [598, 'aborted', 'PVE_HOST_UNREACHABLE'],
    [599, 'Too many redirections', 'PVE_HOST_UNREACHABLE'],
    [301, 'Moved Permanently', 'CONFIG_INVALID'],
    [418, 'teapot', 'UNEXPECTED_ANSWER'],
  ])('%i %s becomes %s', (status, reason, code) => {
    expect(translate(status, reason, '').code).toBe(code);
  });

  it('have requestSent: false only for 595', () => {
    expect(translate(595, 'Connection refused', '').facts['requestSent']).toBe(false);
    expect(translate(596, 'Connection timed out', '').facts['requestSent']).toBe(true);
    expect(translate(599, 'Too many redirections', '').facts['requestSent']).toBe(true);
  });

  it('list the refused parameters, whose texts decide the code', () => {
    const refused = translate(400, 'Parameter verification failed.', {
      data: null,
      errors: {
        net0: 'invalid format - format error\nnet0.mac: property is not defined in schema\n',
        cores: "type check ('integer') failed",
      },
    });
    expect(refused.code).toBe('PARAMETER_REFUSED');
    expect(refused.message).toContain('net0: invalid format - format error; net0.mac: property');
    expect(refused.message).toContain("cores: type check ('integer') failed");
    const taken = { vmid: 'VM 100 already exists' };
    expect(translate(400, 'Parameter verification failed.', { errors: taken }).code).toBe(
      'VM_ID_TAKEN',
    );
    const noTask = { upid: 'no such task' };
    expect(translate(400, 'Parameter verification failed.', { errors: noTask }).code).toBe(
      'TASK_NOT_FOUND',
    );
  });

  it('do not contain secrets that Proxmox quotes', () => {
    const error = translate(400, 'Parameter verification failed.', {
      errors: { cipassword: "value 's3cr3t-value' is too short" },
    });
    expect(error.message).toContain('***');
    expect(JSON.stringify([error.message, error.facts])).not.toContain('s3cr3t-value');
    expect(redactSecrets('abc', ['', 'a'])).toBe('abc');
  });
});

describe('readErrorMessage', () => {
  const body = (message: string) => JSON.stringify({ data: null, message });

  it('returns the reason phrase if the body has no message (before 8.4)', () => {
    expect(
      readErrorMessage({ status: 500, reason: 'VM is locked (clone)', body: '{"data":null}' }),
    ).toBe('VM is locked (clone)');
    expect(readErrorMessage({ status: 401, reason: 'No ticket', body: '' })).toBe('No ticket');
  });

  it('returns the whole message if the reason phrase is its first line', () => {
    expect(readErrorMessage({ status: 500, reason: 'first', body: body('first\nsecond\n') })).toBe(
      'first; second',
    );
  });

  it('returns the message if a proxy replaced the reason phrase', () => {
    for (const reason of ['', 'Internal Server Error']) {
      expect(readErrorMessage({ status: 500, reason, body: body('VM is locked (clone)\n') })).toBe(
        'VM is locked (clone)',
      );
    }
  });

  it('reports the status if there is no text', () => {
    expect(readErrorMessage({ status: 500, reason: '', body: '<html>' })).toBe(
      'HTTP status 500 without an error text',
    );
  });
});

describe('exit statuses of tasks', () => {
  it.each([
    ['unable to create VM 181: config file already exists', 'VM_ID_TAKEN'],
    ["Configuration file 'nodes/pve1/qemu-server/9.conf' does not exist", 'VM_CHANGED'],
    ["can't lock file '/var/lock/qemu-server/lock-224.conf' - got timeout", 'LOCK_TIMED_OUT'],
    ['VM quit/powerdown failed - got timeout', 'TASK_FAILED'],
    ['VM 100 already running', 'VM_CHANGED'],
    ['VM is locked (backup)', 'VM_LOCKED'],
    [
      "unable to create VM 162 - failed to stat '/var/lib/vz/import/nosuch.qcow2'",
      'VOLUME_NOT_FOUND',
    ],
    ["volume 'local:iso/x.iso' does not exist", 'VOLUME_NOT_FOUND'],
    ["bridge 'vmbr7' does not exist", 'PARAMETER_REFUSED'],
    ['MAX 2 vcpus allowed per VM on this node', 'PARAMETER_REFUSED'],
    ["you can't start a vm if it's a template", 'PARAMETER_REFUSED'],
    ['backing file not allowed for untrusted image', 'PARAMETER_REFUSED'],
    ["403 Permission check failed (/, Sys.Modify for modifying tag 'x')", 'PERMISSION_MISSING'],
    ['lvcreate error: No space left on device', 'NO_STORAGE_SPACE'],
    [
      "unable to create VM 162 - lvcreate 'pve/vm-162-disk-0' error:   Cannot create new thin volume, free space in thin pool pve/data reached threshold.",
      'NO_STORAGE_SPACE',
    ],
    [
      "command '/sbin/lvextend -L 20G /dev/pve/x' failed:   Insufficient free space: 2560 extents needed, but only 0 available",
      'NO_STORAGE_SPACE',
    ],
    ["unable to create VM 162 - cfs-lock 'storage-ceph' error: no quorum!", 'PVE_NO_QUORUM'],
    ['start failed: cannot set up guest memory: Cannot allocate memory', 'NO_HOST_FITS'],
    ['download failed: exit code 8', 'TASK_FAILED'],
    ['refusing to override existing file', 'TASK_FAILED'],
    ['received interrupt', 'TASK_FAILED'],
    ['unexpected status', 'TASK_FAILED'],
    ["base volume 'local:171/base-171-disk-0.raw' is still in use by linked cloned", 'TASK_FAILED'],
  ])('%s becomes %s', (text, code) => {
    expect(translateTaskFailure(`${text}\n`, context)).toMatchObject({
      code,
      message: `do it: ${text}`,
    });
  });
});
