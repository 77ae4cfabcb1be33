// SPDX-License-Identifier: Apache-2.0
// ready: removes the seed, maintains the Node, and notices when the VM is stopped or gone and when the Node is missing.
import { isPhaseSettled, type Machine } from '../../model/machine.ts';
import { isTemplateGroup } from '../../model/role.ts';
import {
  backoffMs,
  CONTINUE,
  DONE,
  MAX_BACKOFF_MS,
  type MachineReconcile,
  type ReconcileResult,
  requeue,
} from '../context/machine-reconcile.ts';
import { type ReconcileContext, subjectOf } from '../context/reconcile-context.ts';
import type { PoolSettings } from '../context/settings.ts';
import { findNode } from '../nodes/find-node.ts';
import { mayDeleteLost, mayDeleteWithoutVm, releaseHeldBack } from '../nodes/lost-machines.ts';
import { isNodeSettled, maintainNode } from '../nodes/maintain-node.ts';
import type { OtherVm } from './create-vm.ts';
import { areAddressesDue, recordGuestAddresses } from './guest-addresses.ts';
import { lookUpVm, type OwnVm, startVm, writeRegion } from './own-vm.ts';
import { isSeedRemoved, removeSeed } from './seed-volume.ts';

const MISSING_RECHECK_MS = 1_000;
const LOCK_RECHECK_MS = 10_000;

export async function ready(reconcile: MachineReconcile): Promise<ReconcileResult> {
  if (reconcile.machine.isSelftest === true) {
    return reconcile.move('deleting', { deletionReason: 'the selftest is over: it was ready' });
  }
  // Only a restart leaves a task here. Its VM may have been started by another user meanwhile.
  const task = await reconcile.pollTask(({ code }) => code === 'VM_CHANGED');
  if (task.state === 'running') return task.wait;
  if (reconcile.machine.task !== undefined) await reconcile.update({ task: undefined });
  if (isTemplate(reconcile.machine)) return keepTemplate(reconcile);
  const isVmStopped = await isStopped(reconcile);
  const isSeedGone = await isSeedRemoved(reconcile);
  const { context, machine } = reconcile;
  if (isSeedGone && !isVmStopped && isUnchangedInView(context, machine)) return maintain(reconcile);
  const lookup = await lookUpVm(reconcile);
  if (lookup.kind !== 'ours') return handleOtherVm(reconcile, lookup);
  return isVmStopped ? handleStoppedVm(reconcile, lookup) : handleRunningVm(reconcile, lookup);
}

function handleOtherVm(
  reconcile: MachineReconcile,
  lookup: OtherVm,
): ReconcileResult | Promise<ReconcileResult> {
  switch (lookup.kind) {
    case 'undecided':
      return requeue(MISSING_RECHECK_MS, `its VM is locked (${lookup.lock})`);
    case 'unreadable':
      throw lookup.error;
    case 'foreign':
      return handleMissingVm(reconcile, {
        why: `its VM id belongs to another VM: ${lookup.reason}`,
        isTakenOver: lookup.isSameVm,
      });
    case 'absent':
      return handleMissingVm(reconcile, { why: 'its VM is gone', isTakenOver: false });
  }
}

/** Whether a ready or kept machine needs no work, by the views alone. Called for every machine in every pass. */
export function isSettled(context: ReconcileContext, machine: Machine): boolean {
  if (machine.phase !== 'ready') return machine.phase === 'kept';
  if (!isPhaseSettled(machine)) return false;
  if (machine.placement === undefined || !context.views.has(machine.placement.region)) return true;
  if (machine.task !== undefined || !isUnchangedInView(context, machine)) return false;
  return (
    !isKnownMissing(context, machine) && (isTemplate(machine) || isRunningSettled(context, machine))
  );
}

function isRunningSettled(context: ReconcileContext, machine: Machine): boolean {
  return (
    context.records.pool(machine.pool).lost === undefined &&
    isPowerSettled(context, machine) &&
    isNodeSettled(context, machine) &&
    !isToBeReported(context, machine)
  );
}

/** A missing Node is to be recorded, or addresses are to be read. */
function isToBeReported(context: ReconcileContext, machine: Machine): boolean {
  if (isNodeToBeReported(context, machine)) return true;
  return !isStoppedInView(context, machine) && areAddressesDue(context, machine);
}

/** The VM is not stopped, or it is left so and that is recorded. */
function isPowerSettled(context: ReconcileContext, machine: Machine): boolean {
  const isRecorded = context.state.stoppedSince.has(machine.id);
  if (!isStoppedInView(context, machine)) return !isRecorded;
  return isRecorded && onStoppedOf(context, machine) === 'ignore';
}

/** The VM is in the view, on the known host and with its name, and its marker is complete. */
function isUnchangedInView(context: ReconcileContext, { placement }: Machine): boolean {
  if (placement?.hasRegionInMarker !== true) return false;
  const { host, name } = placement;
  const vm = context.vmInView(placement);
  return vm?.host === host && (vm.name ?? name) === name;
}

/** A VM is not stopped because its host is down: Proxmox then shows the last known state, or none. */
function isStoppedInView(context: ReconcileContext, { placement }: Machine): boolean {
  const vm = placement === undefined ? undefined : context.vmInView(placement);
  if (placement === undefined || vm?.power !== 'stopped') return false;
  const hosts = context.views.get(placement.region)?.hosts ?? [];
  return hosts.some(({ name, online }) => name === vm.host && online);
}

/** The view is some seconds old. A VM that runs in the view costs no request. */
async function isStopped({ context, machine, hypervisor, vm }: MachineReconcile): Promise<boolean> {
  if (!isStoppedInView(context, machine)) return false;
  return (await hypervisor.vmState(vm, context.readOptions)).power === 'stopped';
}

/** A machine of an unknown pool is only reported. */
function onStoppedOf(context: ReconcileContext, { pool }: Machine): PoolSettings['onStopped'] {
  return context.pool(pool)?.onStopped ?? 'ignore';
}

async function handleRunningVm(
  reconcile: MachineReconcile,
  ownVm: OwnVm,
): Promise<ReconcileResult> {
  if (await writeRegion(reconcile, ownVm)) return CONTINUE;
  await removeSeed(reconcile, ownVm.config);
  return maintain(reconcile);
}

async function handleStoppedVm(
  reconcile: MachineReconcile,
  ownVm: OwnVm,
): Promise<ReconcileResult> {
  const { context, machine } = reconcile;
  await clearMissing(reconcile);
  const { lock } = ownVm.config;
  const since = await recordStopped(reconcile, lock);
  // Set by a person, a backup or a migration. The VM may be started by the holder of the lock.
  if (lock !== undefined) return requeue(LOCK_RECHECK_MS, `its VM is stopped and locked (${lock})`);
  if (await writeRegion(reconcile, ownVm)) return CONTINUE;
  await removeSeed(reconcile, ownVm.config);
  switch (onStoppedOf(context, machine)) {
    case 'restart':
      return restart(reconcile);
    case 'replace': {
      const leftMs = since + context.settings.lostAfterMs - context.clock.monotonic();
      if (leftMs > 0) return requeue(Math.min(leftMs, LOCK_RECHECK_MS), 'its VM is stopped');
      if (!(await mayDeleteLost(reconcile))) return DONE;
      return reconcile.move('deleting', { deletionReason: 'its VM is stopped' });
    }
    case 'ignore':
      return maintainNode(reconcile);
  }
}

/** Resolves with the time since which the VM has been stopped, on the monotonic clock. */
async function recordStopped(
  reconcile: MachineReconcile,
  lock: string | undefined,
): Promise<number> {
  const { context, id, machine, placement } = reconcile;
  const { stoppedSince } = context.state;
  const since = stoppedSince.get(id) ?? context.clock.monotonic();
  if (stoppedSince.has(id)) return since;
  stoppedSince.set(id, since);
  // Its next start may get other addresses. Not deferred: after a crash the old ones would never be read again.
  if ((machine.guestAddresses ?? []).length > 0)
    await context.records.update(id, { guestAddresses: [] });
  const { name, vmId, host } = placement;
  const policy = onStoppedOf(context, machine);
  const what = lock === undefined ? policy : `${policy}, once its lock '${lock}' is removed`;
  await context.recordMachine(machine, {
    kind: 'saw',
    reason: 'MachineStopped',
    message: `${name}: VM ${vmId} on host ${host} is stopped (onStopped: ${what})`,
    numbers: { vmId },
  });
  return since;
}

/** A VM that stops again and again is started with growing delays. */
async function restart(reconcile: MachineReconcile): Promise<ReconcileResult> {
  const { context, id } = reconcile;
  const { restarts } = context.state;
  const last = restarts.get(id);
  const now = context.clock.monotonic();
  const waitMs = (last?.notBefore ?? now) - now;
  if (waitMs > 0) return requeue(waitMs, 'its VM stopped again');
  const count = last === undefined || -waitMs > MAX_BACKOFF_MS ? 1 : last.count + 1;
  restarts.set(id, { count, notBefore: now + backoffMs(count) });
  return startVm(reconcile);
}

function isKnownMissing({ state }: ReconcileContext, { id, missingSince }: Machine): boolean {
  return missingSince !== undefined || state.missingSince.has(id);
}

async function clearMissing(reconcile: MachineReconcile): Promise<void> {
  reconcile.context.state.missingSince.delete(reconcile.id);
  if (reconcile.machine.missingSince === undefined) return;
  // Not deferred: after a crash a VM that is missing for a moment would seem missing since then, and its machine lost.
  await reconcile.context.records.update(reconcile.id, { missingSince: undefined });
}

async function maintain(reconcile: MachineReconcile): Promise<ReconcileResult> {
  const { context, id } = reconcile;
  await clearMissing(reconcile);
  context.state.stoppedSince.delete(id);
  await recordMissingNode(context, reconcile.machine);
  const result = await maintainNode(reconcile);
  await releaseHeldBack(reconcile);
  await recordGuestAddresses(reconcile);
  return result;
}

function isNodeMissing(context: ReconcileContext, machine: Machine): boolean {
  const { clusterReading, records } = context;
  if (clusterReading.kind !== 'fresh' || context.pool(machine.pool)?.joins !== true) return false;
  return findNode(machine, clusterReading.view.nodes, records.index) === undefined;
}

/** `isNodeSettled` covers machines whose Node was known; this one is for adopted machines. */
function isNodeToBeReported(context: ReconcileContext, machine: Machine): boolean {
  if (machine.nodeName !== undefined) return false;
  return isNodeMissing(context, machine) && !context.state.recorded.has(missingNodeKey(machine.id));
}

async function recordMissingNode(context: ReconcileContext, machine: Machine): Promise<void> {
  const key = missingNodeKey(machine.id);
  if (!isNodeMissing(context, machine)) return void context.state.recorded.delete(key);
  const { name = machine.id, vmId = 0, host = '' } = machine.placement ?? {};
  await context.recordOnce(key, {
    kind: 'saw',
    subject: subjectOf(machine),
    reason: 'NodeMissing',
    message: `${name} has no Node in the cluster; check its kubelet: VM ${vmId} on host ${host}`,
    numbers: { vmId },
  });
}

function missingNodeKey(id: string): string {
  return `missing node ${id}`;
}

interface MissingVm {
  readonly why: string;
  /** The VM exists, but a person has removed or changed its marker. */
  readonly isTakenOver: boolean;
}

/** Deletes the machine after a while, not at once: a VM may be moving between hosts. */
async function handleMissingVm(
  reconcile: MachineReconcile,
  { why, isTakenOver }: MissingVm,
): Promise<ReconcileResult> {
  const { context, id, placement } = reconcile;
  const { missingSince } = context.state;
  const seenAt = missingSince.get(id) ?? context.clock.monotonic();
  missingSince.set(id, seenAt);
  // In the record too: a driver that ends soon must not begin to wait anew each time.
  if (reconcile.machine.missingSince === undefined && !isTakenOver)
    await reconcile.update({ missingSince: context.now });
  const recorded = reconcile.machine.missingSince;
  const missingMs =
    recorded === undefined
      ? context.clock.monotonic() - seenAt
      : reconcile.elapsedMs('missingSince', recorded);
  if (reconcile.role !== undefined) return keepRecord(reconcile, why);
  if (missingMs < context.settings.lostAfterMs) return requeue(MISSING_RECHECK_MS, why);
  const mayDelete = isTakenOver ? mayDeleteLost : mayDeleteWithoutVm;
  if (!(await mayDelete(reconcile))) return DONE;
  await reconcile.record({
    kind: 'saw',
    reason: 'MachineLost',
    message: `${placement.name}: ${why}`,
  });
  return reconcile.move('deleting', { deletionReason: why });
}

/** A hand-made VM is deleted by a person only: one that comes back, by a restored backup for instance, is ours again. */
async function keepRecord(
  { context, id, machine, placement }: MachineReconcile,
  why: string,
): Promise<ReconcileResult> {
  const { name } = placement;
  await context.recordOnce(`missing VM ${id}`, {
    kind: 'saw',
    subject: subjectOf(machine),
    reason: 'VmMissing',
    message: `${name}: ${why}; run pvescaler vm delete ${name} if it is not to come back`,
  });
  return requeue(LOCK_RECHECK_MS, why);
}

function isTemplate({ pool }: Machine): boolean {
  return isTemplateGroup(pool);
}

/** It never runs; it only is there, or not. An adopted one may have a seed. */
async function keepTemplate(reconcile: MachineReconcile): Promise<ReconcileResult> {
  const isSeedGone = await isSeedRemoved(reconcile);
  const lookup = await lookUpVm(reconcile);
  if (lookup.kind !== 'ours') return handleOtherVm(reconcile, lookup);
  await clearMissing(reconcile);
  if (!isSeedGone) await removeSeed(reconcile, lookup.config);
  return DONE;
}
