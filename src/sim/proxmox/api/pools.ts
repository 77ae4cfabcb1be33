// SPDX-License-Identifier: Apache-2.0
// /pools: resource pools of VMs and storages.
import { serverError } from '../api-error.ts';
import type { Call, Handlers } from '../core.ts';
import { splitList } from '../schema/formats.ts';
import type { Pool } from '../state/model.ts';
import { storageUsage } from './node-stats.ts';
import { changeUserConfig } from './user-config.ts';

function requirePool(call: Call): Pool {
  const id = call.text('poolid');
  const pool = call.state.pools.get(id);
  if (pool === undefined) throw serverError(`pool '${id}' does not exist`);
  return pool;
}

function listMembers(call: Call, pool: Pool): unknown[] {
  const vms = [...pool.vms].flatMap((id) => {
    const vm = call.state.vms.get(id);
    if (vm === undefined) return [];
    const broadcast = call.state.lastBroadcast(vm);
    return [
      {
        id: `qemu/${id}`,
        type: 'qemu',
        vmid: id,
        node: vm.host,
        status: broadcast?.status ?? 'unknown',
        ...(broadcast === undefined
          ? {}
          : { name: broadcast.name, maxmem: broadcast.memory, maxcpu: broadcast.cpus }),
      },
    ];
  });
  const storages = [...pool.storages].flatMap((id) => {
    const storage = call.state.storages.get(id);
    if (storage === undefined) return [];
    const { total, used } = storageUsage(storage, call.host);
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
  const pool = requirePool(call);
  return {
    poolid: call.text('poolid'),
    ...(pool.comment === undefined ? {} : { comment: pool.comment }),
    members: listMembers(call, pool),
  };
}

function listPools(call: Call): unknown {
  const only = call.optional('poolid');
  if (only !== undefined) {
    call.require({ path: `/pool/${only}`, privileges: ['Pool.Audit'] });
    return [showPool(call)];
  }
  return [...call.state.pools]
    .filter(([id]) => call.isAllowed({ path: `/pool/${id}`, privileges: ['Pool.Audit'] }))
    .map(([poolid, { comment }]) => ({ poolid, ...(comment === undefined ? {} : { comment }) }));
}

function createPool(call: Call): null {
  const id = call.text('poolid');
  return changeUserConfig(call, 'create pool failed', () => {
    const parent = id.includes('/') ? id.slice(0, id.lastIndexOf('/')) : undefined;
    if (call.state.pools.has(id)) throw serverError(`pool '${id}' already exists`);
    if (parent !== undefined && !call.state.pools.has(parent)) {
      throw serverError(`parent '${parent}' of pool '${id}' does not exist`);
    }
    const comment = call.optional('comment');
    call.state.pools.set(id, {
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
    if (!pool.vms.delete(id)) throw serverError(`VM ${id} is not a pool member`);
    return;
  }
  const other = call.state.findPool(id);
  if (pool.vms.has(id)) throw serverError(`VM ${id} is already a pool member`);
  if (other !== undefined && !call.flag('allow-move')) {
    throw serverError(`VM ${id} belongs already to pool '${other}' and 'allow-move' is not set`);
  }
  if (other !== undefined) call.state.pools.get(other)?.vms.delete(id);
  pool.vms.add(id);
}

function changeStorage(call: Call, pool: Pool, id: string): void {
  call.require({
    path: `/storage/${id}`,
    privileges: ['Permissions.Modify', 'Datastore.Allocate'],
    any: true,
  });
  if (call.flag('delete')) {
    if (!pool.storages.delete(id)) throw serverError(`Storage '${id}' is not a pool member`);
    return;
  }
  if (pool.storages.has(id)) throw serverError(`Storage '${id}' is already a pool member`);
  pool.storages.add(id);
}

/** Atomic: an error on one member reverts the whole change. */
function updatePool(call: Call): null {
  return changeUserConfig(call, 'update pools failed', () => {
    const pool = requirePool(call);
    const before = [...call.state.pools].map(
      ([id, { comment, vms, storages }]) =>
        [id, { comment, vms: new Set(vms), storages: new Set(storages) }] as const,
    );
    try {
      if (call.optional('comment') !== undefined) pool.comment = call.optional('comment');
      for (const id of splitList(call.text('vms'))) changeVm(call, pool, Number(id));
      for (const id of splitList(call.text('storage'))) changeStorage(call, pool, id);
    } catch (error) {
      for (const [id, old] of before) call.state.pools.set(id, old);
      throw error;
    }
    return null;
  });
}

function deletePool(call: Call): null {
  const id = call.text('poolid');
  return changeUserConfig(call, 'delete pool failed', () => {
    const pool = requirePool(call);
    const child = [...call.state.pools.keys()].find((name) => name.startsWith(`${id}/`));
    if (child !== undefined)
      throw serverError(`pool '${id}' is not empty (contains pool '${child}')`);
    const vm = [...pool.vms].find((known) => call.state.findGuest(known) !== undefined);
    if (vm !== undefined) throw serverError(`pool '${id}' is not empty (contains VM ${vm})`);
    const storage = [...pool.storages].find((known) => call.state.storages.has(known));
    if (storage !== undefined) {
      throw serverError(`pool '${id}' is not empty (contains storage '${storage}')`);
    }
    call.state.pools.delete(id);
    call.state.acl = call.state.acl.filter((entry) => entry.path !== `/pool/${id}`);
    return null;
  });
}

export const POOL_HANDLERS: Handlers = {
  'GET /pools': listPools,
  'POST /pools': createPool,
  'PUT /pools': updatePool,
  'DELETE /pools': deletePool,
  'GET /pools/{poolid}': showPool,
  'PUT /pools/{poolid}': updatePool,
  'DELETE /pools/{poolid}': deletePool,
};
