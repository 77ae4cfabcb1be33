// SPDX-License-Identifier: Apache-2.0
// Mutations, each of which breaks one rule of the engine by replacing one of its ports or settings. The soak must detect
// every one of them.
import { VMID_LABEL } from '../../src/bootstrap/index.ts';
import type { FleetSettings } from '../../src/fleet/index.ts';
import type { Lease } from '../../src/model/lease.ts';
import type { Machine } from '../../src/model/machine.ts';
import { formatMarker, type Marker, readMarker } from '../../src/model/marker.ts';
import type { Cluster } from '../../src/ports/cluster.ts';
import { NotFound, PvescalerError } from '../../src/ports/errors.ts';
import type { Hypervisor, VmConfig } from '../../src/ports/hypervisor.ts';
import { type Collection, DEFER_MS, type Store, type Versioned } from '../../src/ports/store.ts';
import { override } from './override.ts';

/** Whose port is replaced. */
interface PortOwner {
  /** Id of the installation. */
  readonly installation: string;
  /** The connections to all regions, unchanged. */
  readonly regions: ReadonlyMap<string, Hypervisor>;
  readonly region: string;
}

export interface Mutation {
  readonly store?: (store: Store) => Store;
  readonly hypervisor?: (hypervisor: Hypervisor, owner: PortOwner) => Hypervisor;
  readonly cluster?: (cluster: Cluster) => Cluster;
  readonly settings?: (settings: FleetSettings) => FleetSettings;
  readonly lease?: (lease: Lease) => Lease;
  /** Earlier seeds are known not to detect it. */
  readonly firstSeed?: number;
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
  });
}

/** The VM id and the cluster in a marker are not checked, so copies count as owned. */
function acceptAnyMarker(hypervisor: Hypervisor, { installation }: PortOwner): Hypervisor {
  return changeMarkers(hypervisor, (marker, { vmId }) => ({
    ...marker,
    cluster: installation,
    vmId,
  }));
}

/** VMs of other installations count as owned. */
function acceptAnyInstallation(hypervisor: Hypervisor, { installation }: PortOwner): Hypervisor {
  return changeMarkers(hypervisor, (marker) => ({ ...marker, cluster: installation }));
}

function changeMarkers(
  hypervisor: Hypervisor,
  change: (marker: Marker, config: VmConfig) => Marker,
): Hypervisor {
  const forged = (config: VmConfig): VmConfig => {
    const reading = readMarker(config.description);
    if (reading.kind !== 'marked') return config;
    const marker = change(reading.marker, config);
    return { ...config, description: formatMarker(marker), smbiosUuid: marker.machine };
  };
  return override(hypervisor, {
    vmConfig: async (vm, options) => forged(await hypervisor.vmConfig(vm, options)),
  });
}

/** VMs whose marker names another region count as owned. */
function acceptAnyRegion(hypervisor: Hypervisor, { region }: PortOwner): Hypervisor {
  return changeMarkers(hypervisor, (marker) => ({ ...marker, region }));
}

/** Every region is seen as the first one. */
function viewFirstRegion(hypervisor: Hypervisor, { regions, region }: PortOwner): Hypervisor {
  const [first = hypervisor] = regions.values();
  return override(hypervisor, {
    view: async (options) => ({ ...(await first.view(options)), region }),
  });
}

/** Seeds of other installations count as owned. */
function acceptAnySeed(hypervisor: Hypervisor, { installation }: PortOwner): Hypervisor {
  const own = `pvescaler_${installation}_`;
  return override(hypervisor, {
    volumes: async (...args) => {
      const volumes = await hypervisor.volumes(...args);
      return volumes.map((volume) => ({
        ...volume,
        name: volume.name.replace(/^pvescaler_[^_]+_/, own),
      }));
    },
  });
}

/** Nodes are never deleted. */
function keepNodes(cluster: Cluster): Cluster {
  return override(cluster, { deleteNode: () => Promise.resolve() });
}

/** Every Node counts as a Node of a machine. */
function acceptAnyNode(cluster: Cluster): Cluster {
  const labels = { [VMID_LABEL]: '1250', 'autoscaler.proxmox/group': 'workers' };
  return override(cluster, {
    view: async () => {
      const view = await cluster.view();
      return {
        ...view,
        nodes: view.nodes.map((node) => ({ ...node, labels: { ...labels, ...node.labels } })),
      };
    },
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

/** The addresses of a machine are free as soon as it is gone. */
function skipCoolDown(store: Store): Store {
  const { machines } = store;
  const forgetful = override(machines, {
    replace: (seen, value, options) => {
      const { phase, placement } = value;
      const isOver = placement !== undefined && (phase === 'gone' || phase === 'failed');
      const released = isOver ? { ...value, placement: { ...placement, addresses: [] } } : value;
      return machines.replace(seen, released, options);
    },
  });
  return override(store, { machines: forgetful });
}

/** A new driver decides by its copy, however old it is. */
function skipSynchronize(store: Store): Store {
  return override(store, { synchronize: () => Promise.resolve() });
}

/** Every change of a machine is deferred. */
function deferEverything(store: Store): Store {
  const { machines } = store;
  const deferred = override(machines, {
    replace: (seen, value, options) =>
      machines.replace(seen, value, { ...options, deferMs: DEFER_MS }),
  });
  return override(store, { machines: deferred });
}

export const MUTATIONS: Readonly<Record<string, Mutation>> = {
  'the record is written after the call': { store: writeIntentAfterCall },
  'ownership is not checked': { hypervisor: acceptAnyMarker },
  'tasks are not followed': { hypervisor: reportEveryTaskAsSucceeded },
  'the lease is not fenced': {
    store: dropWriteFence,
    lease: (lease) => ({ ...lease, expiresAt: Number.MAX_SAFE_INTEGER }),
    firstSeed: 9,
  },
  'a read error counts as a deleted VM': { hypervisor: treatErrorAsNotFound, firstSeed: 10 },
  'unknown VMs are not adopted': { hypervisor: hideUnknownVms },
  'a creation with a lost response is repeated': {
    hypervisor: retryCreationWithNewId,
    firstSeed: 9,
  },
  'seeds are not deleted': { hypervisor: keepSeeds },
  'deletion is not marked': { hypervisor: skipDeletionMark },
  'addresses have no cool-down': { store: skipCoolDown, firstSeed: 4 },
  'VMs of other installations count as owned': { hypervisor: acceptAnyInstallation },
  'VMs of other regions count as owned': { hypervisor: acceptAnyRegion },
  'seeds of other installations count as owned': { hypervisor: acceptAnySeed },
  'every region is seen as the first one': { hypervisor: viewFirstRegion },
  'Nodes are not deleted': { cluster: keepNodes },
  'every Node counts as owned': { cluster: acceptAnyNode },
  'any number of machines may be deleted as lost': {
    firstSeed: 7,
    settings: (settings) => ({
      ...settings,
      guards: { maxTotalUnreadyPercentage: 100, okTotalUnreadyCount: 100 },
    }),
  },
  'a new driver does not synchronize': { store: skipSynchronize, firstSeed: 6 },
  'every change of a machine is deferred': { store: deferEverything, firstSeed: 5 },
  'a missing Node counts as lost at once': {
    firstSeed: 10,
    settings: (settings) => ({ ...settings, nodeLostAfterMs: 0 }),
  },
};
