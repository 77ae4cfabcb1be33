// SPDX-License-Identifier: Apache-2.0
// When many machines of a pool seem lost at once, the view of Proxmox or Kubernetes is more likely wrong than the
// machines are gone: then none of them is deleted until a person confirms it.
import type { Machine, MachineId } from '../../model/machine.ts';
import type { PoolState } from '../../model/pool.ts';
import type { ClusterNode } from '../../ports/cluster.ts';
import type { MachineReconcile } from '../context/machine-reconcile.ts';
import type { ReconcileContext } from '../context/reconcile-context.ts';
import { findNode, findOwnNode } from './find-node.ts';

/** For how long many lost machines are not counted again: each of them would count all of them. */
const COUNT_MS = 1_000;

/** Whether a machine whose VM is not in its region may be deleted. */
export async function mayDeleteWithoutVm(reconcile: MachineReconcile): Promise<boolean> {
  const { context, machine, placement } = reconcile;
  // Only Kubernetes knows whether the machine runs elsewhere.
  if (context.clusterReading.kind === 'stale' && machine.nodeName !== undefined) return false;
  const node = findOwnNode(reconcile);
  if (node?.ready !== true) return mayDeleteLost(reconcile);
  const { name, region, vmId } = placement;
  await context.recordOnce(`vm ${reconcile.id}`, {
    kind: 'refused',
    subject: { pool: machine.pool, machine: reconcile.id, node: node.name, region },
    reason: 'NodeWithoutVm',
    message: `${name} is not deleted: VM ${vmId} is not in region ${region}, but its Node ${node.name} is Ready. If the VM was moved to another region, move it back; otherwise delete the machine with 'pvescaler machine delete ${name}'`,
    numbers: { vmId },
  });
  return false;
}

/** Whether a machine that seems lost may be deleted now. `nodes` is a newer list than that of the context. */
export async function mayDeleteLost(
  { context, machine }: MachineReconcile,
  nodes = nodesOf(context),
): Promise<boolean> {
  return !(await areTooManyLost(context, machine.pool, nodes));
}

/** Removes the mark of a pool whose machines were held back, once few enough of them seem lost. */
export async function releaseHeldBack({ context, machine }: MachineReconcile): Promise<void> {
  const { records, state } = context;
  const { pool } = machine;
  if (records.pool(pool).lost === undefined || !isReadable(context, pool)) return;
  if (await areTooManyLost(context, pool, nodesOf(context))) return;
  state.recorded.delete(recordKey(pool));
  await records.changePool(pool, ({ lost, ...rest }) => (lost === undefined ? undefined : rest));
}

/** Marks the pool when there are too many. */
async function areTooManyLost(
  context: ReconcileContext,
  pool: string,
  nodes: readonly ClusterNode[] | undefined,
): Promise<boolean> {
  const { heldBackAt } = context.state;
  const now = context.clock.monotonic();
  if (now - (heldBackAt.get(pool) ?? Number.NEGATIVE_INFINITY) < COUNT_MS) return true;
  const lost = countLost(context, pool, nodes);
  if (!lost.isTooMany) return false;
  heldBackAt.set(pool, now);
  await holdBack(context, pool, lost);
  return true;
}

interface LostMachines {
  readonly count: number;
  readonly total: number;
  readonly isTooMany: boolean;
  /** Those that would be deleted: without the ones whose Node is Ready. */
  readonly machines: readonly MachineId[];
}

/** Counts by the views as they are now, however long a VM or Node has been missing. */
function countLost(
  context: ReconcileContext,
  pool: string,
  nodes: readonly ClusterNode[] | undefined,
): LostMachines {
  const { maxTotalUnreadyPercentage, okTotalUnreadyCount } = context.settings.guards;
  const ready = context.records.index.machinesOf(pool).filter(({ phase }) => phase === 'ready');
  const lost = ready.filter((machine) => seemsLost(context, machine, nodes));
  const percentage = (100 * lost.length) / ready.length;
  const isNodeReady = (machine: Machine) =>
    nodes !== undefined && findNode(machine, nodes, context.records.index)?.ready === true;
  return {
    count: lost.length,
    total: ready.length,
    isTooMany: lost.length > okTotalUnreadyCount && percentage > maxTotalUnreadyPercentage,
    machines: lost.filter((machine) => !isNodeReady(machine)).map(({ id }) => id),
  };
}

function seemsLost(
  context: ReconcileContext,
  machine: Machine,
  nodes: readonly ClusterNode[] | undefined,
): boolean {
  const { state, views, records } = context;
  const { id, placement, nodeName } = machine;
  if (state.missingSince.has(id) || state.nodeMissingSince.has(id)) return true;
  if (isStoppedForGood(context, machine)) return true;
  const isVmMissing =
    placement !== undefined &&
    views.has(placement.region) &&
    context.vmInView(placement) === undefined;
  if (isVmMissing) return true;
  if (nodes === undefined || nodeName === undefined) return false;
  const joins = context.pool(machine.pool)?.joins === true;
  return joins && findNode(machine, nodes, records.index) === undefined;
}

/** With another policy a stopped machine is not deleted. */
function isStoppedForGood(context: ReconcileContext, { id, pool }: Machine): boolean {
  return context.pool(pool)?.onStopped === 'replace' && context.state.stoppedSince.has(id);
}

async function holdBack(
  context: ReconcileContext,
  pool: string,
  { count, total, machines }: LostMachines,
): Promise<void> {
  await context.records.changePool(pool, (state) => withLost(state, machines, context.now));
  if (context.state.recorded.has(recordKey(pool))) return;
  await context.recordOnce(recordKey(pool), {
    kind: 'refused',
    subject: { pool },
    reason: 'LostMachinesHeld',
    message: `pool ${pool}: ${count} of ${total} machines seem lost, because their VM or Node is missing; none of them is deleted. Check Proxmox and Kubernetes; if the machines are really lost, run 'pvescaler pool confirm-lost ${pool}'`,
    numbers: { lost: count, machines: total },
  });
}

/** Undefined when nothing changes. */
function withLost(
  state: PoolState,
  machines: readonly MachineId[],
  now: number,
): PoolState | undefined {
  const before = state.lost;
  const known = new Set<string>(before?.machines);
  const isSame = known.size === machines.length && machines.every((id) => known.has(id));
  if (before !== undefined && isSame) return undefined;
  const isContinued = machines.some((id) => known.has(id));
  const since = before !== undefined && isContinued ? before.since : now;
  return { ...state, lost: { since, machines } };
}

/** A view that cannot be read shows nothing as missing. */
function isReadable({ clusterReading, views, settings }: ReconcileContext, pool: string): boolean {
  const regions = settings.pools[pool]?.regions ?? [];
  return clusterReading.kind !== 'stale' && regions.every((region) => views.has(region));
}

function nodesOf({ clusterReading }: ReconcileContext): readonly ClusterNode[] | undefined {
  return clusterReading.kind === 'fresh' ? clusterReading.view.nodes : undefined;
}

function recordKey(pool: string): string {
  return `lost machines of ${pool}`;
}
