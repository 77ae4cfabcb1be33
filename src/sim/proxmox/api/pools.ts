// SPDX-License-Identifier: Apache-2.0
// Pools and managed resources.
import { failure } from '../api-error.ts';
import type { Call, Handlers } from '../core.ts';
import { splitList } from '../schema/formats.ts';
import type { HaResource, Pool } from '../world/model.ts';
import { storageFigures } from './node-stats.ts';

function poolOf(call: Call): Pool {
  const id = call.text('poolid');
  const pool = call.world.pools.get(id);
  if (pool === undefined) throw failure(`pool '${id}' does not exist`);
  return pool;
}

function members(call: Call, pool: Pool): unknown[] {
  const vms = [...pool.vms].flatMap((id) => {
    const vm = call.world.vms.get(id);
    if (vm === undefined) return [];
    const seen = call.world.overview(vm);
    return [
      {
        id: `qemu/${id}`,
        type: 'qemu',
        vmid: id,
        node: vm.host,
        status: seen?.status ?? 'unknown',
        ...(seen === undefined ? {} : { name: seen.name, maxmem: seen.memory, maxcpu: seen.cpus }),
      },
    ];
  });
  const storages = [...pool.storages].flatMap((id) => {
    const storage = call.world.storages.get(id);
    if (storage === undefined) return [];
    const { total, used } = storageFigures(storage, call.host);
    return [
      {
        id: `storage/${call.host}/${id}`,
        type: 'storage',
        storage: id,
        node: call.host,
        maxdisk: total,
        disk: used,
        status: 'available',
      },
    ];
  });
  const type = call.optional('type');
  return [
    ...(type === 'storage' ? [] : vms),
    ...(type === 'qemu' || type === 'lxc' ? [] : storages),
  ];
}

function showPool(call: Call): Record<string, unknown> {
  const pool = poolOf(call);
  return {
    ...(pool.comment === undefined ? {} : { comment: pool.comment }),
    members: members(call, pool),
  };
}

function listPools(call: Call): unknown {
  const only = call.optional('poolid');
  if (only !== undefined) {
    call.require({ path: `/pool/${only}`, privileges: ['Pool.Audit'] });
    return [{ poolid: only, ...showPool(call) }];
  }
  return [...call.world.pools]
    .filter(([id]) => call.may({ path: `/pool/${id}`, privileges: ['Pool.Audit'] }))
    .map(([poolid, { comment }]) => ({ poolid, ...(comment === undefined ? {} : { comment }) }));
}

function createPool(call: Call): null {
  const id = call.text('poolid');
  if (call.world.pools.has(id)) throw failure(`create pool failed: pool '${id}' already exists`);
  call.world.pools.set(id, {
    comment: call.optional('comment'),
    vms: new Set(),
    storages: new Set(),
  });
  call.world.accessVersion += 1;
  return null;
}

function changeVms(call: Call, pool: Pool, remove: boolean): void {
  for (const text of splitList(call.text('vms'))) {
    const id = Number(text);
    call.require({
      path: `/vms/${id}`,
      privileges: ['Permissions.Modify', 'VM.Allocate'],
      any: true,
    });
    if (remove) {
      if (!pool.vms.delete(id)) throw failure(`VM ${id} is not a pool member`);
      continue;
    }
    const other = call.world.poolOf(id);
    if (pool.vms.has(id)) throw failure(`VM ${id} is already a pool member`);
    if (other !== undefined && !call.flag('allow-move')) {
      throw failure(`VM ${id} belongs already to pool '${other}' and 'allow-move' is not set`);
    }
    if (other !== undefined) call.world.pools.get(other)?.vms.delete(id);
    pool.vms.add(id);
  }
}

function updatePool(call: Call): null {
  const pool = poolOf(call);
  const remove = call.flag('delete');
  if (call.optional('comment') !== undefined) pool.comment = call.optional('comment');
  changeVms(call, pool, remove);
  for (const id of splitList(call.text('storage'))) {
    call.require({
      path: `/storage/${id}`,
      privileges: ['Permissions.Modify', 'Datastore.Allocate'],
      any: true,
    });
    if (remove) pool.storages.delete(id);
    else pool.storages.add(id);
  }
  call.world.accessVersion += 1;
  return null;
}

function deletePool(call: Call): null {
  const pool = poolOf(call);
  const id = call.text('poolid');
  const [vm] = pool.vms;
  if (vm !== undefined)
    throw failure(`delete pool failed: pool '${id}' is not empty (contains VM ${vm})`);
  const [storage] = pool.storages;
  if (storage !== undefined) {
    throw failure(`delete pool failed: pool '${id}' is not empty (contains storage '${storage}')`);
  }
  call.world.pools.delete(id);
  call.world.accessVersion += 1;
  return null;
}

function showHa(resource: HaResource): Record<string, unknown> {
  return {
    sid: resource.sid,
    type: resource.sid.split(':')[0],
    state: resource.state,
    digest: 'da39a3ee5e6b4b0d3255bfef95601890afd80709',
    ...(resource.group === undefined ? {} : { group: resource.group }),
    ...(resource.comment === undefined ? {} : { comment: resource.comment }),
  };
}

function sidOf(call: Call): string {
  const text = call.text('sid');
  return text.includes(':') ? text : `vm:${text}`;
}

function haOf(call: Call): HaResource {
  const resource = call.world.ha.get(sidOf(call));
  if (resource === undefined) throw failure(`no such resource '${sidOf(call)}'`);
  return resource;
}

function addHa(call: Call): null {
  const sid = sidOf(call);
  if (call.world.ha.has(sid)) throw failure(`resource ID '${sid}' already defined`);
  if (!call.world.vms.has(Number(sid.split(':')[1]))) {
    throw failure(`unable to add resource '${sid}' - VM does not exist`);
  }
  call.world.ha.set(sid, {
    sid,
    state: call.optional('state') ?? 'started',
    group: call.optional('group'),
    comment: call.optional('comment'),
  });
  return null;
}

function updateHa(call: Call): null {
  const resource = haOf(call);
  resource.state = call.optional('state') ?? resource.state;
  resource.comment = call.optional('comment') ?? resource.comment;
  return null;
}

function haGroupsGone(call: Call): null {
  if (call.world.version === '9.2') {
    throw failure('cannot create group: ha groups have been migrated to rules');
  }
  throw failure('HA groups are not simulated');
}

export const POOLS: Handlers = {
  'GET /pools': listPools,
  'POST /pools': createPool,
  'PUT /pools': updatePool,
  'DELETE /pools': deletePool,
  'GET /pools/{poolid}': showPool,
  'PUT /pools/{poolid}': updatePool,
  'DELETE /pools/{poolid}': deletePool,
  'GET /cluster/ha': () => ['status', 'resources', 'groups'].map((id) => ({ id })),
  'GET /cluster/ha/resources': (call) => [...call.world.ha.values()].map(showHa),
  'POST /cluster/ha/resources': addHa,
  'GET /cluster/ha/resources/{sid}': (call) => showHa(haOf(call)),
  'PUT /cluster/ha/resources/{sid}': updateHa,
  'DELETE /cluster/ha/resources/{sid}': (call) => {
    call.world.ha.delete(haOf(call).sid);
    return null;
  },
  'GET /cluster/ha/groups': () => [],
  'POST /cluster/ha/groups': haGroupsGone,
  'GET /cluster/ha/rules': () => [],
};
