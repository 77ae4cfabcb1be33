// SPDX-License-Identifier: Apache-2.0
// A valid and an invalid value for every endpoint and parameter that the client sends. The expected response to the invalid
// value is 400 with the error of the parameter rules, unless the case contains another one.
import type { ParameterCase, ParameterCaseValue } from './parameter-case.ts';
import { VM_OPTIONS } from './vm-option-cases.ts';

export interface EndpointCases {
  /** Further parameters that the call needs, including path parameters. */
  readonly given: Readonly<Record<string, ParameterCaseValue>>;
  readonly parameters: Readonly<Record<string, ParameterCase>>;
}

/** Proxmox resolves the host name before it verifies parameters. */
const node: ParameterCase = {
  accept: 'pve1',
  refuse: 'no_host',
  response:
    "500 hostname lookup 'no_host' failed - failed to get address info for: no_host: Name or service not known",
};
const vmid: ParameterCase = { accept: '100', refuse: '99' };
const storage: ParameterCase = { accept: 'local', refuse: '1x' };
const upid: ParameterCase = {
  accept: 'UPID:pve1:0003E1A4:12345678:66A0B2C3:qmcreate:160:root@pam:',
  refuse: 'UPID:pve1',
  error: 'unable to parse worker upid',
};
/** Any text is valid; only a repeated parameter is refused. */
const unrestrictedText = (accept: string): ParameterCase => ({ accept, refuse: [accept, accept] });
const flag = (accept = '1'): ParameterCase => ({ accept, refuse: 'true' });

const ON_VM = { node: 'pve1', vmid: '100' };
const ON_GUEST = { node: 'pve1', vmid: '101' };
const ON_STORAGE = { node: 'pve1', storage: 'local' };
const onVm = { node, vmid };
const onGuest = { node, vmid: { accept: '101', refuse: '1e2' } };
const onStorage = { node, storage };

export const PARAMETER_CASES: Readonly<Record<string, EndpointCases>> = {
  'GET /version': { given: {}, parameters: {} },
  'GET /nodes': { given: {}, parameters: {} },
  'GET /cluster/status': { given: {}, parameters: {} },
  'POST /access/ticket': {
    given: { username: 'scaler@pve', password: 'simulated' },
    parameters: {
      username: { accept: 'scaler@pve', refuse: 'x'.repeat(65) },
      password: unrestrictedText('simulated'),
    },
  },
  'GET /access/permissions': {
    given: {},
    parameters: { path: unrestrictedText('/vms/100') },
  },
  'GET /cluster/resources': {
    given: {},
    parameters: { type: { accept: 'vm', refuse: 'lxc' } },
  },
  'GET /nodes/{node}/storage': {
    given: { node: 'pve1' },
    parameters: { node, content: { accept: 'images', refuse: 'i' }, enabled: flag() },
  },
  'GET /access/users/{userid}/token/{tokenid}': {
    given: { userid: 'scaler@pve', tokenid: 'sim' },
    parameters: {
      userid: { accept: 'scaler@pve', refuse: 'scaler' },
      tokenid: { accept: 'sim', refuse: '1' },
    },
  },
  'GET /nodes/{node}/time': { given: { node: 'pve1' }, parameters: { node } },
  'GET /nodes/{node}/network': {
    given: { node: 'pve1' },
    parameters: { node, type: { accept: 'any_bridge', refuse: 'cable' } },
  },
  'GET /nodes/{node}/query-url-metadata': {
    given: { node: 'pve1', url: 'https://images.example/x.qcow2' },
    parameters: {
      node,
      url: { accept: 'http://images.example/x.qcow2', refuse: 'ftp://images.example/x.qcow2' },
      'verify-certificates': flag('0'),
    },
  },
  'POST /nodes/{node}/qemu': {
    given: { node: 'pve1', vmid: '150' },
    parameters: {
      ...VM_OPTIONS,
      node,
      vmid: { accept: '150', refuse: '1000000000' },
      pool: { accept: 'mine', refuse: 'a/b/c/d' },
    },
  },
  'PUT /nodes/{node}/qemu/{vmid}/config': {
    given: { ...ON_VM, description: 'x' },
    parameters: {
      ...VM_OPTIONS,
      ...onVm,
      delete: { accept: 'ide2', refuse: 'a:b' },
      digest: { accept: '', refuse: 'x'.repeat(41) },
    },
  },
  'GET /nodes/{node}/qemu/{vmid}/config': { given: ON_VM, parameters: onVm },
  'GET /nodes/{node}/qemu/{vmid}/status/current': { given: ON_VM, parameters: onVm },
  'POST /nodes/{node}/qemu/{vmid}/clone': {
    given: { node: 'pve1', vmid: '900', newid: '151', full: '1' },
    parameters: {
      node,
      vmid: { accept: '900', refuse: '0900' },
      newid: { accept: '151', refuse: '' },
      name: { accept: 'k8s-a.lab', refuse: 'under_score' },
      description: unrestrictedText('a clone'),
      full: flag(),
      storage: { accept: 'local-lvm', refuse: '9x' },
      target: { accept: 'pve1', refuse: '-pve' },
      pool: { accept: 'mine', refuse: 'a b' },
    },
  },
  'PUT /nodes/{node}/qemu/{vmid}/resize': {
    given: { ...ON_VM, disk: 'scsi0', size: '+1G' },
    parameters: {
      ...onVm,
      disk: { accept: 'scsi0', refuse: 'scsi31' },
      size: { accept: '20G', refuse: '10GB' },
      digest: { accept: '', refuse: 'x'.repeat(41) },
    },
  },
  'POST /nodes/{node}/qemu/{vmid}/status/start': { given: ON_VM, parameters: onVm },
  'POST /nodes/{node}/qemu/{vmid}/status/shutdown': {
    given: ON_VM,
    parameters: { ...onVm, timeout: { accept: '60', refuse: '-1' }, forceStop: flag() },
  },
  'POST /nodes/{node}/qemu/{vmid}/status/stop': {
    given: ON_VM,
    parameters: { ...onVm, 'overrule-shutdown': flag() },
  },
  'POST /nodes/{node}/qemu/{vmid}/template': { given: ON_VM, parameters: onVm },
  'DELETE /nodes/{node}/qemu/{vmid}': {
    given: ON_VM,
    parameters: { ...onVm, purge: flag() },
  },
  'GET /nodes/{node}/tasks': {
    given: { node: 'pve1' },
    parameters: {
      node,
      source: { accept: 'active', refuse: 'running' },
      typefilter: unrestrictedText('qmclone'),
      limit: { accept: '1000', refuse: '1k' },
    },
  },
  'GET /nodes/{node}/tasks/{upid}/status': {
    given: { node: 'pve1', upid: upid.accept },
    parameters: { node, upid },
  },
  'GET /nodes/{node}/tasks/{upid}/log': {
    given: { node: 'pve1', upid: upid.accept },
    parameters: {
      node,
      upid,
      start: { accept: '0', refuse: '-1' },
      limit: { accept: '20', refuse: 'all' },
    },
  },
  'GET /nodes/{node}/storage/{storage}/content': {
    given: ON_STORAGE,
    parameters: { ...onStorage, content: { accept: 'iso', refuse: 'disks' } },
  },
  'DELETE /nodes/{node}/storage/{storage}/content/{volume}': {
    given: { ...ON_STORAGE, volume: 'local:iso/debian.iso' },
    parameters: {
      ...onStorage,
      volume: {
        accept: 'local:iso/debian.iso',
        refuse: 'other:iso/debian.iso',
        error: 'storage ID mismatch (other != local)\n',
      },
    },
  },
  'POST /nodes/{node}/storage/{storage}/download-url': {
    given: {
      ...ON_STORAGE,
      content: 'import',
      filename: 'x.qcow2',
      url: 'https://images.example/x.qcow2',
    },
    parameters: {
      ...onStorage,
      content: { accept: 'import', refuse: 'images' },
      filename: { accept: 'y.qcow2', refuse: 'x'.repeat(256) },
      url: { accept: 'http://images.example/x.qcow2', refuse: 'ftp://images.example/x.qcow2' },
      checksum: { accept: 'ab'.repeat(32), refuse: ['ab', 'ab'] },
      'checksum-algorithm': { accept: 'sha256', refuse: 'sha3' },
      'verify-certificates': flag('0'),
    },
  },
  'POST /nodes/{node}/storage/{storage}/upload': {
    given: { ...ON_STORAGE, content: 'iso', filename: 'seed.iso' },
    parameters: {
      ...onStorage,
      content: { accept: 'iso', refuse: 'snippets' },
      filename: { accept: 'seed-1.iso', refuse: `${'x'.repeat(252)}.iso` },
    },
  },
  'POST /nodes/{node}/qemu/{vmid}/agent/ping': { given: ON_GUEST, parameters: onGuest },
  'GET /nodes/{node}/qemu/{vmid}/agent/network-get-interfaces': {
    given: ON_GUEST,
    parameters: onGuest,
  },
  'POST /nodes/{node}/qemu/{vmid}/agent/exec': {
    given: { ...ON_GUEST, command: ['/bin/true'] },
    parameters: {
      ...onGuest,
      command: { accept: ['/bin/echo', 'a b'], refuse: '' },
      'input-data': { accept: 'x', refuse: 'x'.repeat(65_537) },
    },
  },
  'GET /nodes/{node}/qemu/{vmid}/agent/exec-status': {
    given: { ...ON_GUEST, pid: '1' },
    parameters: { ...onGuest, pid: { accept: '1', refuse: 'one' } },
  },
};
