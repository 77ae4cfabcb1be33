// SPDX-License-Identifier: Apache-2.0
// What a Node lacks after its registration, and what differs from what its pool says.
import { type Registration, registrationOf, STARTUP_TAINT } from '../../bootstrap/index.ts';
import { vmProviderId } from '../../model/provider-id.ts';
import type { Cluster, ClusterNode, NodeChange } from '../../ports/cluster.ts';
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
  const change: NodeChange = {
    ...providerIdChange(job, node),
    ...labelChange(registration, node),
  };
  const isStarting =
    registration !== undefined && node.taints.some(({ key }) => key === STARTUP_TAINT.key);
  if (Object.keys(change).length > 0) await changeNode(job, cluster, { node, change });
  else if (isStarting) {
    await changeNode(job, cluster, { node, change: { removeTaintKeys: [STARTUP_TAINT.key] } });
  } else return false;
  return true;
}

/** Somebody was quicker: what they did is in the next view. */
const OVERTAKEN: readonly ErrorCode[] = ['PROVIDER_ID_SET', 'NODE_NOT_FOUND', 'NODE_CHANGED'];

async function changeNode(
  job: Job,
  cluster: Cluster,
  { node, change }: { readonly node: ClusterNode; readonly change: NodeChange },
): Promise<void> {
  try {
    await cluster.changeNode(node, change, job.turn.acting);
  } catch (error) {
    if (!(error instanceof PvescalerError && OVERTAKEN.includes(error.code))) throw error;
  }
}

export function registrationFor(job: Job): Registration | undefined {
  const seed = job.pool?.seed;
  if (seed === undefined) return undefined;
  const registration = registrationOf(machineInput(job), seed.registration);
  return registration.ok ? registration.value : undefined;
}

function providerIdChange({ placement, turn }: Job, node: ClusterNode): NodeChange {
  const isCloudsTurn =
    turn.settings.cloudController || node.taints.some(({ key }) => key === AWAITS_CLOUD);
  if (node.providerId !== '' || isCloudsTurn) return {};
  return { providerId: vmProviderId(placement.region, placement.vmId) };
}

function labelChange(registration: Registration | undefined, { labels }: ClusterNode): NodeChange {
  const wanted = Object.entries(registration?.labelsToPatch ?? {});
  const lacking = wanted.filter(([key, value]) => labels[key] !== value);
  return lacking.length === 0 ? {} : { labels: Object.fromEntries(lacking) };
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

function quoted(value: string | undefined): string {
  return value === undefined ? 'missing' : `'${value}'`;
}
