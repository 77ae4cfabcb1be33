// SPDX-License-Identifier: Apache-2.0
// /cluster: resources (delayed by the status broadcasts), status, next free id, recent tasks, datacenter options.
import { parameterError, serverError } from '../api-error.ts';
import type { Call, Handlers } from '../core.ts';
import { splitList } from '../schema/formats.ts';
import { formatScalar } from '../schema/verify.ts';
import type { Container, Storage, Vm } from '../state/model.ts';
import { isStorageAvailable } from '../storage/volumes.ts';
import { RECENT_TASK_COUNT } from '../tasks/engine.ts';
import { formatNode, isReportedOnline, storageUsage } from './node-stats.ts';
import { canSeeTask, formatTask } from './tasks.ts';

/** 9.x also reports `memhost`, the memory that the host spends on the guest. */
function formatLoad(
  call: Call,
  broadcast: { readonly status: string; readonly memory: number },
): Record<string, number> {
  const running = broadcast.status === 'running';
  const mem = running ? Math.floor(broadcast.memory * 0.6) : 0;
  const cpu = running ? 0.01 : 0;
  return call.state.version === '8.4' ? { cpu, mem } : { cpu, mem, memhost: mem };
}

function formatVmResource(call: Call, vm: Vm): Record<string, unknown> {
  const { state } = call;
  const broadcast = state.lastBroadcast(vm);
  const pool = state.findPool(vm.id);
  const { tags, lock } = vm.config;
  const ha = state.ha.get(`vm:${vm.id}`);
  const entry = {
    id: `qemu/${vm.id}`,
    type: 'qemu',
    vmid: vm.id,
    node: vm.host,
    ...(tags === undefined ? {} : { tags }),
    ...(lock === undefined ? {} : { lock }),
    ...(pool === undefined ? {} : { pool }),
    ...(ha === undefined ? {} : { hastate: ha.state }),
  };
  if (broadcast === undefined) return { ...entry, status: 'unknown' };
  const up = broadcast.startedAt === undefined ? 0 : state.clock.now() - broadcast.startedAt;
  return {
    ...entry,
    name: broadcast.name,
    status: broadcast.status,
    template: vm.config['template'] === '1' ? 1 : 0,
    maxcpu: broadcast.cpus,
    ...formatLoad(call, broadcast),
    maxmem: broadcast.memory,
    disk: 0,
    maxdisk: broadcast.disk,
    netin: 0,
    netout: 0,
    diskread: 0,
    diskwrite: 0,
    uptime: Math.floor(up / 1000),
  };
}

function formatContainerResource(call: Call, container: Container): Record<string, unknown> {
  const pool = call.state.findPool(container.id);
  return {
    id: `lxc/${container.id}`,
    type: 'lxc',
    vmid: container.id,
    node: container.host,
    name: container.name,
    status: container.running ? 'running' : 'stopped',
    template: 0,
    maxcpu: container.cpus,
    maxmem: container.memory,
    cpu: 0,
    mem: 0,
    disk: 0,
    maxdisk: 8 * 2 ** 30,
    uptime: 0,
    ...(pool === undefined ? {} : { pool }),
  };
}

function listGuestResources(call: Call): unknown[] {
  const canAudit = (id: number) => call.isAllowed({ path: `/vms/${id}`, privileges: ['VM.Audit'] });
  return [
    ...[...call.state.vms.values()]
      .filter(({ id }) => canAudit(id))
      .map((vm) => formatVmResource(call, vm)),
    ...[...call.state.containers.values()]
      .filter(({ id }) => canAudit(id))
      .map((container) => formatContainerResource(call, container)),
  ];
}

function listPoolResources(call: Call): unknown[] {
  return [...call.state.pools.keys()]
    .filter((id) => call.isAllowed({ path: `/pool/${id}`, privileges: ['Pool.Audit'] }))
    .map((id) => ({ id: `/pool/${id}`, type: 'pool', pool: id }));
}

function listNodeResources(call: Call): unknown[] {
  return [...call.state.hosts.values()].map((host) =>
    formatNode(
      call.core,
      host,
      call.isAllowed({ path: `/nodes/${host.name}`, privileges: ['Sys.Audit'] }),
    ),
  );
}

function formatStorageResource(
  call: Call,
  storage: Storage,
  hostName: string,
): Record<string, unknown> {
  const host = call.state.hosts.get(hostName);
  const online = host !== undefined && isReportedOnline(call.core, host);
  const { total, used } = storageUsage(storage, hostName);
  return {
    id: `storage/${hostName}/${storage.id}`,
    type: 'storage',
    storage: storage.id,
    node: hostName,
    plugintype: storage.type,
    shared: storage.shared ? 1 : 0,
    content: storage.content.join(','),
    status: online && storage.active ? 'available' : 'unknown',
    ...(online && storage.active ? { disk: used, maxdisk: total } : {}),
  };
}

function listStorageResources(call: Call): unknown[] {
  const rows: unknown[] = [];
  for (const storage of call.state.storages.values()) {
    if (!call.isAllowed({ path: `/storage/${storage.id}`, privileges: ['Datastore.Audit'] }))
      continue;
    for (const host of call.state.hosts.keys()) {
      if (isStorageAvailable(storage, host)) rows.push(formatStorageResource(call, storage, host));
    }
  }
  return rows;
}

function listSdnResources(call: Call): unknown[] {
  const path = '/sdn/zones/localnetwork';
  if (!call.isAllowed({ path, privileges: ['SDN.Audit', 'SDN.Use'], any: true })) return [];
  return [...call.state.hosts.keys()].map((node) =>
    call.state.version === '8.4'
      ? { id: `sdn/${node}/localnetwork`, type: 'sdn', sdn: 'localnetwork', node, status: 'ok' }
      : {
          id: `network/${node}/zone/localnetwork`,
          type: 'network',
          network: 'localnetwork',
          'network-type': 'zone',
          node,
          status: 'ok',
        },
  );
}

function listResources(call: Call): unknown {
  const type = call.optional('type');
  const includes = (name: string) => type === undefined || type === name;
  return [
    ...(type === undefined ? listPoolResources(call) : []),
    ...(includes('vm') ? listGuestResources(call) : []),
    ...(includes('node') ? listNodeResources(call) : []),
    ...(includes('storage') ? listStorageResources(call) : []),
    ...(includes('sdn') ? listSdnResources(call) : []),
  ];
}

function clusterStatus(call: Call): unknown {
  const { state } = call;
  const nodes = [...state.hosts.values()].map((host, index) => ({
    type: 'node',
    id: `node/${host.name}`,
    name: host.name,
    nodeid: state.clusterName === undefined ? 0 : index + 1,
    ip: host.address,
    online: isReportedOnline(call.core, host) ? 1 : 0,
    local: host.name === call.host ? 1 : 0,
    level: '',
  }));
  if (state.clusterName === undefined) return nodes;
  const cluster = {
    type: 'cluster',
    id: 'cluster',
    name: state.clusterName,
    version: state.hosts.size,
    nodes: state.hosts.size,
    quorate: state.quorate ? 1 : 0,
  };
  return [cluster, ...nodes];
}

function readNextIdRange(call: Call): readonly [number, number] {
  const text = call.state.datacenter['next-id'] ?? '';
  const lower = /(?:^|,)lower=(\d+)/.exec(text)?.[1] ?? '100';
  const upper = /(?:^|,)upper=(\d+)/.exec(text)?.[1] ?? '1000000';
  return [Number(lower), Number(upper)];
}

function findNextId(call: Call): string {
  const requestedId = call.optional('vmid');
  if (requestedId !== undefined) {
    if (call.state.findGuest(Number(requestedId)) === undefined) return requestedId;
    throw parameterError({ vmid: `VM ${requestedId} already exists` });
  }
  const [lower, upper] = readNextIdRange(call);
  for (let id = lower; id < upper; id += 1) {
    if (call.state.findGuest(id) === undefined) return String(id);
  }
  throw serverError(`unable to get any free VMID in range [${lower}, ${upper}]`);
}

function listRecentTasks(call: Call): unknown {
  const { core, state } = call;
  const all = call.isAllowed({ path: '/', privileges: ['Sys.Audit'] });
  const rows = [...state.hosts.keys()].flatMap((host) => [
    ...core.tasks.running(host),
    ...core.tasks.archive(host).slice(0, RECENT_TASK_COUNT),
  ]);
  return rows
    .filter((record) => all || canSeeTask(call, record.user))
    .toSorted((a, b) => b.startTime - a.startTime)
    .map((record) => ({ ...formatTask(record), saved: record.status === undefined ? '0' : '1' }));
}

/** GET returns property strings of datacenter.cfg as objects. */
function formatDatacenterOption(name: string, value: string): unknown {
  if (name === 'registered-tags') return splitList(value);
  if (!value.includes('=')) return value;
  const pairs = value.split(',').map((part) => part.split(/=(.*)/s).slice(0, 2));
  return Object.fromEntries(
    pairs.map(([key = '', text = '']) => [key, key.endsWith('-list') ? text.split(';') : text]),
  );
}

function getOptions(call: Call): unknown {
  const entries = Object.entries(call.state.datacenter);
  const shown = Object.fromEntries(
    entries.map(([name, value]) => [name, formatDatacenterOption(name, value)]),
  );
  // Without Sys.Audit, Proxmox returns only the options that its web interface needs.
  if (call.isAllowed({ path: '/', privileges: ['Sys.Audit'] })) return shown;
  return Object.fromEntries(
    Object.entries(shown).filter(([name]) =>
      ['console', 'tag-style', 'consent-text'].includes(name),
    ),
  );
}

function setOptions(call: Call): null {
  if (!call.state.quorate) throw serverError("cfs-lock 'file-datacenter_cfg' error: no quorum!");
  for (const [name, value] of Object.entries(call.params)) {
    if (name !== 'delete') call.state.datacenter[name] = formatScalar(value);
  }
  for (const name of splitList(call.text('delete'))) delete call.state.datacenter[name];
  return null;
}

export const CLUSTER_HANDLERS: Handlers = {
  'GET /cluster/resources': listResources,
  'GET /cluster/status': clusterStatus,
  'GET /cluster/nextid': findNextId,
  'GET /cluster/tasks': listRecentTasks,
  'GET /cluster/options': getOptions,
  'PUT /cluster/options': setOptions,
  'GET /cluster/log': () => [],
};
