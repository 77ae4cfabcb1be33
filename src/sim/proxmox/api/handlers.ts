// SPDX-License-Identifier: Apache-2.0
// All simulated endpoints, by method and path. Endpoints of the table without a handler verify their parameters,
// then respond with 501 "is not simulated".
import type { Handlers } from '../core.ts';
import { ACCESS_HANDLERS } from './access.ts';
import { AGENT_HANDLERS } from './agent.ts';
import { CLUSTER_HANDLERS } from './cluster.ts';
import { HA_HANDLERS } from './ha.ts';
import { HOST_INFO_HANDLERS } from './host-info.ts';
import { NODE_HANDLERS } from './nodes.ts';
import { POOL_HANDLERS } from './pools.ts';
import { QEMU_HANDLERS } from './qemu.ts';
import { QEMU_INFO_HANDLERS } from './qemu-info.ts';
import { STORAGE_HANDLERS } from './storage.ts';
import { TASK_HANDLERS } from './tasks.ts';

const INDEX_HANDLERS: Handlers = {
  'GET /': () =>
    ['version', 'cluster', 'nodes', 'storage', 'access', 'pools'].map((subdir) => ({ subdir })),
  'GET /access': () =>
    ['users', 'groups', 'roles', 'acl', 'domains', 'ticket', 'permissions'].map((subdir) => ({
      subdir,
    })),
  'GET /cluster': () =>
    ['resources', 'status', 'nextid', 'tasks', 'options', 'ha', 'log'].map((name) => ({ name })),
  'GET /access/domains': () => [
    { realm: 'pam', type: 'pam', comment: 'Linux PAM standard authentication' },
    { realm: 'pve', type: 'pve', comment: 'Proxmox VE authentication server' },
  ],
  'GET /nodes/{node}/lxc': (call) =>
    [...call.state.containers.values()]
      .filter(
        ({ host, id }) =>
          host === call.host && call.isAllowed({ path: `/vms/${id}`, privileges: ['VM.Audit'] }),
      )
      .map((container) => ({
        vmid: String(container.id),
        name: container.name,
        type: 'lxc',
        status: container.running ? 'running' : 'stopped',
        cpus: container.cpus,
        maxmem: container.memory,
      })),
};

export const HANDLERS: Handlers = {
  ...INDEX_HANDLERS,
  ...ACCESS_HANDLERS,
  ...AGENT_HANDLERS,
  ...CLUSTER_HANDLERS,
  ...HA_HANDLERS,
  ...HOST_INFO_HANDLERS,
  ...NODE_HANDLERS,
  ...POOL_HANDLERS,
  ...QEMU_HANDLERS,
  ...QEMU_INFO_HANDLERS,
  ...STORAGE_HANDLERS,
  ...TASK_HANDLERS,
};
