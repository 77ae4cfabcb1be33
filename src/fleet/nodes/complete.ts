// SPDX-License-Identifier: Apache-2.0
// What a Node lacks after its registration, and what differs from what its pool says.
import { type Registration, registrationOf, STARTUP_TAINT } from '../../bootstrap/index.ts';
import { vmProviderId } from '../../model/provider-id.ts';
import type { Cluster, ClusterNode, ContestedKey, NodeDeclaration } from '../../ports/cluster.ts';
import type { ErrorCode } from '../../ports/error-codes.ts';
import { PvescalerError } from '../../ports/errors.ts';
import type { Job } from '../lifecycle/job.ts';
import { machineInput } from '../lifecycle/seed.ts';

/** Set by a kubelet that waits for a cloud controller; that one says what the provider id is. */
const AWAITS_CLOUD = 'node.cloudprovider.kubernetes.io/uninitialized';

/**
 * True when something had to be changed: the view shows it later. Labels go first, the startup taint after them, so
 * that no pod is placed by labels that are not there yet.
 */
export async function completeNode(
  job: Job,
  cluster: Cluster,
  node: ClusterNode,
): Promise<boolean> {
  const registration = registrationFor(job);
  const declaration = declarationOf(job, registration, node);
  const isStarting =
    registration !== undefined && node.taints.some(({ key }) => key === STARTUP_TAINT.key);
  if (isLacking(job, declaration, node)) {
    await declare(job, cluster, { node, declaration });
  } else if (isStarting) {
    const change = { removeTaintKeys: [STARTUP_TAINT.key] };
    await unlessOvertaken(cluster.changeNode(node, change, job.turn.acting));
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
  job: Job,
  cluster: Cluster,
  { node, declaration }: { readonly node: ClusterNode; readonly declaration: NodeDeclaration },
): Promise<void> {
  const { acting, memory } = job.turn;
  const contested = await unlessOvertaken(cluster.declareNode(node, declaration, acting));
  if (contested === undefined) return;
  memory.contested.set(
    job.id,
    looksOf(
      node,
      contested.map(({ key }) => key),
    ),
  );
  if (contested.length > 0) await tellContested(job, node, { ...declaration, contested });
}

export function registrationFor(job: Job): Registration | undefined {
  const seed = job.pool?.seed;
  if (seed === undefined) return undefined;
  const registration = registrationOf(machineInput(job), seed.registration);
  return registration.ok ? registration.value : undefined;
}

/** All that is ours on the Node. Where the pool is gone, what was declared before stays. */
function declarationOf(
  job: Job,
  registration: Registration | undefined,
  node: ClusterNode,
): NodeDeclaration {
  const declared = Object.entries(node.labels).filter(([key]) =>
    node.declared.labels.includes(key),
  );
  const labels = registration?.labelsToPatch ?? Object.fromEntries(declared);
  return { labels, ...missingProviderId(job, node) };
}

function missingProviderId(
  { placement, turn }: Job,
  node: ClusterNode,
): Pick<NodeDeclaration, 'providerId'> {
  const isCloudsTurn =
    turn.settings.cloudController || node.taints.some(({ key }) => key === AWAITS_CLOUD);
  if (node.providerId !== '' || isCloudsTurn) return {};
  return { providerId: vmProviderId(placement.region, placement.vmId) };
}

/** Labels that others hold, and held when they were last asked for, are no longer waited for. */
function isLacking(
  { id, turn }: Job,
  { labels, providerId }: NodeDeclaration,
  node: ClusterNode,
): boolean {
  const isAbandoned = (key: string) => labels[key] === undefined;
  if (providerId !== undefined || node.declared.labels.some(isAbandoned)) return true;
  const differing = Object.keys(labels).filter((key) => node.labels[key] !== labels[key]);
  return looksOf(node, differing) !== (turn.memory.contested.get(id) ?? looksOf(node, []));
}

function looksOf({ uid, labels }: ClusterNode, keys: readonly string[]): string {
  return JSON.stringify([uid, ...keys.toSorted().map((key) => [key, labels[key] ?? null])]);
}

/** Told once: the Node may have been changed by a person, and is theirs to change. */
export async function tellDifferences(job: Job, node: ClusterNode): Promise<void> {
  const registration = registrationFor(job);
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
  await job.turn.tellOnce(`node ${job.id}`, {
    kind: 'saw',
    subject: { pool: job.machine.pool, machine: job.id, node: node.name },
    reason: 'NodeDiffers',
    message: `node ${node.name} is not what its pool says: ${differences.join('; ')}`,
  });
}

/** By whom, and not what it is now: the view may be older than the answer. */
async function tellContested(
  job: Job,
  { name }: ClusterNode,
  { labels, contested }: NodeDeclaration & { readonly contested: readonly ContestedKey[] },
): Promise<void> {
  const words = contested.map(
    ({ key, holder }) => `label ${key} is not '${labels[key]}', because ${holder} set it`,
  );
  await job.turn.tellOnce(`labels ${job.id}`, {
    kind: 'saw',
    subject: { pool: job.machine.pool, machine: job.id, node: name },
    reason: 'NodeDiffers',
    message: `node ${name} keeps what others set: ${words.join('; ')}`,
  });
}

function quoted(value: string | undefined): string {
  return value === undefined ? 'missing' : `'${value}'`;
}
