// SPDX-License-Identifier: Apache-2.0
// A person decides about a VM: it is adopted with a new marker, or forgotten, after which it is neither listed nor changed,
// or destroyed. The decision is judged twice: before it is requested, and by the driver, on the configuration that the person
// has seen.
import { isVmIntent, type VmIntent } from '../../model/intent.ts';
import { type Machine, type MachineId, mayHaveVm, parseMachineId } from '../../model/machine.ts';
import {
  foreignMarkerReason,
  isIgnored,
  type Marker,
  readMarker,
  verifyOwnership,
  withMarker,
  withoutMarker,
} from '../../model/marker.ts';
import { groupTag, poolTag } from '../../model/names.ts';
import { templateTags } from '../../model/role.ts';
import {
  Conflict,
  InvalidRequest,
  NotFound,
  NotOwned,
  type PvescalerError,
} from '../../ports/errors.ts';
import type { VmConfig } from '../../ports/hypervisor.ts';
import type { HostJobs } from '../context/host-jobs.ts';
import { isMachineError } from '../context/machine-error.ts';
import { DONE, type ReconcileResult } from '../context/machine-reconcile.ts';
import type { FleetOptions } from '../context/options.ts';
import type { ReconcileContext } from '../context/reconcile-context.ts';
import { markerOf, tagsOf } from '../machine/vm-identity.ts';
import type { RecordCache } from '../records/record-cache.ts';
import { machineWithUuid, recordAdopted } from './adopt.ts';
import { destroyForeignVm, requireDestroyable, requireSeen } from './destroy-foreign-vm.ts';
import { isVmOf, readContext } from './list-orphans.ts';

export interface VmDecisionRequest {
  readonly kind: VmIntent['kind'];
  readonly vmId: number;
  /** Needed when several regions have the VM id. */
  readonly region?: string | undefined;
  /** Needed to adopt a VM that was never a machine. */
  readonly pool?: string | undefined;
}

/** A decision that may be requested, and the VM that it is about. */
export interface VmDecision {
  readonly kind: VmIntent['kind'];
  readonly region: string;
  /** Empty unless the VM is to be adopted. */
  readonly pool: string;
  readonly vm: VmConfig;
}

/** Reads the VM. Throws when the decision would be refused. */
export async function planVmDecision(
  options: FleetOptions,
  cache: RecordCache,
  request: VmDecisionRequest,
): Promise<VmDecision> {
  const context = await readContext(options, cache);
  const { vmId, kind } = request;
  const regions = [...context.views.keys()].filter(
    (region) =>
      (request.region ?? region) === region && context.vmInView({ region, vmId }) !== undefined,
  );
  const [region, another] = regions;
  const seen = region === undefined ? undefined : context.vmInView({ region, vmId });
  if (region === undefined || seen === undefined)
    throw new NotFound(
      'VM_NOT_FOUND',
      `VM ${vmId} does not exist in ${request.region ?? 'any region'}`,
    );
  if (another !== undefined)
    throw new InvalidRequest(
      'REQUEST_INVALID',
      `regions ${regions.join(' and ')} have a VM ${vmId}`,
      {
        hint: 'Name the region with --region.',
      },
    );
  const vm = await context.hypervisor(region).vmConfig(seen, context.readOptions);
  const pool =
    kind === 'adopt' ? judgeAdoption(context, { region, vm, pool: request.pool }).pool : '';
  if (kind === 'forget') requireForgettable(context, region, vm);
  if (kind === 'destroy') requireDestroyable(context, region, vm);
  return { kind, region, pool, vm };
}

/** Returns the id of the intent. */
export async function requestVmDecision(
  { clock, random }: FleetOptions,
  cache: RecordCache,
  { kind, region, pool, vm }: VmDecision,
): Promise<string> {
  const id = random.uuid();
  const intent: VmIntent = {
    id,
    kind,
    pool,
    region,
    vmId: vm.vmId,
    digest: vm.digest,
    machines: [],
    requestedAt: clock.now(),
    requestedBy: 'cli',
    reason: `${kind} VM ${vm.vmId}`,
    state: 'open',
  };
  await cache.intents.put(id, intent, {});
  return id;
}

/** Carries out the requested decisions, by the workers of the VM's host. */
export async function carryOutVmDecisions(
  context: ReconcileContext,
  jobs: HostJobs,
): Promise<void> {
  const keys: string[] = [];
  for (const intent of context.records.intents) {
    if (!isVmIntent(intent) || intent.state !== 'open') continue;
    const { kind, region, vmId } = intent;
    // A region that cannot be read now is tried again in the next pass.
    if (context.isConfigured(region) && !context.views.has(region)) continue;
    const host = context.vmInView({ region, vmId })?.host ?? '';
    const key = `${kind} VM ${vmId} in region ${region}`;
    keys.push(key);
    jobs.start(key, { region, host }, (newest) => carryOut(newest, intent));
  }
  await jobs.settle(keys);
}

async function carryOut(context: ReconcileContext, intent: VmIntent): Promise<ReconcileResult> {
  const { result, failure } = await decide(context, intent).then(
    (decided) => ({ result: decided, failure: undefined }),
    (error: unknown) => ({ result: DONE, failure: finalError(error) }),
  );
  if (result !== DONE) return result;
  const { kind, region, vmId } = intent;
  await context.records.putIntent({
    ...intent,
    state: 'done',
    ...(failure !== undefined && { failure: { code: failure.code, message: failure.message } }),
  });
  await context.record({
    kind: failure === undefined ? 'did' : 'refused',
    subject: { region },
    reason: failure?.code ?? REASONS[kind],
    message: `${kind} VM ${vmId}, requested by ${intent.requestedBy}: ${failure?.message ?? 'done'}`,
    numbers: { vmId },
  });
  return DONE;
}

const REASONS: Readonly<Record<VmIntent['kind'], string>> = {
  adopt: 'VmAdopted',
  forget: 'VmForgotten',
  destroy: 'VmDestroyed',
};

/** Throws what may succeed later: the worker retries it. */
function finalError(error: unknown): PvescalerError {
  if (!isMachineError(error) || error.class === 'Unreachable' || error.class === 'TimedOut') {
    throw error;
  }
  return error;
}

async function decide(context: ReconcileContext, intent: VmIntent): Promise<ReconcileResult> {
  const { region, vmId, kind } = intent;
  if (kind === 'destroy') return destroyForeignVm(context, intent);
  const seen = context.vmInView({ region, vmId });
  if (seen === undefined)
    throw new NotFound('VM_NOT_FOUND', `VM ${vmId} does not exist in region ${region}`);
  const vm = await context.hypervisor(region).vmConfig(seen, context.readOptions);
  await (kind === 'adopt' ? adopt : forget)(context, intent, vm);
  context.state.unmanaged.delete(`${region}/${vmId}`);
  return DONE;
}

async function forget(context: ReconcileContext, intent: VmIntent, vm: VmConfig): Promise<void> {
  // The response to an earlier attempt may have been lost.
  if (isIgnored(vm.description)) return;
  requireForgettable(context, intent.region, vm);
  requireSeen(vm, intent);
  const own = ownTags(context, intent.region, vm);
  const tags = vm.tags.filter((tag) => !tag.startsWith(poolTag('')) && !own.has(tag));
  await write(context, intent, { vm, description: withoutMarker(vm.description ?? ''), tags });
}

/** Those of a role or a template only if the VM says, or its record, that it is one: others may have such tags. */
function ownTags(context: ReconcileContext, region: string, vm: VmConfig): ReadonlySet<string> {
  const { settings } = context;
  const reading = readMarker(vm.description);
  const machine = machineWithUuid(context, vm);
  const group = reading.kind === 'marked' ? reading.marker.pool : machine?.pool;
  const { template } = (reading.kind === 'marked' ? reading.marker : machine?.vm) ?? {};
  const tags = [
    ...(settings.regions[region]?.tags ?? []),
    settings.clusterName ?? '',
    ...(group === undefined ? [] : [groupTag(group)]),
    ...(template === undefined ? [] : templateTags(template)),
  ];
  return new Set(tags.map((tag) => tag.toLowerCase()));
}

async function adopt(context: ReconcileContext, intent: VmIntent, vm: VmConfig): Promise<void> {
  const { region, pool } = intent;
  const hypervisor = context.hypervisor(region);
  if (!isOwned(context, region, vm)) {
    const judged = judgeAdoption(context, { region, vm, pool });
    requireSeen(vm, intent);
    const tags = [
      ...new Set([...vm.tags, ...tagsOf({ pool }, context.region(region), context.settings)]),
    ];
    const description = withMarker(
      vm.description ?? '',
      adoptionMarker(context, { region, vm, ...judged }),
    );
    await write(context, intent, { vm, description, tags });
  }
  const config = await hypervisor.vmConfig(vm, context.readOptions);
  const ownership = verifyOwnership({ ...config, configured: true }, ownerIn(context, region));
  if (!ownership.owned)
    throw new Conflict('VM_CHANGED', `VM ${vm.vmId} was changed meanwhile: ${ownership.reason}`);
  if (context.records.index.isVmClaimed(region, vm.vmId)) return;
  const { power } = await hypervisor.vmState(config, context.readOptions);
  await recordAdopted(context, { region, config, marker: ownership.marker, power });
}

interface NewNotes {
  readonly vm: VmConfig;
  readonly description: string;
  readonly tags: readonly string[];
}

function write(
  context: ReconcileContext,
  { region }: VmIntent,
  { vm, description, tags }: NewNotes,
): Promise<void> {
  const options = { digest: vm.digest, tags, ...context.writeOptions() };
  return context.hypervisor(region).setDescription(vm, description, options);
}

function ownerIn({ settings }: ReconcileContext, region: string) {
  return { cluster: settings.cluster, region };
}

function isOwned(context: ReconcileContext, region: string, vm: VmConfig): boolean {
  return verifyOwnership({ ...vm, configured: true }, ownerIn(context, region)).owned;
}

function requireOwnable({ settings }: ReconcileContext, vm: VmConfig): void {
  const { vmId } = vm;
  if (vm.isTemplate) throw new NotOwned('VM_NOT_OWNED', `VM ${vmId} is a template`, NOTHING_TO_DO);
  if (vm.isBeingCreated)
    throw new Conflict('VM_LOCKED', `VM ${vmId} is being created (lock ${vm.lock ?? ''})`);
  const foreign = foreignMarkerReason(vm.description, settings.cluster);
  if (foreign !== undefined)
    throw new NotOwned(
      'VM_NOT_OWNED',
      `VM ${vmId} is not ours to decide about: ${foreign}`,
      NOTHING_TO_DO,
    );
}

const NOTHING_TO_DO = { hint: 'Do nothing: pvescaler never changes it.' };

function requireForgettable(context: ReconcileContext, region: string, vm: VmConfig): void {
  requireOwnable(context, vm);
  const machine = machineWithUuid(context, vm);
  if (machine === undefined || !isVmOf(machine, region, vm)) return;
  throw new NotOwned('VM_NOT_OWNED', `VM ${vm.vmId} is the only VM of machine ${machine.id}`, {
    hint: `Delete the machine with pvescaler machine delete ${machine.id}; its VM is left when its marker is gone.`,
  });
}

interface Adoption {
  readonly machine: MachineId;
  readonly pool: string;
  /** The machine's record, of a live machine or of one that is over. */
  readonly known: Machine | undefined;
}

function judgeAdoption(
  context: ReconcileContext,
  {
    region,
    vm,
    pool,
  }: { readonly region: string; readonly vm: VmConfig; readonly pool?: string | undefined },
): Adoption {
  requireOwnable(context, vm);
  const { vmId, smbiosUuid = '(none)' } = vm;
  const machine = parseMachineId(smbiosUuid);
  if (!machine.ok)
    throw new NotOwned(
      'VM_NOT_OWNED',
      `VM ${vmId} has the SMBIOS UUID ${smbiosUuid}, which ${machine.problem}`,
      {
        hint: "Set a version 4 UUID in the VM's SMBIOS settings; it becomes the id of the machine.",
      },
    );
  const known = context.records.find(machine.value);
  const refusal = adoptionRefusal(context, { region, vm, known });
  if (refusal !== undefined)
    throw new NotOwned('VM_NOT_OWNED', `VM ${vmId} cannot be adopted: ${refusal}`, NO_CHANGE);
  return { machine: machine.value, pool: choosePool(context, { vmId, known, pool }), known };
}

const NO_CHANGE = { hint: 'Nothing was changed. pvescaler orphans lists what is not settled.' };

interface VmAndRecord {
  readonly region: string;
  readonly vm: VmConfig;
  readonly known: Machine | undefined;
}

function adoptionRefusal(context: ReconcileContext, found: VmAndRecord): string | undefined {
  const { region, vm, known } = found;
  const holder = context.records.index.byVm(region, vm.vmId);
  if (holder !== undefined && mayHaveVm(holder.phase)) return holderRefusal(context, holder, found);
  if (known !== undefined && mayHaveVm(known.phase))
    return `its machine ${known.id} is VM ${known.placement?.vmId ?? '(none yet)'}`;
  const { index } = context.records;
  const held = addressesOf(vm, known).find(
    (address) => index.otherHolder(region, address, known?.id) !== undefined,
  );
  return held === undefined ? undefined : `another machine has its address ${held}`;
}

function holderRefusal(
  context: ReconcileContext,
  { id, phase }: Machine,
  { region, vm, known }: VmAndRecord,
): string | undefined {
  if (id !== known?.id) return `machine ${id} has its VM id`;
  if (phase === 'deleting') return `machine ${id} is being deleted`;
  return isOwned(context, region, vm) ? `it is machine ${id} already` : undefined;
}

/** The guest of a VM that was restored with another id still has the addresses of its machine. */
function addressesOf(vm: VmConfig, known: Machine | undefined): readonly string[] {
  const { vmId, addresses = [] } = known?.placement ?? {};
  return vmId === vm.vmId ? addresses : [...new Set([...addresses, ...vm.addresses])];
}

function choosePool(
  { settings }: ReconcileContext,
  {
    vmId,
    known,
    pool,
  }: {
    readonly vmId: number;
    readonly known: Machine | undefined;
    readonly pool: string | undefined;
  },
): string {
  if (pool === undefined || pool === known?.pool) {
    if (known !== undefined) return known.pool;
    throw new InvalidRequest(
      'REQUEST_INVALID',
      `VM ${vmId} was never a machine, so its pool is unknown`,
      {
        hint: `Name the pool with --pool: ${Object.keys(settings.pools).join(', ')}.`,
      },
    );
  }
  if (known !== undefined && mayHaveVm(known.phase))
    throw new InvalidRequest(
      'REQUEST_INVALID',
      `machine ${known.id} belongs to pool ${known.pool}`,
    );
  if (settings.pools[pool] === undefined)
    throw new NotFound('POOL_NOT_FOUND', `the config has no pool ${pool}`);
  return pool;
}

/** A person vouches for the machine: from now on no error while it starts deletes it. */
function adoptionMarker(
  { settings, now }: ReconcileContext,
  {
    region,
    vm,
    machine,
    pool,
    known,
  }: Adoption & { readonly region: string; readonly vm: VmConfig },
): Marker {
  const seconds = Math.floor(now / 1_000);
  if (known !== undefined && mayHaveVm(known.phase)) {
    const isReady = known.phase === 'ready' || known.phase === 'draining';
    return { ...markerOf(known, settings.cluster), ...(isReady && { readySinceSeconds: seconds }) };
  }
  return {
    cluster: settings.cluster,
    region,
    pool,
    machine,
    vmId: vm.vmId,
    createdAtSeconds: known === undefined ? seconds : Math.floor(known.requestedAt / 1_000),
    addresses: addressesOf(vm, known),
    readySinceSeconds: seconds,
  };
}
