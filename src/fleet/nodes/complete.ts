// SPDX-License-Identifier: Apache-2.0
// What a Node lacks after its registration, and what differs from what its pool says.
import { type Registration, registrationOf, STARTUP_TAINT } from '../../bootstrap/index.ts';
import { vmProviderId } from '../../model/provider-id.ts';
import type { Cluster, ClusterNode, ContestedKey, NodeDeclaration } from '../../ports/cluster.ts';
import type { ErrorCode } from '../../ports/error-codes.ts';
import { PvescalerError } from '../../ports/errors.ts';
import type { MachineReconcile } from '../context/machine-reconcile.ts';
import { machineInput } from '../machine/seed.ts';

/** Set by a kubelet that waits for a cloud controller; that one says what the provider id is. */
const AWAITS_CLOUD = 'node.cloudprovider.kubernetes.io/uninitialized';

/**
 * True when something had to be changed: the view shows it later. Labels go first, the startup taint after them, so
 * that no pod is placed by labels that are not there yet.
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
  if (isLacking(reconcile, declaration, node)) {
    await declare(reconcile, cluster, { node, declaration });
  } else if (isStarting) {
    const change = { removeTaintKeys: [STARTUP_TAINT.key] };
    await unlessOvertaken(cluster.changeNode(node, change, reconcile.context.writeOptions));
  } else return false;
  return true;
}

/** Somebody was quicker: what they did is in the next view. */
const OVERTAKEN: readonly ErrorCode[] = ['PROVIDER_ID_SET', 'NODE_NOT_FOUND', 'NODE_CHANGED'];

async function unlessOvertaken<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work;
  } catch (error) {
    if (!(error instanceof PvescalerError && OVERTAKEN.includes(error.code))) throw error;
    return undefined;
  }
}

async function declare(
  reconcile: MachineReconcile,
  cluster: Cluster,
  { node, declaration }: { readonly node: ClusterNode; readonly declaration: NodeDeclaration },
): Promise<void> {
  const { writeOptions, state } = reconcile.context;
  const contested = await unlessOvertaken(cluster.declareNode(node, declaration, writeOptions));
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

export function registrationFor(reconcile: MachineReconcile): Registration | undefined {
  const seed = reconcile.pool?.seed;
  if (seed === undefined) return undefined;
  const registration = registrationOf(machineInput(reconcile), seed.registration);
  return registration.ok ? registration.value : undefined;
}

/** All that is ours on the Node. Where the pool is gone, what was declared before stays. */
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
  const isCloudsTurn =
    context.settings.cloudController || node.taints.some(({ key }) => key === AWAITS_CLOUD);
  if (node.providerId !== '' || isCloudsTurn) return {};
  return { providerId: vmProviderId(placement.region, placement.vmId) };
}

/** Labels that others hold, and held when they were last asked for, are no longer waited for. */
function isLacking(
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

/** Told once: the Node may have been changed by a person, and is theirs to change. */
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
    message: `node ${node.name} is not what its pool says: ${differences.join('; ')}`,
  });
}

/** By whom, and not what it is now: the view may be older than the answer. */
async function recordContested(
  reconcile: MachineReconcile,
  { name }: ClusterNode,
  { labels, contested }: NodeDeclaration & { readonly contested: readonly ContestedKey[] },
): Promise<void> {
  const words = contested.map(
    ({ key, holder }) => `label ${key} is not '${labels[key]}', because ${holder} set it`,
  );
  await reconcile.context.recordOnce(`labels ${reconcile.id}`, {
    kind: 'saw',
    subject: { pool: reconcile.machine.pool, machine: reconcile.id, node: name },
    reason: 'NodeDiffers',
    message: `node ${name} keeps what others set: ${words.join('; ')}`,
  });
}

function quoted(value: string | undefined): string {
  return value === undefined ? 'missing' : `'${value}'`;
}
