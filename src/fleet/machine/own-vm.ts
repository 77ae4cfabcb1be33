// SPDX-License-Identifier: Apache-2.0
// A machine's own VM: whether it exists and is ours, its milestones in the marker, and its start after a power-off. The
// lookup is repeated before every change and every destruction.
import { type Machine, type Phase, provisioningTimes } from '../../model/machine.ts';
import { type Marker, type Owner, verifyOwnership, withMarker } from '../../model/marker.ts';
import { isTemplateGroup } from '../../model/role.ts';
import { Conflict, NotFound, PvescalerError } from '../../ports/errors.ts';
import type { VmConfig, VmRef } from '../../ports/hypervisor.ts';
import { isVmGone } from '../context/machine-error.ts';
import {
  CONTINUE,
  type MachineReconcile,
  type ReconcileResult,
  RecordCorrected,
} from '../context/machine-reconcile.ts';
import { deleteJoinTokens } from './seed.ts';
import { seedVolumeOf } from './vm-identity.ts';

export interface OwnVm {
  readonly kind: 'ours';
  readonly config: VmConfig;
  readonly marker: Marker;
}

export type VmLookup =
  | { readonly kind: 'absent' }
  /** It is being created or restored: its owner is not known until the lock is released. */
  | { readonly kind: 'undecided'; readonly lock: string }
  /** The credentials lack the privilege to read it, as for a VM of another user. */
  | { readonly kind: 'unreadable'; readonly error: PvescalerError }
  | OwnVm
  /** `isSameVm`: it is still the machine's VM, but a person has taken it over. */
  | { readonly kind: 'foreign'; readonly reason: string; readonly isSameVm: boolean };

export async function lookUpVm(reconcile: MachineReconcile): Promise<VmLookup> {
  const lookup = await readVm(reconcile);
  if (lookup.kind !== 'undecided' && lookup.kind !== 'unreadable') {
    reconcile.context.state.ownerUnknownSince.delete(reconcile.id);
  }
  return lookup;
}

/** Whether `lookUpVm` could not determine the VM's owner for that long. */
export function isOwnerUnknownFor({ id, context }: MachineReconcile, ms: number): boolean {
  const { ownerUnknownSince } = context.state;
  const now = context.clock.monotonic();
  const since = ownerUnknownSince.get(id) ?? now;
  ownerUnknownSince.set(id, since);
  return now - since >= ms;
}

async function readVm(reconcile: MachineReconcile): Promise<VmLookup> {
  const config = await readConfig(reconcile);
  if (config === undefined) return { kind: 'absent' };
  if (config instanceof PvescalerError) return { kind: 'unreadable', error: config };
  const { cluster } = reconcile.context.settings;
  const { region } = reconcile.placement;
  const lookup = classifyVm(config, reconcile.machine, { cluster, region });
  if (lookup.kind === 'ours' && config.host !== reconcile.placement.host) {
    await reconcile.update({ placement: { ...reconcile.placement, host: config.host } });
    await reconcile.record({
      kind: 'saw',
      reason: 'MachineMoved',
      message: `VM ${config.vmId} has moved to host ${config.host}`,
    });
  }
  if (lookup.kind === 'ours') await correctRecord(reconcile, lookup.marker);
  return lookup;
}

/**
 * The record is older than the marker: the database was restored from a backup, or a crash came between the two writes.
 * A VM that is marked ready may run pods; one that is marked as being deleted must not become live again.
 */
async function correctRecord(reconcile: MachineReconcile, marker: Marker): Promise<void> {
  const { machine, context } = reconcile;
  const phase = markedPhase(machine, marker);
  if (phase === undefined) return;
  const isDeleting = phase === 'deleting';
  // As for an adopted machine: the older record does not know of its seed, which may exist.
  const hasSeed = reconcile.pool?.seed !== undefined;
  await context.records.correctPhase(machine.id, phase, {
    configured: true,
    ...(hasSeed && { seedVolume: seedVolumeOf(reconcile) }),
    deletionReason: isDeleting ? 'it was being deleted when its record was lost' : undefined,
  });
  await reconcile.record({
    kind: 'saw',
    reason: 'RecordCorrected',
    message: `VM ${marker.vmId} is marked as ${phase}, its record said ${machine.phase}`,
  });
  throw new RecordCorrected(`machine ${machine.id} is ${phase}`);
}

/** The phase that the marker proves, if the record says another one. */
function markedPhase(machine: Machine, marker: Marker): Phase | undefined {
  const { phase, failure } = machine;
  if (marker.deletingSinceSeconds !== undefined) {
    return phase === 'deleting' ? undefined : 'deleting';
  }
  if (marker.readySinceSeconds === undefined || phase === 'ready' || phase === 'draining') {
    return undefined;
  }
  // A deletion that was requested continues; one because the machine never became ready was a mistake.
  return phase === 'deleting' && failure === undefined ? undefined : 'ready';
}

/** Throws unless the VM exists and is ours. */
export async function lookUpOwnVm(reconcile: MachineReconcile): Promise<OwnVm> {
  const lookup = await lookUpVm(reconcile);
  const { vmId } = reconcile.vm;
  switch (lookup.kind) {
    case 'ours':
      return lookup;
    case 'unreadable':
      throw lookup.error;
    case 'undecided':
      // A backup may be being restored in its place; afterwards it is ours or not.
      throw new Conflict('VM_LOCKED', `VM ${vmId} is locked (${lookup.lock})`);
    case 'foreign':
      throw new NotFound('VM_NOT_FOUND', `VM ${vmId} is not ours any more: ${lookup.reason}`);
    case 'absent':
      throw new NotFound('VM_NOT_FOUND', `VM ${vmId} is gone`);
  }
}

async function readConfig(
  reconcile: MachineReconcile,
): Promise<VmConfig | PvescalerError | undefined> {
  try {
    return await reconcile.hypervisor.vmConfig(reconcile.vm, reconcile.context.readOptions);
  } catch (error) {
    if (isVmGone(error)) return undefined;
    if (error instanceof PvescalerError && error.code === 'PERMISSION_MISSING') return error;
    throw error;
  }
}

/** What to do about a VM whose creation died: it keeps its lock, which only root can remove. */
export function halfMadeVmMessage({ vmId, host }: VmRef, lock: string): string {
  return `VM ${vmId} has the lock '${lock}' and no task of ours creates it; unless another user does, run 'qm unlock ${vmId}' and 'qm destroy ${vmId} --destroy-unreferenced-disks 1' on ${host}`;
}

function classifyVm(config: VmConfig, machine: Machine, owner: Owner): VmLookup {
  if (config.isBeingCreated) return { kind: 'undecided', lock: config.lock ?? '' };
  const foreign = (reason: string): VmLookup => {
    const isSameVm =
      config.smbiosUuid === machine.id && (!config.isTemplate || isTemplateGroup(machine.pool));
    return { kind: 'foreign', reason, isSameVm };
  };
  const ownership = verifyOwnership({ ...config, configured: machine.configured === true }, owner);
  if (!ownership.owned) return foreign(ownership.reason);
  const { marker } = ownership;
  if (marker.machine !== machine.id) return foreign(`it is the VM of machine ${marker.machine}`);
  if (config.isTemplate && !isTemplateGroup(machine.pool))
    return foreign('it was converted to a template');
  return { kind: 'ours', config, marker };
}

// Writes into the VM's marker that the machine is ready or being deleted, before the record says so. After a loss of the
// records, a VM that was being deleted is not revived, and one that was ready is not deleted.

type Milestone = 'readySinceSeconds' | 'deletingSinceSeconds';

export async function writeMilestone(
  reconcile: MachineReconcile,
  { config, marker }: OwnVm,
  milestone: Milestone,
): Promise<void> {
  if (marker[milestone] !== undefined) return;
  const { region } = reconcile.placement;
  const at = Math.floor(reconcile.context.now / 1_000);
  const next: Marker = { ...marker, region, [milestone]: at };
  const { description = '', digest } = config;
  // A clone that was never configured has its template's protection; any other was set by a person.
  const removeProtection =
    milestone === 'deletingSinceSeconds' &&
    reconcile.machine.configured !== true &&
    config.isProtected;
  // The digest refuses the change if the description was edited meanwhile: the edit is kept.
  await reconcile.hypervisor.setDescription(reconcile.vm, withMarker(description, next), {
    digest,
    removeProtection,
    ...reconcile.context.writeOptions(),
  });
}

/** Adds the region to the marker of an earlier version. False when there is nothing to do. */
export async function writeRegion(
  reconcile: MachineReconcile,
  { config, marker }: OwnVm,
): Promise<boolean> {
  const { placement, context } = reconcile;
  if (placement.hasRegionInMarker === true) return false;
  if (marker.region === undefined) {
    const { description = '', digest } = config;
    const next = withMarker(description, { ...marker, region: placement.region });
    const options = { digest, removeProtection: false, ...context.writeOptions() };
    await reconcile.hypervisor.setDescription(reconcile.vm, next, options);
  }
  await reconcile.update({ placement: { ...placement, hasRegionInMarker: true } });
  return true;
}

/** Starts a VM that stopped before the machine was ready. Undefined while it runs. */
export async function startIfStopped(
  reconcile: MachineReconcile,
): Promise<ReconcileResult | undefined> {
  const { context, placement, vm, hypervisor } = reconcile;
  // The view is some seconds old, which delays the restart by as much and costs no request.
  if (context.vmInView(placement)?.power === 'running') return undefined;
  const { power } = await hypervisor.vmState(vm, context.readOptions);
  if (power === 'running') return undefined;
  await lookUpOwnVm(reconcile);
  return startVm(reconcile);
}

/** After `lookUpVm`, which does not return a VM whose deletion had begun. */
export async function startVm(reconcile: MachineReconcile): Promise<ReconcileResult> {
  const { hypervisor, vm, context } = reconcile;
  return reconcile.recordTask(await hypervisor.startVm(vm, context.writeOptions()));
}

export async function becomeReady(reconcile: MachineReconcile): Promise<ReconcileResult> {
  // Before the first durable sign of a ready machine, so that it is repeated after a crash.
  await deleteJoinTokens(reconcile);
  await writeMilestone(reconcile, await lookUpOwnVm(reconcile), 'readySinceSeconds');
  await reconcile.move('ready');
  const { context, machine, placement } = reconcile;
  // A later error is recorded even if it is the same as the last one.
  context.state.recorded.delete(reconcile.id);
  await context.records.changePool(machine.pool, ({ backoff, ...rest }) =>
    backoff === undefined ? undefined : rest,
  );
  const { name, host, vmId } = placement;
  const { nodeName, requestedAt } = machine;
  await reconcile.record({
    kind: 'did',
    reason: 'MachineReady',
    message: `${nodeName === undefined ? name : `node ${nodeName}`} is ready: VM ${vmId} on host ${host}`,
    numbers: {
      vmId,
      seconds: Math.round((context.now - requestedAt) / 1_000),
      ...Object.fromEntries(
        provisioningTimes(machine).map(({ phase, ms }) => [
          `${phase}Seconds`,
          Math.round(ms / 100) / 10,
        ]),
      ),
    },
  });
  return CONTINUE;
}
