// SPDX-License-Identifier: Apache-2.0
// Pools: names for sets of VMs and storages.
import { failure } from '../api-error.ts';
import type { Call, Handlers } from '../core.ts';
import { splitList } from '../schema/formats.ts';
import type { Pool } from '../world/model.ts';
import { storageFigures } from './node-stats.ts';
import { inUserFile } from './user-file.ts';

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
  return inUserFile(call, 'create pool failed', () => {
    const parent = id.includes('/') ? id.slice(0, id.lastIndexOf('/')) : undefined;
    if (call.world.pools.has(id)) throw failure(`pool '${id}' already exists`);
    if (parent !== undefined && !call.world.pools.has(parent)) {
      throw failure(`parent '${parent}' of pool '${id}' does not exist`);
    }
    const comment = call.optional('comment');
    call.world.pools.set(id, {
      comment: comment === '' ? undefined : comment,
      vms: new Set(),
      storages: new Set(),
    });
    return null;
  });
}

function changeVm(call: Call, pool: Pool, id: number): void {
  call.require({
    path: `/vms/${id}`,
    privileges: ['Permissions.Modify', 'VM.Allocate'],
    any: true,
  });
  if (call.flag('delete')) {
    if (!pool.vms.delete(id)) throw failure(`VM ${id} is not a pool member`);
    return;
  }
  const other = call.world.poolOf(id);
  if (pool.vms.has(id)) throw failure(`VM ${id} is already a pool member`);
  if (other !== undefined && !call.flag('allow-move')) {
    throw failure(`VM ${id} belongs already to pool '${other}' and 'allow-move' is not set`);
  }
  if (other !== undefined) call.world.pools.get(other)?.vms.delete(id);
  pool.vms.add(id);
}

function changeStorage(call: Call, pool: Pool, id: string): void {
  call.require({
    path: `/storage/${id}`,
    privileges: ['Permissions.Modify', 'Datastore.Allocate'],
    any: true,
  });
  if (call.flag('delete')) {
    if (!pool.storages.delete(id)) throw failure(`Storage '${id}' is not a pool member`);
    return;
  }
  if (pool.storages.has(id)) throw failure(`Storage '${id}' is already a pool member`);
  pool.storages.add(id);
}

/** All or nothing: the file is written when every member has passed. */
function updatePool(call: Call): null {
  return inUserFile(call, 'update pools failed', () => {
    const pool = poolOf(call);
    const before = [...call.world.pools].map(
      ([id, { comment, vms, storages }]) =>
        [id, { comment, vms: new Set(vms), storages: new Set(storages) }] as const,
    );
    try {
      if (call.optional('comment') !== undefined) pool.comment = call.optional('comment');
      for (const id of splitList(call.text('vms'))) changeVm(call, pool, Number(id));
      for (const id of splitList(call.text('storage'))) changeStorage(call, pool, id);
    } catch (error) {
      for (const [id, old] of before) call.world.pools.set(id, old);
      throw error;
    }
    return null;
  });
}

function deletePool(call: Call): null {
  const id = call.text('poolid');
  return inUserFile(call, 'delete pool failed', () => {
    const pool = poolOf(call);
    const child = [...call.world.pools.keys()].find((name) => name.startsWith(`${id}/`));
    if (child !== undefined) throw failure(`pool '${id}' is not empty (contains pool '${child}')`);
    const vm = [...pool.vms].find((known) => call.world.guestHost(known) !== undefined);
    if (vm !== undefined) throw failure(`pool '${id}' is not empty (contains VM ${vm})`);
    const storage = [...pool.storages].find((known) => call.world.storages.has(known));
    if (storage !== undefined) {
      throw failure(`pool '${id}' is not empty (contains storage '${storage}')`);
    }
    call.world.pools.delete(id);
    call.world.acl = call.world.acl.filter((entry) => entry.path !== `/pool/${id}`);
    return null;
  });
}

export const POOLS: Handlers = {
  'GET /pools': listPools,
  'POST /pools': createPool,
  'PUT /pools': updatePool,
  'DELETE /pools': deletePool,
  'GET /pools/{poolid}': showPool,
  'PUT /pools/{poolid}': updatePool,
  'DELETE /pools/{poolid}': deletePool,
};
