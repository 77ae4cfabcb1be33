// SPDX-License-Identifier: Apache-2.0
// The Node object that the kubelet registers, and the status that it reports.
import type { GuestOsInfo } from '../guest-types.ts';
import { computeAllocatable, computeCapacity, type GuestSize } from './capacity.ts';
import { type KubeletSettings, parseLabels, parseTaints } from './settings.ts';

export interface GuestFacts {
  readonly size: GuestSize;
  readonly systemUuid: string;
  readonly machineId: string;
  readonly bootId: string;
  readonly os: GuestOsInfo;
  readonly hostname: string;
  readonly address: string | undefined;
}

const ARCHITECTURES: Readonly<Record<string, string>> = { x86_64: 'amd64', aarch64: 'arm64' };

export function buildNode(settings: KubeletSettings, facts: GuestFacts) {
  const architecture = ARCHITECTURES[facts.os.machine] ?? facts.os.machine;
  const taints = parseTaints(settings);
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name: settings.nodeName,
      labels: {
        'kubernetes.io/hostname': settings.nodeName,
        'kubernetes.io/os': 'linux',
        'kubernetes.io/arch': architecture,
        'beta.kubernetes.io/os': 'linux',
        'beta.kubernetes.io/arch': architecture,
        ...parseLabels(settings),
      },
      annotations: { 'volumes.kubernetes.io/controller-managed-attach-detach': 'true' },
    },
    spec: {
      ...(settings.providerId !== undefined && { providerID: settings.providerId }),
      ...(taints.length > 0 && { taints }),
    },
  };
}

interface NodeStatusInput {
  readonly isReady: boolean;
  readonly now: number;
  readonly readySince: number;
}

export function buildNodeStatus(
  settings: KubeletSettings,
  facts: GuestFacts,
  input: NodeStatusInput,
) {
  const { os } = facts;
  const capacity = computeCapacity(facts.size, settings);
  const architecture = ARCHITECTURES[os.machine] ?? os.machine;
  return {
    capacity,
    allocatable: computeAllocatable(capacity, settings),
    addresses: [
      ...(facts.address === undefined ? [] : [{ type: 'InternalIP', address: facts.address }]),
      { type: 'Hostname', address: facts.hostname },
    ],
    conditions: buildConditions(input),
    daemonEndpoints: { kubeletEndpoint: { Port: 10250 } },
    nodeInfo: {
      machineID: facts.machineId,
      systemUUID: facts.systemUuid,
      bootID: facts.bootId,
      kernelVersion: os['kernel-release'],
      osImage: os['pretty-name'],
      containerRuntimeVersion: 'containerd://2.1.4',
      kubeletVersion: settings.version,
      kubeProxyVersion: '',
      operatingSystem: 'linux',
      architecture,
    },
  };
}

const PRESSURES = [
  ['MemoryPressure', 'KubeletHasSufficientMemory', 'kubelet has sufficient memory available'],
  ['DiskPressure', 'KubeletHasNoDiskPressure', 'kubelet has no disk pressure'],
  ['PIDPressure', 'KubeletHasSufficientPID', 'kubelet has sufficient PID available'],
] as const;

function buildConditions({ isReady, now, readySince }: NodeStatusInput) {
  const lastHeartbeatTime = formatTimestamp(now);
  const lastTransitionTime = formatTimestamp(readySince);
  const pressures = PRESSURES.map(([type, reason, message]) => ({
    type,
    status: 'False',
    reason,
    message,
    lastHeartbeatTime,
    lastTransitionTime,
  }));
  const ready = isReady
    ? { status: 'True', reason: 'KubeletReady', message: 'kubelet is posting ready status' }
    : {
        status: 'False',
        reason: 'KubeletNotReady',
        message: 'container runtime network not ready: cni plugin not initialized',
      };
  return [...pressures, { type: 'Ready', ...ready, lastHeartbeatTime, lastTransitionTime }];
}

/** RFC 3339 with whole seconds, as Kubernetes writes timestamps. */
export function formatTimestamp(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z');
}
