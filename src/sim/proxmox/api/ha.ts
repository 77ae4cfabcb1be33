// SPDX-License-Identifier: Apache-2.0
// HA resources: the VMs that the HA manager controls. Its start and stop requests are in `api/qemu.ts`.
import { serverError } from '../api-error.ts';
import { type Call, type Handlers, requireQuorum } from '../core.ts';
import type { HaResource } from '../state/model.ts';

function formatHaResource(resource: HaResource): Record<string, unknown> {
  return {
    sid: resource.sid,
    type: resource.sid.split(':')[0],
    state: resource.state,
    digest: 'da39a3ee5e6b4b0d3255bfef95601890afd80709',
    ...(resource.group === undefined ? {} : { group: resource.group }),
    ...(resource.comment === undefined ? {} : { comment: resource.comment }),
  };
}

/** A bare id (`100`) means the VM or container with that id. */
function readSid(call: Call): string {
  const text = call.text('sid');
  if (text.includes(':')) return text;
  return `${call.state.containers.has(Number(text)) ? 'ct' : 'vm'}:${text}`;
}

function requireHaResource(call: Call, action = ''): HaResource {
  const resource = call.state.ha.get(readSid(call));
  if (resource === undefined) throw serverError(`${action}no such resource '${readSid(call)}'`);
  return resource;
}

/** A resource in state `ignored` is not managed. */
export function findHaResource(call: Call, id: number): HaResource | undefined {
  const resource = call.state.ha.get(`vm:${id}`) ?? call.state.ha.get(`ct:${id}`);
  return resource?.state === 'ignored' ? undefined : resource;
}

function requireManagedResource(call: Call): HaResource {
  const sid = readSid(call);
  const resource = call.state.ha.get(sid);
  if (resource === undefined || resource.state === 'ignored') {
    throw serverError(`resource '${sid}' is not HA managed`);
  }
  return resource;
}

/** Changes need the cluster-wide HA lock, which needs quorum. */
function requireDomainLock(call: Call, action: string): void {
  if (!call.state.quorate) throw serverError(`${action}: cfs-lock 'domain-ha' error: no quorum!`);
}

function addResource(call: Call): null {
  requireQuorum(call.core);
  const sid = readSid(call);
  const id = sid.split(':')[1] ?? '';
  if (call.state.findGuest(Number(id)) === undefined) {
    throw serverError(`resource '${id}' does not exist in cluster`);
  }
  if (call.state.ha.has(sid)) {
    throw serverError(`create resource failed: resource ID '${sid}' already defined`);
  }
  call.state.ha.set(sid, {
    sid,
    state: call.optional('state') ?? 'started',
    group: call.optional('group'),
    comment: call.optional('comment'),
  });
  return null;
}

function updateResource(call: Call): null {
  const group = call.optional('group');
  if (group !== undefined) throw serverError(`HA group '${group}' does not exist`);
  requireDomainLock(call, 'update resource failed');
  const resource = requireHaResource(call, 'update resource failed: ');
  resource.state = call.optional('state') ?? resource.state;
  resource.comment = call.optional('comment') ?? resource.comment;
  return null;
}

function removeResource(call: Call): null {
  const resource = requireManagedResource(call);
  requireDomainLock(call, 'delete resource failed');
  call.state.ha.delete(resource.sid);
  return null;
}

function refuseGroup(call: Call): null {
  if (call.state.version === '9.2') {
    throw serverError('cannot create group: ha groups have been migrated to rules');
  }
  throw serverError('HA groups are not simulated');
}

function haStatus(call: Call): unknown {
  const { state } = call;
  const services = [...state.ha.values()].map((resource) => {
    const node = state.findGuest(Number(resource.sid.split(':')[1]))?.host ?? '';
    return {
      id: `service:${resource.sid}`,
      type: 'service',
      sid: resource.sid,
      node,
      state: resource.state,
      request_state: resource.state,
      crm_state: resource.state,
      status: `${resource.sid} (${node}, ${resource.state})`,
    };
  });
  const quorum = {
    id: 'quorum',
    type: 'quorum',
    node: call.host,
    status: state.quorate ? 'OK' : 'No quorum on this node!',
    quorate: state.quorate ? 1 : 0,
  };
  return [quorum, ...services];
}

function requestMove(call: Call): null {
  requireManagedResource(call);
  return null;
}

export const HA_HANDLERS: Handlers = {
  'GET /cluster/ha': () => ['status', 'resources', 'groups', 'rules'].map((id) => ({ id })),
  'GET /cluster/ha/resources': (call) => [...call.state.ha.values()].map(formatHaResource),
  'POST /cluster/ha/resources': addResource,
  'GET /cluster/ha/resources/{sid}': (call) => formatHaResource(requireHaResource(call)),
  'PUT /cluster/ha/resources/{sid}': updateResource,
  'DELETE /cluster/ha/resources/{sid}': removeResource,
  'POST /cluster/ha/resources/{sid}/migrate': requestMove,
  'POST /cluster/ha/resources/{sid}/relocate': requestMove,
  'GET /cluster/ha/groups': () => [],
  'POST /cluster/ha/groups': refuseGroup,
  'GET /cluster/ha/rules': () => [],
  'GET /cluster/ha/status': () => ['current', 'manager_status'].map((name) => ({ name })),
  'GET /cluster/ha/status/current': haStatus,
};
