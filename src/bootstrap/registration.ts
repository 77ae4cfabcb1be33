// SPDX-License-Identifier: Apache-2.0
// Labels and taints with which a Node registers, and labels to be patched afterwards. The same data describes a
// template node, so that schedulers see what a new machine will really provide.
import { checkLabels, isKubeletRestrictedLabel, type Labels } from '../model/labels.ts';
import { accepted, type Parsed, refused } from '../model/parsed.ts';
import { vmProviderId } from '../model/provider-id.ts';
import type { Taint } from '../model/taints.ts';
import type { MachineInput, PoolInput } from './seed-input.ts';

/**
 * Keeps pods off a node until the labels that its kubelet may not set are patched. By this prefix every Cluster
 * Autoscaler since 1.25 treats the node as still starting. With an unknown taint the Cluster Autoscaler would
 * consider the node unusable for the pods that triggered it, and would request another one.
 */
export const STARTUP_TAINT: Taint = {
  key: 'ignore-taint.cluster-autoscaler.kubernetes.io/pvescaler-starting',
  value: '',
  effect: 'NoSchedule',
};

export const VMID_LABEL = 'autoscaler.proxmox/vmid';

export interface Registration {
  readonly nodeName: string;
  readonly providerId: string;
  readonly kubeletLabels: Labels;
  /** Labels that admission rejects from a kubelet. After they are patched the startup taint is removed. */
  readonly labelsToPatch: Labels;
  readonly taints: readonly Taint[];
}

export function buildRegistration(machine: MachineInput, pool: PoolInput): Parsed<Registration> {
  const identity: Labels = {
    [pool.groupLabel]: machine.pool,
    [VMID_LABEL]: String(machine.vmId),
  };
  const claimed = Object.keys(identity).find(
    (key) => Object.hasOwn(pool.labels, key) && pool.labels[key] !== identity[key],
  );
  if (claimed !== undefined)
    return refused(`label '${claimed}' is reserved: it is set per machine`);
  const labels = checkLabels({ ...topologyLabels(machine), ...pool.labels, ...identity });
  if (!labels.ok) return labels;
  const labelsToPatch = pickLabels(labels.value, isKubeletRestrictedLabel);
  return accepted({
    nodeName: machine.name,
    providerId: vmProviderId(machine.region, machine.vmId),
    kubeletLabels: pickLabels(labels.value, (key) => !isKubeletRestrictedLabel(key)),
    labelsToPatch,
    taints: taintsOf(pool.taints, Object.keys(labelsToPatch).length > 0),
  });
}

/** Defaults: a pool may override zone and instance type. */
function topologyLabels({ region, host, instanceType }: MachineInput): Labels {
  return {
    'topology.kubernetes.io/region': region,
    'topology.kubernetes.io/zone': host,
    ...(instanceType !== undefined && { 'node.kubernetes.io/instance-type': instanceType }),
  };
}

function pickLabels(labels: Labels, isWanted: (key: string) => boolean): Labels {
  const keys = Object.keys(labels).filter(isWanted);
  return Object.fromEntries(keys.map((key) => [key, labels[key] ?? '']));
}

/** A kubelet cannot register two taints with the same key and effect. */
function taintsOf(taints: readonly Taint[], isStarting: boolean): readonly Taint[] {
  const wanted = isStarting ? [...taints, STARTUP_TAINT] : taints;
  const unique = new Map(wanted.map((taint) => [`${taint.key}:${taint.effect}`, taint]));
  return [...unique.values()];
}
