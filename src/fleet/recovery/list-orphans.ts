// SPDX-License-Identifier: Apache-2.0
// Lists what has lost its counterpart, both ways: on Proxmox without a record, in the records without a VM.

import { type Machine, mayHaveVm } from '../../model/machine.ts';
import { verifyOwnership } from '../../model/marker.ts';
import { describeGroup } from '../../model/role.ts';
import { PvescalerError, Unreachable } from '../../ports/errors.ts';
import type { RegionView, VmConfig, VmSummary } from '../../ports/hypervisor.ts';
import { readCluster } from '../context/cluster-reading.ts';
import { DriverState } from '../context/driver-state.ts';
import { isMachineError, isVmGone } from '../context/machine-error.ts';
import type { FleetOptions } from '../context/options.ts';
import { ReconcileContext } from '../context/reconcile-context.ts';
import { readRegionViews } from '../context/region-views.ts';
import { deleteCommand, removedPools } from '../context/removed-pools.ts';
import { withoutSameRegions } from '../context/same-proxmox.ts';
import { orphanedNodesIn } from '../nodes/orphaned-nodes.ts';
import type { RecordCache } from '../records/record-cache.ts';
import { Records } from '../records/records.ts';
import { candidates, leftAloneReason, machineWithUuid, ownershipOf } from './adopt.ts';
import { orphanSeeds } from './cleanup.ts';

export interface Orphan {
  readonly kind:
    | 'vm-without-record'
    | 'half-made-vm'
    | 'damaged-marker'
    | 'vm-left-alone'
    | 'record-without-vm'
    | 'machine-without-pool'
    | 'seed-without-machine'
    | 'node-without-vm';
  readonly region: string;
  /** A VM id, a volume, a machine id or a Node name. */
  readonly what: string;
  readonly message: string;
  /** Whether the driver fixes it without a person. */
  readonly fixable: boolean;
  /** The commands of which a person chooses one. */
  readonly commands?: readonly string[];
}

const NO_LEASE = { name: 'none', holder: 'none', token: 0, expiresAt: 0 };

export async function listOrphans(
  options: FleetOptions,
  cache: RecordCache,
): Promise<readonly Orphan[]> {
  const context = await readContext(options, cache);
  const found: Orphan[] = [];
  for (const view of context.views.values()) {
    found.push(...(await orphanVms(context, view)));
    found.push(...(await recordsWithoutVm(context, view)));
    for (const { region, volume, machine } of await orphanSeeds(context, view)) {
      const message = `seed of machine ${machine}, which is over or unknown`;
      found.push({ kind: 'seed-without-machine', region, what: volume, message, fixable: true });
    }
  }
  return [...found, ...machinesWithoutPool(context), ...orphanNodes(context)];
}

function machinesWithoutPool({ records, settings }: ReconcileContext): readonly Orphan[] {
  const left = removedPools(records.machines, settings.pools).flatMap(({ machines }) => machines);
  return left.map((machine): Orphan => {
    const { id, pool, phase, placement } = machine;
    const vm = placement === undefined ? '' : `, VM ${placement.vmId} on ${placement.host}`;
    return {
      kind: 'machine-without-pool',
      region: placement?.region ?? '',
      what: placement?.name ?? id,
      message: `${phase}${vm}; its pool ${pool} is not in the config`,
      fixable: false,
      commands: [deleteCommand(machine)],
    };
  });
}

interface ReadContext {
  /** For reading only: it holds no lease. */
  readonly context: ReconcileContext;
  /** Errors of regions that cannot be read. */
  readonly unread: ReadonlyMap<string, PvescalerError>;
}

/** Throws the error of a region that cannot be read. */
export async function readContext(
  options: FleetOptions,
  cache: RecordCache,
): Promise<ReconcileContext> {
  const { context, unread } = await readWhatIsReadable(options, cache);
  const [first] = unread.values();
  if (first !== undefined) throw first;
  return context;
}

export async function readWhatIsReadable(
  options: FleetOptions,
  cache: RecordCache,
  state = new DriverState(),
): Promise<ReadContext> {
  const { store, clock } = options;
  const read = await readRegionViews(options);
  const { views, stale, errors } = await withoutSameRegions(options, read, new Map());
  const unread = new Map(
    Object.entries(stale).map(([region, why]) => [
      region,
      errors[region] ?? new Unreachable('VIEW_STALE', `region ${region} cannot be read: ${why}`),
    ]),
  );
  const records = await Records.open(cache, NO_LEASE, () => clock.now());
  const authority = { lease: NO_LEASE, mayAct: () => false };
  const clusterReading = await readCluster(options, state);
  const { journal } = store;
  const context = new ReconcileContext({
    ...options,
    journal,
    records,
    authority,
    state,
    views,
    clusterReading,
  });
  return { context, unread };
}

/** Reads every VM: one that has lost its marker and its tags is known by its SMBIOS UUID alone. */
async function orphanVms(context: ReconcileContext, view: RegionView): Promise<readonly Orphan[]> {
  const isCandidate = new Set(candidates(context, view));
  const found = view.vms
    .filter(({ isTemplate }) => !isTemplate)
    .map(async (vm) => {
      const config = await configOrError(context, view.region, vm);
      if (config instanceof PvescalerError) {
        const mayBeOurs = isCandidate.has(vm) && !isVmGone(config);
        return mayBeOurs ? [unreadableVm(view.region, vm, config)] : [];
      }
      return (isCandidate.has(vm) ? orphanVm : unprovenVm)(context, view.region, config);
    });
  return (await Promise.all(found)).flat();
}

async function configOrError(context: ReconcileContext, region: string, vm: VmSummary) {
  try {
    return await context.hypervisor(region).vmConfig(vm, context.readOptions);
  } catch (error) {
    if (isMachineError(error)) return error;
    throw error;
  }
}

function unreadableVm(region: string, { vmId }: VmSummary, error: PvescalerError): Orphan {
  const message = `it may be a machine, but cannot be read: ${error.message}`;
  return { kind: 'vm-left-alone', region, what: `VM ${vmId}`, message, fixable: false };
}

/** The VM of a live machine whose marker was removed, or a VM known by its SMBIOS UUID or a pool's tag. */
function unprovenVm(
  context: ReconcileContext,
  region: string,
  config: VmConfig,
): readonly Orphan[] {
  const machine = machineWithUuid(context, config);
  if (config.isBeingCreated) return [];
  const message =
    machine !== undefined && isVmOf(machine, region, config)
      ? lostMarkerReason(context, machine, config)
      : leftAloneReason(context, region, config)?.message;
  return message === undefined ? [] : [unsettled('vm-left-alone', { region, config, message })];
}

export function isVmOf(
  { phase, placement }: Machine,
  region: string,
  { vmId }: Pick<VmConfig, 'vmId'>,
): boolean {
  return placement?.region === region && placement.vmId === vmId && mayHaveVm(phase);
}

function lostMarkerReason(
  { settings }: ReconcileContext,
  { id, phase, placement }: Machine,
  config: VmConfig,
): string | undefined {
  const owner = { cluster: settings.cluster, region: placement?.region ?? '' };
  const ownership = verifyOwnership({ ...config, configured: true }, owner);
  if (ownership.owned) return undefined;
  return `it was made for machine ${id} (${phase}), which can neither change nor delete it: ${ownership.reason}`;
}

/** A person has to decide whose it is. */
function unsettled(
  kind: 'vm-left-alone' | 'damaged-marker',
  vm: { readonly region: string; readonly config: VmConfig; readonly message: string },
): Orphan {
  const { region, config, message } = vm;
  const commands = ['adopt', 'forget'].map((verb) => `pvescaler orphans ${verb} ${config.vmId}`);
  return { kind, region, what: `VM ${config.vmId}`, message, fixable: false, commands };
}

function orphanVm(context: ReconcileContext, region: string, config: VmConfig): readonly Orphan[] {
  const what = `VM ${config.vmId}`;
  if (config.isBeingCreated) {
    const message = `locked (${config.lock ?? ''}) and unnamed on ${config.host}: being created, or left by a task that died`;
    return [{ kind: 'half-made-vm', region, what, message, fixable: false }];
  }
  const leftAlone = leftAloneReason(context, region, config);
  if (leftAlone !== undefined) {
    const kind = leftAlone.reason === 'MarkerDamaged' ? 'damaged-marker' : 'vm-left-alone';
    return [unsettled(kind, { region, config, message: leftAlone.message })];
  }
  const ownership = ownershipOf(context, region, config);
  if (!ownership.owned) return [];
  const { pool, machine } = ownership.marker;
  const message = `machine ${machine} of ${describeGroup(pool)} on ${config.host} has no record`;
  return [{ kind: 'vm-without-record', region, what, message, fixable: true }];
}

const PHASES_WITH_VM: readonly Machine['phase'][] = [
  'configuring',
  'starting',
  'booting',
  'joining',
  'ready',
  'draining',
];

async function recordsWithoutVm(
  context: ReconcileContext,
  view: RegionView,
): Promise<readonly Orphan[]> {
  const seen = new Set(view.vms.map(({ vmId }) => vmId));
  const unseen = context.records.machines.filter(
    ({ phase, placement }) =>
      placement?.region === view.region &&
      PHASES_WITH_VM.includes(phase) &&
      !seen.has(placement.vmId),
  );
  // The records are newer than the view: a VM that is not in it may have been created since.
  const lost = await Promise.all(
    unseen.map(async (machine) => ((await isGone(context, machine)) ? [machine] : [])),
  );
  return lost.flat().flatMap(({ id, phase, placement }): readonly Orphan[] => {
    if (placement === undefined) return [];
    const message = `${placement.name} is ${phase}, but VM ${placement.vmId} is gone`;
    return [{ kind: 'record-without-vm', region: view.region, what: id, message, fixable: true }];
  });
}

async function isGone(context: ReconcileContext, { placement }: Machine): Promise<boolean> {
  if (placement === undefined) return false;
  try {
    await context.hypervisor(placement.region).vmConfig(placement, context.readOptions);
    return false;
  } catch (error) {
    return isVmGone(error);
  }
}

/** Skipped while the cluster cannot be read; the rest is listed all the same. */
function orphanNodes(context: ReconcileContext): readonly Orphan[] {
  if (context.clusterReading.kind !== 'fresh') return [];
  return orphanedNodesIn(context, context.clusterReading.view.nodes).map(
    ({ node, region, vmId }) => {
      const message = `node ${node.name} is not ready, and VM ${vmId} is gone`;
      return { kind: 'node-without-vm', region, what: node.name, message, fixable: true } as const;
    },
  );
}
