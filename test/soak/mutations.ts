// SPDX-License-Identifier: Apache-2.0
// Ten mutations, each of which breaks one rule of the engine by replacing one of its ports. The soak must detect
// every one of them.
import { CLUSTER } from '../../src/fleet/testing/settings.ts';
import type { Lease } from '../../src/model/lease.ts';
import type { Machine } from '../../src/model/machine.ts';
import { formatMarker, readMarker } from '../../src/model/marker.ts';
import { NotFound, PvescalerError } from '../../src/ports/errors.ts';
import type { Hypervisor, VmConfig } from '../../src/ports/hypervisor.ts';
import type { Collection, Store, Versioned } from '../../src/ports/store.ts';

export interface Mutation {
  readonly store?: (store: Store) => Store;
  readonly hypervisor?: (hypervisor: Hypervisor) => Hypervisor;
  readonly lease?: (lease: Lease) => Lease;
}

/** A proxy that replaces some members; all others keep their own `this`. */
function override<T extends object>(original: T, changes: Partial<T>): T {
  return new Proxy(original, {
    get: (target, name) => {
      if (name in changes) return Reflect.get(changes, name) as unknown;
      const member: unknown = Reflect.get(target, name, target);
      return typeof member === 'function' ? (member.bind(target) as unknown) : member;
    },
  });
}

/** `creating` becomes durable only with the write after the call. */
function writeIntentAfterCall(store: Store): Store {
  const held = new Map<string, Versioned<Machine>>();
  const { machines } = store;
  const late: Collection<Machine> = override(machines, {
    replace: (seen, value, options) => {
      const isHeldBack = value.phase === 'creating' && value.task === undefined;
      const before = held.get(seen.key);
      held.delete(seen.key);
      if (!isHeldBack) return machines.replace(before ?? seen, value, options);
      held.set(seen.key, before ?? { ...seen, value });
      return Promise.resolve({ ...seen, value });
    },
  });
  return override(store, { machines: late });
}

/** The store checks neither the lease token nor the version of a write: the last write wins. */
function dropWriteFence(store: Store): Store {
  const open = <T>(collection: Collection<T>): Collection<T> =>
    override(collection, {
      create: (key, value) => collection.create(key, value),
      replace: async (seen, value) =>
        collection.replace((await collection.get(seen.key)) ?? seen, value),
      remove: (seen) => collection.remove(seen),
    });
  return override(store, {
    machines: open(store.machines),
    intents: open(store.intents),
    pools: open(store.pools),
    addresses: open(store.addresses),
  });
}

/** The VM id and the cluster in a marker are not checked, so copies count as owned. */
function acceptAnyMarker(hypervisor: Hypervisor): Hypervisor {
  const forged = (config: VmConfig): VmConfig => {
    const reading = readMarker(config.description);
    if (reading.kind !== 'marked') return config;
    const marker = { ...reading.marker, cluster: CLUSTER, vmId: config.vmId };
    return { ...config, description: formatMarker(marker), smbiosUuid: marker.machine };
  };
  return override(hypervisor, {
    vmConfig: async (vm, options) => forged(await hypervisor.vmConfig(vm, options)),
  });
}

/** Every task is reported as succeeded at once. */
function reportEveryTaskAsSucceeded(hypervisor: Hypervisor): Hypervisor {
  const done = { state: 'ended', succeeded: true, warnings: 0, message: 'OK' } as const;
  return override(hypervisor, { task: () => Promise.resolve(done) });
}

/** A VM that cannot be read counts as deleted. */
function treatErrorAsNotFound(hypervisor: Hypervisor): Hypervisor {
  return override(hypervisor, {
    vmConfig: (vm, options) =>
      hypervisor.vmConfig(vm, options).catch((error: unknown) => {
        if (!(error instanceof PvescalerError)) throw error;
        throw new NotFound('VM_NOT_FOUND', `VM ${vm.vmId} does not answer`);
      }),
  });
}

/** The view hides VMs that this process did not create, so nothing is adopted. */
function hideUnknownVms(hypervisor: Hypervisor): Hypervisor {
  const createdIds = new Set<number>();
  return override(hypervisor, {
    createVm: (order, options) =>
      hypervisor.createVm(order, options).finally(() => createdIds.add(order.vmId)),
    cloneVm: (order, options) =>
      hypervisor.cloneVm(order, options).finally(() => createdIds.add(order.vmId)),
    view: async (options) => {
      const view = await hypervisor.view(options);
      return {
        ...view,
        vms: view.vms.filter(({ vmId, isTemplate }) => isTemplate || createdIds.has(vmId)),
      };
    },
  });
}

/** After a lost response the creation is repeated with another VM id. */
function retryCreationWithNewId(hypervisor: Hypervisor): Hypervisor {
  const retryIfResponseLost = <T>(work: (shift: number) => Promise<T>): Promise<T> =>
    work(0).catch((error: unknown) => {
      const isLost = error instanceof PvescalerError && error.class === 'Unreachable';
      if (!isLost) throw error;
      return work(70);
    });
  return override(hypervisor, {
    createVm: (order, options) =>
      retryIfResponseLost((shift) =>
        hypervisor.createVm({ ...order, vmId: order.vmId + shift }, options),
      ),
    cloneVm: (order, options) =>
      retryIfResponseLost((shift) =>
        hypervisor.cloneVm({ ...order, vmId: order.vmId + shift }, options),
      ),
  });
}

/** Seeds are never deleted. */
function keepSeeds(hypervisor: Hypervisor): Hypervisor {
  return override(hypervisor, { deleteVolume: () => Promise.resolve() });
}

/** VMs are destroyed without the deletion mark in their description. */
function skipDeletionMark(hypervisor: Hypervisor): Hypervisor {
  return override(hypervisor, {
    setDescription: (vm, description, options) => {
      const isMark = / deleting=\d/.test(description);
      return isMark ? Promise.resolve() : hypervisor.setDescription(vm, description, options);
    },
  });
}

/** Released addresses stay in use. */
function keepAddresses(store: Store): Store {
  const { addresses } = store;
  const kept = override(addresses, {
    replace: (seen, { releasedAt: _forgotten, ...held }, options) =>
      addresses.replace(seen, held, options),
  });
  return override(store, { addresses: kept });
}

export const MUTATIONS: Readonly<Record<string, Mutation>> = {
  'the record is written after the call': { store: writeIntentAfterCall },
  'ownership is not checked': { hypervisor: acceptAnyMarker },
  'tasks are not followed': { hypervisor: reportEveryTaskAsSucceeded },
  'the lease is not fenced': {
    store: dropWriteFence,
    lease: (lease) => ({ ...lease, expiresAt: Number.MAX_SAFE_INTEGER }),
  },
  'a read error counts as a deleted VM': { hypervisor: treatErrorAsNotFound },
  'unknown VMs are not adopted': { hypervisor: hideUnknownVms },
  'a creation with a lost response is repeated': { hypervisor: retryCreationWithNewId },
  'seeds are not deleted': { hypervisor: keepSeeds },
  'deletion is not marked': { hypervisor: skipDeletionMark },
  'addresses are not released': { store: keepAddresses },
};
