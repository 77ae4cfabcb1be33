// SPDX-License-Identifier: Apache-2.0
// What a node says of itself when it registers, and what somebody else has to say of it afterwards. The same
// answer serves a template node that nobody has made yet, so that schedulers see what will really come.
import { checkLabels, kubeletMayNotSet, type Labels } from '../model/labels.ts';
import { accepted, type Parsed, refused } from '../model/parsed.ts';
import { vmProviderId } from '../model/provider-id.ts';
import type { Taint } from '../model/taints.ts';
import type { MachineInput, PoolInput } from './seed-input.ts';

/**
 * Keeps pods off a node until the labels are there that its kubelet may not set. By this prefix every Cluster Autoscaler
 * since 1.25 takes such a node for one that is still coming. A taint that it does not know would make the node useless
 * to the pods that it came for, and another one would be ordered.
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
  /** Admission refuses them from a kubelet; whoever patches them takes the startup taint away after. */
  readonly labelsToPatch: Labels;
  readonly taints: readonly Taint[];
}

export function registrationOf(machine: MachineInput, pool: PoolInput): Parsed<Registration> {
  const identity: Labels = {
    [pool.groupLabel]: machine.pool,
    [VMID_LABEL]: String(machine.vmId),
  };
  const claimed = Object.keys(identity).find(
    (key) => Object.hasOwn(pool.labels, key) && pool.labels[key] !== identity[key],
  );
  if (claimed !== undefined) return refused(`label '${claimed}' is set for each machine`);
  const labels = checkLabels({ ...placeLabels(machine), ...pool.labels, ...identity });
  if (!labels.ok) return labels;
  const labelsToPatch = picked(labels.value, kubeletMayNotSet);
  return accepted({
    nodeName: machine.name,
    providerId: vmProviderId(machine.region, machine.vmId),
    kubeletLabels: picked(labels.value, (key) => !kubeletMayNotSet(key)),
    labelsToPatch,
    taints: taintsOf(pool.taints, Object.keys(labelsToPatch).length > 0),
  });
}

/** Defaults: a pool may give its machines a zone or a type of its own. */
function placeLabels({ region, host, instanceType }: MachineInput): Labels {
  return {
    'topology.kubernetes.io/region': region,
    'topology.kubernetes.io/zone': host,
    ...(instanceType !== undefined && { 'node.kubernetes.io/instance-type': instanceType }),
  };
}

function picked(labels: Labels, isWanted: (key: string) => boolean): Labels {
  const keys = Object.keys(labels).filter(isWanted);
  return Object.fromEntries(keys.map((key) => [key, labels[key] ?? '']));
}

/** A kubelet refuses to register with two taints of the same key and effect. */
function taintsOf(taints: readonly Taint[], isStarting: boolean): readonly Taint[] {
  const wanted = isStarting ? [...taints, STARTUP_TAINT] : taints;
  const unique = new Map(wanted.map((taint) => [`${taint.key}:${taint.effect}`, taint]));
  return [...unique.values()];
}
