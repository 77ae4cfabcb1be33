// SPDX-License-Identifier: Apache-2.0
// Ten ways to break the engine's rules from outside: each takes the place of one of its collaborators. The soak
// must notice every one of them.
import { CLUSTER } from '../../src/fleet/testing/settings.ts';
import type { Lease } from '../../src/model/lease.ts';
import type { Machine } from '../../src/model/machine.ts';
import { formatMarker, readMarker } from '../../src/model/marker.ts';
import { NotFound, PvescalerError } from '../../src/ports/errors.ts';
import type { Hypervisor, VmConfig } from '../../src/ports/hypervisor.ts';
import type { Collection, Store, Versioned } from '../../src/ports/store.ts';

export interface Sabotage {
  readonly store?: (store: Store) => Store;
  readonly hypervisor?: (hypervisor: Hypervisor) => Hypervisor;
  readonly lease?: (lease: Lease) => Lease;
}

/** The same, but for these members; the others keep their own `this`. */
function but<T extends object>(original: T, changes: Partial<T>): T {
  return new Proxy(original, {
    get: (target, name) => {
      if (name in changes) return Reflect.get(changes, name) as unknown;
      const member: unknown = Reflect.get(target, name, target);
      return typeof member === 'function' ? (member.bind(target) as unknown) : member;
    },
  });
}

/** `creating` becomes durable only with the write after the call. */
function intentAfterCall(store: Store): Store {
  const held = new Map<string, Versioned<Machine>>();
  const { machines } = store;
  const late: Collection<Machine> = but(machines, {
    replace: (seen, value, options) => {
      const isHeldBack = value.phase === 'creating' && value.task === undefined;
      const before = held.get(seen.key);
      held.delete(seen.key);
      if (!isHeldBack) return machines.replace(before ?? seen, value, options);
      held.set(seen.key, before ?? { ...seen, value });
      return Promise.resolve({ ...seen, value });
    },
  });
  return but(store, { machines: late });
}

/** Nobody asks whose token a write carries, or what its writer has seen: the last one wins. */
function unfenced(store: Store): Store {
  const open = <T>(collection: Collection<T>): Collection<T> =>
    but(collection, {
      create: (key, value) => collection.create(key, value),
      replace: async (seen, value) =>
        collection.replace((await collection.get(seen.key)) ?? seen, value),
      remove: (seen) => collection.remove(seen),
    });
  return but(store, {
    machines: open(store.machines),
    intents: open(store.intents),
    pools: open(store.pools),
    addresses: open(store.addresses),
  });
}

/** Copies pass for originals: the id and the cluster in the marker are not looked at. */
function anyMarkerIsOurs(hypervisor: Hypervisor): Hypervisor {
  const forged = (config: VmConfig): VmConfig => {
    const reading = readMarker(config.description);
    if (reading.kind !== 'marked') return config;
    const marker = { ...reading.marker, cluster: CLUSTER, vmId: config.vmId };
    return { ...config, description: formatMarker(marker), smbiosUuid: marker.machine };
  };
  return but(hypervisor, {
    vmConfig: async (vm, options) => forged(await hypervisor.vmConfig(vm, options)),
  });
}

/** A task has ended well as soon as somebody asks. */
function taskIgnored(hypervisor: Hypervisor): Hypervisor {
  const done = { state: 'ended', succeeded: true, warnings: 0, message: 'OK' } as const;
  return but(hypervisor, { task: () => Promise.resolve(done) });
}

/** What cannot be read is taken for gone. */
function silenceMeansGone(hypervisor: Hypervisor): Hypervisor {
  return but(hypervisor, {
    vmConfig: (vm, options) =>
      hypervisor.vmConfig(vm, options).catch((error: unknown) => {
        if (!(error instanceof PvescalerError)) throw error;
        throw new NotFound('VM_NOT_FOUND', `VM ${vm.vmId} does not answer`);
      }),
  });
}

/** VMs are known from the records alone: nothing is adopted. */
function neverAdopts(hypervisor: Hypervisor): Hypervisor {
  const made = new Set<number>();
  return but(hypervisor, {
    createVm: (order, options) =>
      hypervisor.createVm(order, options).finally(() => made.add(order.vmId)),
    cloneVm: (order, options) =>
      hypervisor.cloneVm(order, options).finally(() => made.add(order.vmId)),
    view: async (options) => {
      const view = await hypervisor.view(options);
      return {
        ...view,
        vms: view.vms.filter(({ vmId, isTemplate }) => isTemplate || made.has(vmId)),
      };
    },
  });
}

/** A lost answer to a creation is answered by another creation, with another id. */
function blindRetry(hypervisor: Hypervisor): Hypervisor {
  const again = <T>(work: (shift: number) => Promise<T>): Promise<T> =>
    work(0).catch((error: unknown) => {
      const isLost = error instanceof PvescalerError && error.class === 'Unreachable';
      if (!isLost) throw error;
      return work(70);
    });
  return but(hypervisor, {
    createVm: (order, options) =>
      again((shift) => hypervisor.createVm({ ...order, vmId: order.vmId + shift }, options)),
    cloneVm: (order, options) =>
      again((shift) => hypervisor.cloneVm({ ...order, vmId: order.vmId + shift }, options)),
  });
}

/** Seeds stay where they are. */
function seedsStay(hypervisor: Hypervisor): Hypervisor {
  return but(hypervisor, { deleteVolume: () => Promise.resolve() });
}

/** VMs are destroyed without a word on them that they are being deleted. */
function unmarkedDeletion(hypervisor: Hypervisor): Hypervisor {
  return but(hypervisor, {
    setDescription: (vm, description, options) => {
      const isMark = / deleting=\d/.test(description);
      return isMark ? Promise.resolve() : hypervisor.setDescription(vm, description, options);
    },
  });
}

/** An address that is given back is still held. */
function addressesStay(store: Store): Store {
  const { addresses } = store;
  const kept = but(addresses, {
    replace: (seen, { releasedAt: _forgotten, ...held }, options) =>
      addresses.replace(seen, held, options),
  });
  return but(store, { addresses: kept });
}

export const SABOTAGES: Readonly<Record<string, Sabotage>> = {
  'the intent is written after the call': { store: intentAfterCall },
  'ownership is not checked': { hypervisor: anyMarkerIsOurs },
  'tasks are not followed': { hypervisor: taskIgnored },
  'the lease is not fenced': {
    store: unfenced,
    lease: (lease) => ({ ...lease, expiresAt: Number.MAX_SAFE_INTEGER }),
  },
  'silence means gone': { hypervisor: silenceMeansGone },
  'nothing is adopted': { hypervisor: neverAdopts },
  'a lost creation is done again blindly': { hypervisor: blindRetry },
  'seeds are left': { hypervisor: seedsStay },
  'deletion is not marked': { hypervisor: unmarkedDeletion },
  'addresses are never given back': { store: addressesStay },
};
