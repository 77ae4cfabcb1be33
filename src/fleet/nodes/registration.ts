// SPDX-License-Identifier: Apache-2.0
// A machine's Node after its registration: adds what it lacks, records it and where it differs from its pool's settings,
// and learns its allocatable resources.
import {
  buildRegistration,
  type MachineInput,
  type Registration,
  STARTUP_TAINT,
} from '../../bootstrap/index.ts';
import type { Machine, MachineSize } from '../../model/machine.ts';
import type { LearnedAllocatable } from '../../model/pool.ts';
import { vmProviderId } from '../../model/provider-id.ts';
import { parseResources } from '../../model/resources.ts';
import { roleOf } from '../../model/role.ts';
import { sizeKey } from '../../pools/index.ts';
import type { Cluster, ClusterNode, FieldConflict, NodeDeclaration } from '../../ports/cluster.ts';
import type { ErrorCode } from '../../ports/error-codes.ts';
import { PvescalerError } from '../../ports/errors.ts';
import type { MachineReconcile } from '../context/machine-reconcile.ts';
import type { ReconcileContext } from '../context/reconcile-context.ts';
import type { NamedSize } from '../context/settings.ts';

/** Set by a kubelet that waits for a cloud controller manager, which then sets the provider id. */
const UNINITIALIZED_TAINT = 'node.cloudprovider.kubernetes.io/uninitialized';

/**
 * True when a change was sent; a later view shows it. Labels first, then the startup taint is removed, so that no
 * pod is scheduled before the labels are there.
 */
export async function completeNode(
  reconcile: MachineReconcile,
  cluster: Cluster,
  node: ClusterNode,
): Promise<boolean> {
  const registration = registrationFor(reconcile);
  const declaration = declarationOf(reconcile, registration, node);
  const isStarting =
    registration !== undefined && node.taints.some(({ key }) => key === STARTUP_TAINT.key);
  if (isIncomplete(reconcile, declaration, node)) {
    await declare(reconcile, cluster, { node, declaration });
  } else if (isStarting) {
    const change = { removeTaintKeys: [STARTUP_TAINT.key] };
    await unlessChangedMeanwhile(
      cluster.changeNode(node, change, reconcile.context.writeOptions()),
    );
  } else return false;
  return true;
}

const ZONE_LABEL = 'topology.kubernetes.io/zone';
/** A kubelet restores its zone when it restarts; another writer may do so at any time. */
const ZONE_CHANGE_INTERVAL_MS = 10 * 60_000;

/**
 * Proxmox may move a VM to another host, by HA or live migration; its Node then has the zone of the old one. True when a
 * change was sent.
 */
export async function refreshZone(
  reconcile: MachineReconcile,
  cluster: Cluster,
  node: ClusterNode,
): Promise<boolean> {
  const { context, id, pool, placement } = reconcile;
  const { state, clock, settings } = context;
  const zone = registrationFor(reconcile)?.kubeletLabels[ZONE_LABEL];
  const present = node.labels[ZONE_LABEL];
  // Another zone than the host is set by the pool; a cloud controller manager sets the zone itself.
  const isHost = zone === placement.host && !settings.cloudController;
  if (!isHost || present === undefined || present === zone) return false;
  const changedAt = state.zoneChangedAt.get(id) ?? Number.NEGATIVE_INFINITY;
  const isChangedLately = clock.monotonic() - changedAt < ZONE_CHANGE_INTERVAL_MS;
  const isUpdated = pool?.placement.zoneOnMigration === 'update';
  await recordZone(reconcile, node, { present, zone, isUpdated });
  if (!isUpdated || isChangedLately) return false;
  state.zoneChangedAt.set(id, clock.monotonic());
  const change = { labels: { [ZONE_LABEL]: zone } };
  await unlessChangedMeanwhile(cluster.changeNode(node, change, context.writeOptions()));
  return true;
}

function recordZone(
  reconcile: MachineReconcile,
  { name }: ClusterNode,
  zone: { readonly present: string; readonly zone: string; readonly isUpdated: boolean },
): Promise<void> {
  const what = zone.isUpdated
    ? 'the label is changed'
    : `the label is kept (placement.zoneOnMigration: report); kubectl label node ${name} --overwrite ${ZONE_LABEL}=${zone.zone} changes it`;
  return reconcile.context.recordOnce(`zone ${reconcile.id}`, {
    kind: 'saw',
    subject: { pool: reconcile.machine.pool, machine: reconcile.id, node: name },
    reason: 'ZoneOutdated',
    message: `node ${name} has zone ${zone.present}, but its VM is on host ${zone.zone}: ${what}`,
  });
}

/** Another writer changed the Node first; the next view shows its change. */
const CHANGED_MEANWHILE: readonly ErrorCode[] = [
  'PROVIDER_ID_SET',
  'NODE_NOT_FOUND',
  'NODE_CHANGED',
];

async function unlessChangedMeanwhile<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work;
  } catch (error) {
    if (!(error instanceof PvescalerError && CHANGED_MEANWHILE.includes(error.code))) throw error;
    return undefined;
  }
}

async function declare(
  reconcile: MachineReconcile,
  cluster: Cluster,
  { node, declaration }: { readonly node: ClusterNode; readonly declaration: NodeDeclaration },
): Promise<void> {
  const { state } = reconcile.context;
  const contested = await unlessChangedMeanwhile(
    cluster.declareNode(node, declaration, reconcile.context.writeOptions()),
  );
  if (contested === undefined) return;
  state.contestedLabels.set(
    reconcile.id,
    labelFingerprint(
      node,
      contested.map(({ key }) => key),
    ),
  );
  if (contested.length > 0) await recordContested(reconcile, node, { ...declaration, contested });
}

/** All fields that we own on the Node. If the pool is no longer configured, what was declared before stays. */
function declarationOf(
  reconcile: MachineReconcile,
  registration: Registration | undefined,
  node: ClusterNode,
): NodeDeclaration {
  const declared = Object.entries(node.labels).filter(([key]) =>
    node.declared.labels.includes(key),
  );
  const labels = registration?.labelsToPatch ?? Object.fromEntries(declared);
  return { labels, ...missingProviderId(reconcile, node) };
}

function missingProviderId(
  { placement, context }: MachineReconcile,
  node: ClusterNode,
): Pick<NodeDeclaration, 'providerId'> {
  const isSetByCloudController =
    context.settings.cloudController || node.taints.some(({ key }) => key === UNINITIALIZED_TAINT);
  if (node.providerId !== '' || isSetByCloudController) return {};
  return { providerId: vmProviderId(placement.region, placement.vmId) };
}

/** Ignores labels that another field manager owned when they were last declared and that have not changed since. */
function isIncomplete(
  { id, context }: MachineReconcile,
  { labels, providerId }: NodeDeclaration,
  node: ClusterNode,
): boolean {
  const isAbandoned = (key: string) => labels[key] === undefined;
  if (providerId !== undefined || node.declared.labels.some(isAbandoned)) return true;
  const differing = Object.keys(labels).filter((key) => node.labels[key] !== labels[key]);
  return (
    labelFingerprint(node, differing) !==
    (context.state.contestedLabels.get(id) ?? labelFingerprint(node, []))
  );
}

function labelFingerprint({ uid, labels }: ClusterNode, keys: readonly string[]): string {
  return JSON.stringify([uid, ...keys.toSorted().map((key) => [key, labels[key] ?? null])]);
}

/** Recorded once and not corrected: a person may have changed the Node on purpose. */
export async function recordDifferences(
  reconcile: MachineReconcile,
  node: ClusterNode,
): Promise<void> {
  const registration = registrationFor(reconcile);
  if (registration === undefined) return;
  const labels = Object.entries(registration.kubeletLabels)
    .filter(([key, value]) => node.labels[key] !== value)
    .map(([key, value]) => `label ${key} is ${quoted(node.labels[key])}, not '${value}'`);
  const taints = registration.taints
    .filter(({ key }) => key !== STARTUP_TAINT.key)
    .filter(
      ({ key, value, effect }) =>
        !node.taints.some((one) => one.key === key && one.value === value && one.effect === effect),
    )
    .map(({ key, effect }) => `taint ${key}:${effect} is missing`);
  const differences = [...labels, ...taints];
  if (differences.length === 0) return;
  await reconcile.context.recordOnce(`node ${reconcile.id}`, {
    kind: 'saw',
    subject: { pool: reconcile.machine.pool, machine: reconcile.id, node: node.name },
    reason: 'NodeDiffers',
    message: `node ${node.name} differs from its pool's settings: ${differences.join('; ')}`,
  });
}

/** Names the owner and not the present value: the view may be older than the answer. */
async function recordContested(
  reconcile: MachineReconcile,
  { name }: ClusterNode,
  { labels, contested }: NodeDeclaration & { readonly contested: readonly FieldConflict[] },
): Promise<void> {
  const reasons = contested.map(
    ({ key, manager }) => `label ${key} is not set to '${labels[key]}' because ${manager} owns it`,
  );
  await reconcile.context.recordOnce(`labels ${reconcile.id}`, {
    kind: 'saw',
    subject: { pool: reconcile.machine.pool, machine: reconcile.id, node: name },
    reason: 'NodeDiffers',
    message: `node ${name} keeps labels of other field managers: ${reasons.join('; ')}`,
  });
}

function quoted(value: string | undefined): string {
  return value === undefined ? 'missing' : `'${value}'`;
}

/** Once a Node exists, its own name, uid and provider id are recorded verbatim. */
export async function recordNode(
  reconcile: MachineReconcile,
  { name, uid, providerId }: ClusterNode,
): Promise<void> {
  const { nodeName, nodeUid, providerId: known } = reconcile.machine;
  const isNew = nodeName !== name || nodeUid !== uid || (providerId !== '' && known !== providerId);
  if (!isNew) return;
  await reconcile.update({
    nodeName: name,
    nodeUid: uid,
    ...(providerId !== '' && { providerId }),
  });
}

// Learns from joined Nodes how much of a machine's size pods can use, by size; corrects the template of the next ones.

export async function learnAllocatable(
  context: ReconcileContext,
  machine: Machine,
  node: ClusterNode,
): Promise<void> {
  const parsed = parseResources(node.allocatable);
  if (!parsed.ok || parsed.value.memoryBytes === 0) return;
  const { cpuMilli, memoryBytes, ephemeralStorageBytes, pods } = parsed.value;
  const facts = { cpuMilli, memoryBytes, ephemeralStorageBytes, pods };
  const key = sizeKey(machine.size);
  await context.records.changePool(machine.pool, (state) => {
    const known = state.allocatable[key];
    if (known !== undefined && isSame(known, facts)) return undefined;
    const learned = { ...facts, learnedAt: context.now };
    return { ...state, allocatable: { ...state.allocatable, [key]: learned } };
  });
}

function isSame(known: LearnedAllocatable, facts: Omit<LearnedAllocatable, 'learnedAt'>): boolean {
  return (
    known.cpuMilli === facts.cpuMilli &&
    known.memoryBytes === facts.memoryBytes &&
    known.ephemeralStorageBytes === facts.ephemeralStorageBytes &&
    known.pods === facts.pods
  );
}

// What a machine's Node is to be registered with: labels, taints and the facts they are made from.

/** Undefined for a pool without a seed, and for one that is no longer in the config. */
function registrationFor(reconcile: MachineReconcile): Registration | undefined {
  const seed = reconcile.pool?.seed;
  if (seed === undefined) return undefined;
  const registration = buildRegistration(machineInput(reconcile), seed.registration);
  return registration.ok ? registration.value : undefined;
}

export function machineInput({
  machine,
  placement,
  pool: settings,
}: MachineReconcile): MachineInput {
  const { id, pool, size } = machine;
  const { name, region, host, vmId } = placement;
  const instanceType = instanceTypeOf(size, settings?.instanceTypes ?? []);
  return { id, name, pool: roleOf(pool) ?? pool, region, host, vmId, instanceType };
}

/** A machine whose size has no name has no instance type. */
function instanceTypeOf(size: MachineSize, named: readonly NamedSize[]): string | undefined {
  const { cpu, memoryBytes, diskBytes } = size;
  return named.find(
    (one) => one.cpu === cpu && one.memoryBytes === memoryBytes && one.diskBytes === diskBytes,
  )?.name;
}
