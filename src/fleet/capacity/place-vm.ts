// SPDX-License-Identifier: Apache-2.0
// Places hand-made VMs: over all hosts of all their regions, the one that the strategy prefers. A preferred host that is
// busy is waited for; otherwise the limits of concurrent creations would decide instead of the strategy.
import type { Machine } from '../../model/machine.ts';
import {
  chooseHost,
  comparePlaced,
  HostAllocations,
  type Placed,
  type Reservation,
} from '../../placement/index.ts';
import type { ReconcileContext } from '../context/reconcile-context.ts';
import type { PoolSettings } from '../context/settings.ts';
import { refusedVmIds, takenInView } from '../context/taken.ts';
import { unknownVmReason } from '../context/unknown-vms.ts';
import { addressesBeside } from './addresses.ts';
import type { PlacementRefusal } from './capacity-forecast.ts';
import { together } from './headroom.ts';
import {
  ConcurrencyLimits,
  CREATION_PHASES,
  commitPlacement,
  type Decided,
  describeHosts,
  nameIn,
  onRequiredHost,
  type PlacementScope,
  placementFacts,
  placementRequest,
  sourceOf,
  unreadTemplate,
  vmIdIn,
} from './place.ts';
import { findUnreadHosts } from './storage-space.ts';

/** Undefined when it has been placed. */
export async function placeVm(
  context: ReconcileContext,
  machine: Machine,
  pool: PoolSettings,
): Promise<PlacementRefusal | undefined> {
  const message = unknownVmReason(context, machine, pool);
  const decided =
    message === undefined
      ? decideVm(context, machine, { pool })
      : { code: 'VIEW_STALE' as const, message };
  if (!('code' in decided)) {
    await commitPlacement(context, machine, decided);
    return undefined;
  }
  await context.recordOnce(machine.id, {
    kind: 'refused',
    subject: { pool: machine.pool, machine: machine.id },
    reason: decided.code,
    message: decided.message,
  });
  return decided;
}

/** Machines that are planned and not recorded. */
export class PlannedVms {
  readonly #decided: Decided[] = [];
  readonly #held = new Map<string, { allocations: HostAllocations; reservations: Reservation[] }>();

  add({ id, pool, size }: Machine, decided: Decided): void {
    this.#decided.push(decided);
    const { region } = decided.where.view;
    const held = this.#held.get(region) ?? { allocations: new HostAllocations(), reservations: [] };
    this.#held.set(region, held);
    const reservation = {
      vmId: decided.vmId,
      pool,
      host: decided.host.host,
      cpus: size.cpu,
      memoryBytes: size.memoryBytes,
      storage: decided.host.storage,
      pendingDiskBytes: size.diskBytes,
    };
    held.allocations.setReservation(id, reservation);
    held.reservations.push(reservation);
  }

  hasVmId(region: string, vmId: number): boolean {
    return this.#decided.some((one) => one.where.view.region === region && one.vmId === vmId);
  }

  hasName(name: string): boolean {
    return this.#decided.some((one) => one.name === name);
  }

  heldIn(region: string) {
    return this.#held.get(region);
  }
}

/** Where the VM would be created now; nothing is written. */
export function decideVm(
  context: ReconcileContext,
  machine: Machine,
  { pool, planned }: { readonly pool: PoolSettings; readonly planned?: PlannedVms },
): Decided | PlacementRefusal {
  const { refusal, offers } = offersOf(context, machine, { pool, planned });
  let refused = refusal;
  for (const offer of offers) {
    if (planned === undefined && isBusy(context, offer)) {
      const { host } = offer.host;
      const message = `host ${host} is preferred, but already runs its maximum number of concurrent creations`;
      return { code: 'HOSTS_BUSY', message };
    }
    const decided = completeOffer(context, machine, { ...offer, planned });
    if (!('code' in decided)) return decided;
    refused = decided;
  }
  return refused ?? { code: 'HOST_NOT_FOUND', message: noRegionMessage(machine) };
}

interface Offer {
  readonly where: PlacementScope;
  readonly host: Placed;
}

interface Planning {
  readonly planned: PlannedVms | undefined;
}

/** The best host of each region, the preferred one first. */
function offersOf(
  context: ReconcileContext,
  machine: Machine,
  { pool, planned }: Planning & { readonly pool: PoolSettings },
): { readonly refusal: PlacementRefusal | undefined; readonly offers: readonly Offer[] } {
  let refusal: PlacementRefusal | undefined;
  const offers: Offer[] = [];
  for (const name of regionsFor(machine, pool)) {
    const view = context.views.get(name);
    if (view === undefined) {
      refusal ??= { code: 'VIEW_STALE', message: `region ${name} cannot be read` };
      continue;
    }
    const where = { region: context.region(name), view, pool };
    const found = unreadTemplate(context, where) ?? chooseIn(context, machine, { where, planned });
    if ('code' in found) refusal = found;
    else offers.push({ where, host: found });
  }
  const { strategy } = pool.placement;
  return { refusal, offers: offers.toSorted((a, b) => comparePlaced(strategy, a.host, b.host)) };
}

function regionsFor({ requiredHost }: Machine, { regions }: PoolSettings): readonly string[] {
  return requiredHost === undefined
    ? regions
    : regions.filter((name) => name === requiredHost.region);
}

function noRegionMessage({ requiredHost }: Machine): string {
  return requiredHost === undefined
    ? 'the config has no region'
    : `the request allows no region ${requiredHost.region}`;
}

function chooseIn(
  context: ReconcileContext,
  machine: Machine,
  { where, planned }: Planning & { readonly where: PlacementScope },
): Placed | PlacementRefusal {
  const { view } = where;
  const source = sourceOf(context, where);
  const request = onRequiredHost(placementRequest({ ...where, source }, machine.size), machine);
  const unreadHosts = findUnreadHosts(context, view);
  const facts = placementFacts(context, { view, busyHosts: [], unreadHosts });
  const held = planned?.heldIn(view.region);
  const decision = chooseHost(request, held === undefined ? facts : together(facts, held));
  return decision.placed ? decision : { code: decision.code, message: describeHosts(decision) };
}

function isBusy(context: ReconcileContext, { where: { region, view }, host }: Offer): boolean {
  const { createsPerHost: perHost, createsPerStorage: perStorage } = region.limits;
  const inProgress = context.records.index.inPhase(...CREATION_PHASES);
  const limits = new ConcurrencyLimits(view, inProgress, { perHost, perStorage });
  return limits.isHostBusy(host.host) || limits.isStorageBusy(host.host, host.storage);
}

/** Adds VM id, addresses and name to a host. */
function completeOffer(
  context: ReconcileContext,
  machine: Machine,
  { where, host, planned }: Offer & Planning,
): Decided | PlacementRefusal {
  const id = vmIdFor(context, machine, { where, host, planned });
  if (!id.chosen) return id;
  const addresses = addressesBeside(context, where, { machine: machine.id, held: [] });
  if (!addresses.chosen) return addresses;
  const { template } = machine.vm ?? {};
  if (template !== undefined) {
    const name = context.settings.vms.templates[template.name]?.name ?? template.name;
    return { where, host, vmId: id.vmId, addresses: addresses.addresses, name };
  }
  const name = nameIn(context, [...context.views.values()], {
    pool: where.pool,
    machine: machine.id,
    isPlanned: (one) => planned?.hasName(one) === true,
  });
  return { where, host, vmId: id.vmId, addresses: addresses.addresses, name };
}

function vmIdFor(
  context: ReconcileContext,
  { vm }: Machine,
  { where: { view }, host, planned }: Planning & Offer,
) {
  const { region } = view;
  const isPlanned = (vmId: number) => planned?.hasVmId(region, vmId) === true;
  const isTaken = (vmId: number) =>
    takenInView(view).vmIds.has(vmId) ||
    refusedVmIds(context, region).has(vmId) ||
    context.records.index.isVmClaimed(region, vmId);
  if (vm?.template !== undefined) {
    let vmId = templateId(context, vm.template.name, host.host);
    while (isTaken(vmId) || isPlanned(vmId)) vmId += 1;
    return { chosen: true as const, vmId };
  }
  const vmId = vm?.vmId;
  if (vmId === undefined) return vmIdIn(context, view, isPlanned);
  if (!isTaken(vmId)) return { chosen: true as const, vmId };
  const message = `VM id ${vmId} is taken in region ${region}`;
  return { chosen: false as const, code: 'VM_ID_TAKEN', message };
}

/** Ids of templates begin here, unless the config says otherwise. A new version gets the next free one. */
const FIRST_TEMPLATE_ID = 9_000;

function templateId({ settings }: ReconcileContext, name: string, host: string): number {
  const { id, idByHost } = settings.vms.templates[name] ?? {};
  return idByHost?.[host] ?? id ?? FIRST_TEMPLATE_ID;
}
