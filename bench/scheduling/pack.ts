// SPDX-License-Identifier: Apache-2.0
// Runs the workload with `pack`. Measures from the Kubernetes pod objects to the finished plan.

import { podFromKubernetes } from '../../src/model/pod-from-kubernetes.ts';
import { NO_RESOURCES } from '../../src/model/resources.ts';
import { type Packing, type PoolOffer, pack, Snapshot } from '../../src/scheduling/index.ts';
import type { Size, Workload } from './workload.ts';

export interface PlannedCapacity {
  readonly nodes: number;
  readonly cpuMilli: number;
  readonly memoryBytes: number;
  readonly unplaced: number;
}

export interface BenchmarkRun extends PlannedCapacity {
  readonly seconds: number;
  readonly cpuSeconds: number;
}

export function poolOffer({ offerings, sizes }: Workload): PoolOffer {
  const zones = [...new Set(offerings.map(({ zone }) => zone))];
  return {
    name: 'workers',
    labels: {},
    taints: [],
    sizes: sizes.map(sizeOffer),
    domains: zones.map((zone) => ({
      name: zone,
      labels: { 'topology.kubernetes.io/zone': zone },
    })),
  };
}

function sizeOffer(size: Size) {
  const { name, cpuMilli, memoryBytes, pods, price } = size;
  const capacity = { ...NO_RESOURCES, cpuMilli, memoryBytes, pods };
  const allocatable = {
    ...capacity,
    cpuMilli: cpuMilli - size.reservedCpuMilli,
    memoryBytes: memoryBytes - size.reservedMemoryBytes,
  };
  return { name, capacity, allocatable, price };
}

/** `readingCpuSeconds`: the part of `cpuSeconds` for reading the pods. */
interface OurRun extends BenchmarkRun {
  readonly readingCpuSeconds: number;
}

export function runPack(work: Workload): { readonly packing: Packing; readonly run: OurRun } {
  const pools = [poolOffer(work)];
  const started = performance.now();
  const cpu = process.cpuUsage();
  const pods = work.pods.map((source) => {
    const pod = podFromKubernetes(source);
    if (!pod.ok) throw new Error(pod.problem);
    return pod.value;
  });
  const readingCpuSeconds = cpuSecondsSince(cpu);
  const packing = pack(Snapshot.of({ nodes: [] }), pods, { pools });
  const seconds = (performance.now() - started) / 1000;
  const cpuSeconds = cpuSecondsSince(cpu);
  return {
    packing,
    run: { seconds, cpuSeconds, readingCpuSeconds, ...plannedCapacity(packing) },
  };
}

function cpuSecondsSince(start: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(start);
  return (user + system) / 1e6;
}

function plannedCapacity({ machines, unplaced }: Packing): PlannedCapacity {
  return {
    nodes: machines.length,
    cpuMilli: machines.reduce((sum, { size }) => sum + size.capacity.cpuMilli, 0),
    memoryBytes: machines.reduce((sum, { size }) => sum + size.capacity.memoryBytes, 0),
    unplaced: unplaced.length,
  };
}
