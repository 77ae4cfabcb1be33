// SPDX-License-Identifier: Apache-2.0
// Lists what has lost its counterpart, both ways: on Proxmox without a record, in the records without a VM.

import type { Machine } from '../../model/machine.ts';
import { Unreachable } from '../../ports/errors.ts';
import type { RegionView, VmSummary } from '../../ports/hypervisor.ts';
import { readCluster } from '../context/cluster-reading.ts';
import { DriverState } from '../context/driver-state.ts';
import { isVmGone } from '../context/machine-error.ts';
import type { FleetOptions } from '../context/options.ts';
import { ReconcileContext } from '../context/reconcile-context.ts';
import { readRegionViews } from '../context/region-views.ts';
import { withoutSameRegions } from '../context/same-proxmox.ts';
import { orphanedNodesIn } from '../nodes/orphaned-nodes.ts';
import type { RecordCache } from '../records/record-cache.ts';
import { Records } from '../records/records.ts';
import { candidates, leftAloneReason, ownershipOf } from './adopt.ts';
import { isOrphanLease, orphanSeeds } from './cleanup.ts';

export interface Orphan {
  readonly kind:
    | 'vm-without-record'
    | 'half-made-vm'
    | 'damaged-marker'
    | 'vm-left-alone'
    | 'record-without-vm'
    | 'seed-without-machine'
    | 'address-without-machine'
    | 'node-without-vm';
  readonly region: string;
  /** A VM id, a volume, a machine id, an address or a Node name. */
  readonly what: string;
  readonly message: string;
  /** Whether the driver fixes it without a person. */
  readonly fixable: boolean;
}

const NO_LEASE = { name: 'none', holder: 'none', token: 0, expiresAt: 0 };

export async function listOrphans(
  options: FleetOptions,
  cache: RecordCache,
): Promise<readonly Orphan[]> {
  const { store, clock } = options;
  const read = await readRegionViews(options);
  const { views, stale } = await withoutSameRegions(options, read, new Map());
  const [unread] = Object.entries(stale);
  if (unread !== undefined) {
    throw new Unreachable('VIEW_STALE', `region ${unread[0]} cannot be read: ${unread[1]}`);
  }
  const records = await Records.open(cache, NO_LEASE, () => clock.now());
  const authority = { lease: NO_LEASE, mayAct: () => false };
  const state = new DriverState();
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
  const found: Orphan[] = [];
  for (const view of views.values()) {
    for (const vm of candidates(context, view))
      found.push(...(await orphanVm(context, view.region, vm)));
    found.push(...(await recordsWithoutVm(context, view)));
    for (const { region, volume, machine } of await orphanSeeds(context, view)) {
      const message = `seed of machine ${machine}, which is over or unknown`;
      found.push({ kind: 'seed-without-machine', region, what: volume, message, fixable: true });
    }
  }
  return [...found, ...orphanAddresses(context), ...orphanNodes(context)];
}

async function orphanVm(
  context: ReconcileContext,
  region: string,
  vm: VmSummary,
): Promise<readonly Orphan[]> {
  const config = await context.hypervisor(region).vmConfig(vm, context.readOptions);
  const what = `VM ${vm.vmId}`;
  if (config.isBeingCreated) {
    const message = `locked (${config.lock ?? ''}) and unnamed on ${config.host}: being created, or left by a task that died`;
    return [{ kind: 'half-made-vm', region, what, message, fixable: false }];
  }
  const leftAlone = leftAloneReason(context, region, config);
  if (leftAlone !== undefined) {
    const kind = leftAlone.reason === 'MarkerDamaged' ? 'damaged-marker' : 'vm-left-alone';
    return [{ kind, region, what, message: leftAlone.message, fixable: false }];
  }
  const ownership = ownershipOf(context, region, config);
  if (!ownership.owned) return [];
  const { pool, machine } = ownership.marker;
  const message = `machine ${machine} of pool ${pool} on ${config.host} has no record`;
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

function orphanAddresses(context: ReconcileContext): readonly Orphan[] {
  const orphaned = context.records.addresses.filter((lease) => isOrphanLease(context, lease));
  return orphaned.flatMap(({ address, region, machine }) => {
    const message = `leased to machine ${machine}, which is over or unknown`;
    return [
      { kind: 'address-without-machine', region, what: address, message, fixable: true } as const,
    ];
  });
}
