// SPDX-License-Identifier: Apache-2.0
// requested → placed: chooses host, storage, VM id, name and addresses, one machine after the other, so that each sees
// what the one before reserved. Creates nothing. A machine without a place stays requested, with the reason recorded.
import { formatCount } from '../../model/format-text.ts';
import type { Host, HostStorage } from '../../model/host.ts';
import type { Machine, MachineId, MachineSize, Phase, Placement } from '../../model/machine.ts';
import {
  chooseHost,
  chooseVmId,
  DISK_PENDING_PHASES,
  type HostDecision,
  highestTakenVmId,
  type NotPlaced,
  nextFreeVmId,
  type Placed,
  type PlacementRequest,
  pickFreeName,
  type RefusalReason,
  type RegionFacts,
  reservationsOf,
  type Source,
  type VmIdChoice,
} from '../../placement/index.ts';
import type { RegionView } from '../../ports/hypervisor.ts';
import { knownNodes } from '../context/cluster-reading.ts';
import type { ReconcileContext } from '../context/reconcile-context.ts';
import { isStorageShared } from '../context/region-views.ts';
import type { PoolSettings, RegionSettings } from '../context/settings.ts';
import {
  namesOfNodes,
  providerIdsOf,
  refusedVmIds,
  takenInView,
  vmIdsOfNodes,
} from '../context/taken.ts';
import { unknownVmReason } from '../context/unknown-vms.ts';
import { joinRefusal } from '../nodes/can-join.ts';
import { addressesFor } from './addresses.ts';
import type { PlacementRefusal } from './capacity-forecast.ts';
import { findUnreadHosts, hostsWithSpace } from './storage-space.ts';
import { findUnreadTemplate, templatesIn } from './templates.ts';

export interface PlacementScope {
  readonly region: RegionSettings;
  readonly view: RegionView;
  readonly pool: PoolSettings;
}

/** Undefined when it has been placed. */
export async function place(
  context: ReconcileContext,
  machine: Machine,
  pool: PoolSettings,
): Promise<PlacementRefusal | undefined> {
  let refused = joinRefusal(context, pool) ?? unknownVmRefusal(context, machine, pool);
  const regions = pool.regions.filter(
    (name) => machine.requiredHost === undefined || machine.requiredHost.region === name,
  );
  for (const name of refused === undefined ? regions : []) {
    const view = context.views.get(name);
    if (view === undefined) {
      refused ??= { code: 'VIEW_STALE', message: `region ${name} cannot be read` };
      continue;
    }
    const outcome = await placeIn(context, machine, { region: context.region(name), view, pool });
    if (outcome === undefined) return undefined;
    refused = outcome;
  }
  const { code, message } = refused ?? {
    code: 'HOST_NOT_FOUND',
    message:
      machine.requiredHost === undefined
        ? 'the pool has no region'
        : `the pool has no region ${machine.requiredHost.region}`,
  };
  await context.recordOnce(machine.id, {
    kind: 'refused',
    subject: { pool: machine.pool, machine: machine.id },
    reason: code,
    message,
  });
  return { code, message };
}

function unknownVmRefusal(
  context: ReconcileContext,
  machine: Machine,
  pool: PoolSettings,
): PlacementRefusal | undefined {
  const message = unknownVmReason(context, machine, pool);
  return message === undefined ? undefined : { code: 'VIEW_STALE', message };
}

/** Undefined when it has been placed. */
async function placeIn(
  context: ReconcileContext,
  machine: Machine,
  where: PlacementScope,
): Promise<PlacementRefusal | undefined> {
  const unread = unreadTemplate(context, where);
  if (unread !== undefined) return unread;
  const source = sourceOf(context, where);
  const host = choose(context, machine, { ...where, source });
  if (!host.placed) return { code: host.code, message: describeHosts(host) };
  const id = vmIdIn(context, where.view);
  if (!id.chosen) return id;
  const addresses = addressesFor(context, where, machine.id);
  if (!addresses.chosen) return addresses;
  await commitPlacement(context, machine, {
    where,
    host,
    vmId: id.vmId,
    addresses: addresses.addresses,
    name: nameIn(context, [where.view], { pool: where.pool, machine: machine.id }),
  });
  return undefined;
}

const MAX_NAMED_HOSTS = 4;
const EXCLUDED: readonly RefusalReason[] = ['HostNotAllowed', 'HostDenied'];

/** The reason nearest to a placement, then one of each other host. Hosts that the config excludes hide no other reason. */
export function describeHosts({ message, refusals }: NotPlaced): string {
  const usable = refusals.filter(({ reason }) => !EXCLUDED.includes(reason));
  const shown = usable.length > 0 ? usable : refusals;
  const nearest = shown.find((refusal) => refusal.message === message) ?? shown[0];
  const byHost = Map.groupBy(
    shown.filter(({ host }) => host !== nearest?.host),
    ({ host }) => host,
  );
  const others = Array.from(byHost.values(), ([first]) => first?.message ?? '');
  const named = [nearest?.message ?? message, ...others].slice(0, MAX_NAMED_HOSTS);
  const more = others.length + 1 - named.length;
  return `${named.join('; ')}${more === 0 ? '' : `; and ${formatCount(more, 'more host')}`}`;
}

export interface Decided {
  readonly where: PlacementScope;
  readonly host: Placed;
  readonly vmId: number;
  readonly addresses: readonly string[];
  readonly name: string;
}

/** Nothing exists yet: a placement that a crash loses costs nothing. */
export async function commitPlacement(
  context: ReconcileContext,
  machine: Machine,
  decided: Decided,
): Promise<void> {
  const { where, host, vmId, addresses, name } = decided;
  const region = where.region.name;
  const placement: Placement = {
    region,
    host: host.host,
    vmId,
    name,
    diskStorage: host.storage,
    addresses,
    hasRegionInMarker: true,
  };
  await context.records.move(machine.id, 'placed', { placement, placedAt: context.now });
  context.state.recorded.delete(machine.id);
  context.state.noSpaceErrors.delete(machine.id);
  await context.record({
    kind: 'did',
    subject: { pool: machine.pool, machine: machine.id, host: host.host, region },
    reason: 'MachinePlaced',
    message: `placed ${placement.name} as VM ${vmId}: ${host.message}`,
    numbers: { ...host.numbers, vmId },
  });
}

/** Chooses a host with capacity whose storage is below its creation limit. */
function choose(
  context: ReconcileContext,
  machine: Machine,
  { region, view, pool, source }: PlacementScope & { readonly source: Source },
): HostDecision {
  const { createsPerHost: perHost, createsPerStorage: perStorage } = region.limits;
  const unreadHosts = findUnreadHosts(context, view);
  const inProgress = context.records.index.inPhase(...CREATION_PHASES);
  const limits = new ConcurrencyLimits(view, inProgress, { perHost, perStorage });
  const busy = [...limits.busyHosts()];
  for (;;) {
    const decision = chooseHost(
      onRequiredHost(placementRequest({ region, view, pool, source }, machine.size), machine),
      placementFacts(context, { view, busyHosts: busy, unreadHosts }),
    );
    if (!decision.placed || !limits.isStorageBusy(decision.host, decision.storage)) {
      return decision;
    }
    busy.push(decision.host);
  }
}

/** The hosts that the config refuses stay refused. */
export function onRequiredHost(
  request: PlacementRequest,
  { requiredHost }: Pick<Machine, 'requiredHost'>,
): PlacementRequest {
  if (requiredHost === undefined) return request;
  const { allow, deny } = request.placement.hosts;
  const { host } = requiredHost;
  const hosts =
    allow.length === 0 || allow.includes(host)
      ? { allow: [host], deny }
      : { allow, deny: [...deny, ...allow] };
  return { ...request, placement: { ...request.placement, hosts } };
}

/** What a machine of that size needs from a host. */
export function placementRequest(
  { region, pool, source }: PlacementScope & { readonly source: Source },
  size: MachineSize,
): PlacementRequest {
  return {
    pool: pool.name,
    size: { ...size, memoryBytes: size.memoryBytes + pool.memoryOverheadBytes },
    source,
    storages: pool.disk.storage === undefined ? region.storage.disks : [pool.disk.storage],
    seedStorage: pool.seed === undefined ? undefined : region.storage.seeds,
    regionHosts: region.hosts,
    placement: pool.placement,
  };
}

export function unreadTemplate(
  context: ReconcileContext,
  { pool: { source }, view }: PlacementScope,
): PlacementRefusal | undefined {
  const vm = source.kind === 'template' ? findUnreadTemplate(context, view, source) : undefined;
  if (vm === undefined) return undefined;
  const message = `template VM ${vm.vmId} on host ${vm.host} cannot be read`;
  return { code: 'VIEW_STALE', message };
}

export function sourceOf(
  context: ReconcileContext,
  { pool, region, view }: PlacementScope,
): Source {
  const { source } = pool;
  switch (source.kind) {
    case 'image':
      return { kind: 'image', storage: region.storage.images };
    case 'template':
      return {
        kind: 'template',
        clone: source.clone,
        templates: templatesIn(context, view, source),
      };
    case 'netboot':
      return { kind: 'netboot' };
  }
}

/** What placement needs to know of a region: the view, and what our records reserve in addition. */
export function placementFacts(
  context: ReconcileContext,
  {
    view,
    ...limits
  }: { readonly view: RegionView } & Pick<RegionFacts, 'busyHosts' | 'unreadHosts'>,
): RegionFacts {
  const { index, usage } = context.records;
  return {
    hosts: withoutFullStorages(context, hostsWithSpace(context, view)),
    vms: [],
    reservations: reservationsOf(index.inPhase(...DISK_PENDING_PHASES), view.region),
    allocations: usage.allocationsOf(view),
    ...limits,
  };
}

// Storages on which a creation found no space. A region's view may show more free space than there is: reserved
// blocks, quotas, and what other creations are writing.

const FULL_FOR_MS = 5 * 60_000;

/** The machine is placed again, on another storage or host. */
export function markStorageFull(
  { state, clock, views }: ReconcileContext,
  { region, host, diskStorage }: Placement,
): void {
  const there = views.get(region)?.hosts.find(({ name }) => name === host);
  const shared = there?.storages.find(({ name }) => name === diskStorage)?.shared === true;
  const key = storageKey(region, host, { name: diskStorage, shared });
  state.fullStorages.set(key, clock.monotonic());
}

function storageKey(region: string, host: string, { name, shared }: StorageName): string {
  return shared ? `${region}/${name}` : `${region}/${host}/${name}`;
}

type StorageName = Pick<HostStorage, 'name' | 'shared'>;

function withoutFullStorages(
  { state: { fullStorages }, clock }: ReconcileContext,
  hosts: readonly Host[],
): readonly Host[] {
  for (const [key, since] of fullStorages) {
    if (clock.monotonic() - since > FULL_FOR_MS) fullStorages.delete(key);
  }
  if (fullStorages.size === 0) return hosts;
  return hosts.map((host) => ({
    ...host,
    storages: host.storages.map((storage) =>
      fullStorages.has(storageKey(host.region, host.name, storage))
        ? { ...storage, freeBytes: 0 }
        : storage,
    ),
  }));
}

// Chooses the VM id and the name of a machine that is being placed.

export function vmIdIn(
  context: ReconcileContext,
  view: RegionView,
  isPlanned: (vmId: number) => boolean = () => false,
): VmIdChoice {
  const { records, now, clusterReading } = context;
  const { region, takenVmIds } = view;
  const range = context.region(region).vmIds;
  const taken = takenInView(view).vmIds;
  const named = vmIdsOfNodes(knownNodes(clusterReading), region);
  const refused = refusedVmIds(context, region);
  const last = records.usage.lastVmId(region, range) ?? highestTakenVmId({ takenVmIds, range });
  const vmId = nextFreeVmId(
    { range, last },
    (id) =>
      taken.has(id) ||
      refused.has(id) ||
      named.has(id) ||
      isPlanned(id) ||
      records.index.isVmIdHeld(region, id, now),
  );
  if (vmId !== undefined) return { chosen: true, vmId };
  // Counting what holds the ids is only needed for the reason of the refusal.
  const nodeProviderIds = providerIdsOf(knownNodes(clusterReading), region);
  return chooseVmId({
    region,
    range,
    takenVmIds: [...takenVmIds, ...refused],
    machines: records.machines,
    nodeProviderIds,
    now,
  });
}

/** `views`: the regions in which no VM may have the name. */
export function nameIn(
  { records, clusterReading }: ReconcileContext,
  views: readonly RegionView[],
  {
    pool,
    machine,
    isPlanned = () => false,
  }: {
    readonly pool: PoolSettings;
    readonly machine: MachineId;
    readonly isPlanned?: (name: string) => boolean;
  },
): string {
  const taken = views.map((view) => takenInView(view).names);
  const ofNodes = namesOfNodes(knownNodes(clusterReading));
  return pickFreeName(
    { names: pool.names, machine },
    (name) =>
      taken.some((names) => names.has(name)) ||
      ofNodes.has(name) ||
      isPlanned(name) ||
      records.index.isNameHeld(name, machine),
  );
}

// Limits creations and deletions in progress per host and per storage: Proxmox locks a storage while it allocates or frees
// a disk, and ten clones at the same time end in lock timeouts.

export const CREATION_PHASES: readonly Phase[] = ['placed', 'creating'];

interface MaxConcurrent {
  readonly perHost: number;
  readonly perStorage: number;
}

/** A machine, or a VM without one, that is being created or destroyed. */
export interface InProgress {
  readonly placement?: Pick<Placement, 'region' | 'host' | 'diskStorage'>;
}

export class ConcurrencyLimits {
  readonly #max: MaxConcurrent;
  readonly #view: RegionView;
  readonly #machines: readonly InProgress[];

  /** `machines`: those that count. */
  constructor(view: RegionView, machines: readonly InProgress[], max: MaxConcurrent) {
    this.#max = max;
    this.#view = view;
    this.#machines = machines.filter(({ placement }) => placement?.region === view.region);
  }

  busyHosts(): readonly string[] {
    return this.#view.hosts.map(({ name }) => name).filter((host) => this.isHostBusy(host));
  }

  isStorageBusy(host: string, storage: string): boolean {
    const isShared = isStorageShared(this.#view, host, storage);
    const there = this.#machines.filter(
      ({ placement }) =>
        placement?.diskStorage === storage && (isShared || placement.host === host),
    );
    return there.length >= this.#max.perStorage;
  }

  isHostBusy(host: string): boolean {
    const there = this.#machines.filter(({ placement }) => placement?.host === host);
    return there.length >= this.#max.perHost;
  }
}
