// SPDX-License-Identifier: Apache-2.0
// Everything that is simulated, by method and path. What the table knows and this does not is verified, then
// answered with 501 and an honest text.
import type { Handlers } from '../core.ts';
import { ACCESS } from './access.ts';
import { AGENT } from './agent.ts';
import { CLUSTER } from './cluster.ts';
import { HA } from './ha.ts';
import { HOST_FACTS } from './host-facts.ts';
import { NODES } from './nodes.ts';
import { POOLS } from './pools.ts';
import { QEMU } from './qemu.ts';
import { QEMU_FACTS } from './qemu-facts.ts';
import { STORAGE } from './storage.ts';
import { TASKS } from './tasks.ts';

const BRANCHES: Handlers = {
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
    [...call.world.containers.values()]
      .filter(
        ({ host, id }) =>
          host === call.host && call.may({ path: `/vms/${id}`, privileges: ['VM.Audit'] }),
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
  ...BRANCHES,
  ...ACCESS,
  ...AGENT,
  ...CLUSTER,
  ...HA,
  ...HOST_FACTS,
  ...NODES,
  ...POOLS,
  ...QEMU,
  ...QEMU_FACTS,
  ...STORAGE,
  ...TASKS,
};
