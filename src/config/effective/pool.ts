// SPDX-License-Identifier: Apache-2.0
import type { Taint } from '../../model/taints.ts';
import { parseTaint } from '../../model/taints.ts';
import { Bug } from '../../ports/errors.ts';
import type { ConfigFile, PoolFile, SizeFile } from '../schema/index.ts';
import { parseCount } from '../values/amount.ts';
import { bytesOf, cpuMilliOf, msOf, optionalMs, sure } from './convert.ts';
import { buildNetwork } from './network.ts';
import { buildSize } from './sources.ts';

export function buildPool(pool: PoolFile, file: ConfigFile) {
  return {
    name: pool.name,
    regions: pool.regions ?? [],
    from: fromOf(pool),
    join: pool.join ?? ('none' as const),
    size: sizeOf(pool.size, file),
    memoryOverheadBytes: bytesOf(pool.memoryOverhead),
    balloonBytes: bytesOf(pool.balloon),
    architecture: pool.architecture,
    names: {
      prefix: pool.names.prefix ?? pool.name,
      role: pool.names.role,
      suffix: pool.names.suffix,
    },
    limits: {
      min: pool.limits.min,
      max: pool.limits.max,
      cpu: pool.limits.cpu,
      memoryBytes: bytesOf(pool.limits.memory),
    },
    priority: pool.priority,
    network: buildNetwork(pool.network),
    disk: pool.disk,
    vmOptions: pool.vmOptions,
    onboot: pool.onboot,
    labels: pool.labels,
    groupLabel: pool.groupLabel,
    taints: pool.taints.map(taintOf),
    gpu: pool.gpu,
    extendedResources: countsOf(pool.extendedResources),
    capacity: capacityOf(pool.capacity),
    pricePerHour: pool.pricePerHour,
    placement: {
      strategy: pool.placement.strategy,
      hosts: pool.placement.hosts,
      cpuOvercommit: pool.placement.cpuOvercommit,
      memoryOvercommit: pool.placement.memoryOvercommit,
      memoryReserveBytes: bytesOf(pool.placement.memoryReserve),
    },
    ...scalingOf(pool),
  };
}

function fromOf({ from }: PoolFile) {
  if (from === undefined) throw new Bug('BUG', 'a pool without a source passed the checks');
  if ('image' in from) return { kind: 'image' as const, image: from.image };
  if ('template' in from) {
    return { kind: 'template' as const, template: from.template, clone: from.clone };
  }
  return { kind: 'netboot' as const };
}

function sizeOf(size: PoolFile['size'], file: ConfigFile) {
  if (typeof size === 'object' && 'min' in size) {
    return {
      kind: 'span' as const,
      min: buildSize(size.min),
      max: buildSize(size.max),
      stepCpu: size.step.cpu,
      stepMemoryBytes: bytesOf(size.step.memory),
    };
  }
  return { kind: 'choice' as const, sizes: [size].flat().map((one) => namedSize(one, file)) };
}

function namedSize(size: string | SizeFile, file: ConfigFile) {
  if (typeof size !== 'string') return { name: undefined, ...buildSize(size) };
  const named = file.sizes[size];
  if (named === undefined) throw new Bug('BUG', 'a size without a definition passed the checks');
  return { name: size, ...buildSize(named) };
}

function taintOf(taint: PoolFile['taints'][number]): Taint {
  return typeof taint === 'string' ? sure(parseTaint(taint)) : taint;
}

function countsOf(resources: PoolFile['extendedResources']) {
  return Object.fromEntries(
    Object.entries(resources).map(([name, amount]) => [name, sure(parseCount(amount))]),
  );
}

function capacityOf(capacity: PoolFile['capacity']) {
  return {
    maxPods: capacity.maxPods,
    kubeReserved: reserveOf(capacity.kubeReserved),
    systemReserved: reserveOf(capacity.systemReserved),
    evictionThreshold: {
      memoryBytes: bytesOf(capacity.evictionThreshold.memory),
      diskPercentage: capacity.evictionThreshold.diskPercentage,
    },
  };
}

function reserveOf({ cpu, memory, disk }: PoolFile['capacity']['kubeReserved']) {
  return { cpuMilli: cpuMilliOf(cpu), memoryBytes: bytesOf(memory), diskBytes: bytesOf(disk) };
}

function scalingOf(pool: PoolFile) {
  const { scaleUp, scaleDown, headroom } = pool;
  return {
    scaleUp: {
      batchSize: scaleUp.batchSize,
      stabilizationWindowMs: msOf(scaleUp.stabilizationWindow),
      delayAfterAddMs: msOf(scaleUp.delayAfterAdd),
    },
    scaleDown: {
      when: scaleDown.when,
      utilizationThreshold: scaleDown.utilizationThreshold,
      unneededTimeMs: msOf(scaleDown.unneededTime),
      maxConcurrent: scaleDown.maxConcurrent,
      drainTimeoutMs: msOf(scaleDown.drainTimeout),
      delayAfterAddMs: msOf(scaleDown.delayAfterAdd),
      delayAfterDeleteMs: msOf(scaleDown.delayAfterDelete),
      delayAfterFailureMs: msOf(scaleDown.delayAfterFailure),
    },
    headroom: {
      machines: headroom.machines,
      cpu: headroom.cpu,
      memoryBytes: bytesOf(headroom.memory),
    },
    schedules: pool.schedules.map((window) => ({
      name: window.name ?? window.start,
      start: window.start,
      durationMs: msOf(window.duration),
      timeZone: window.timeZone,
      min: window.min ?? pool.limits.min,
      max: window.max ?? pool.limits.max,
    })),
    provisionTimeoutMs: msOf(pool.provisionTimeout),
    registrationTimeoutMs: msOf(pool.registrationTimeout),
    deletion: {
      mode: pool.deletion.mode,
      shutdownTimeoutMs: msOf(pool.deletion.shutdownTimeout),
    },
    clusterAutoscaler: optionsOf(pool.clusterAutoscaler),
  };
}

function optionsOf({ options }: PoolFile['clusterAutoscaler']) {
  return {
    scaleDownUtilizationThreshold: options.scaleDownUtilizationThreshold,
    scaleDownGpuUtilizationThreshold: options.scaleDownGpuUtilizationThreshold,
    scaleDownUnneededTimeMs: optionalMs(options.scaleDownUnneededTime),
    scaleDownUnreadyTimeMs: optionalMs(options.scaleDownUnreadyTime),
    maxNodeProvisionTimeMs: optionalMs(options.maxNodeProvisionTime),
    zeroOrMaxNodeScaling: options.zeroOrMaxNodeScaling,
    ignoreDaemonSetsUtilization: options.ignoreDaemonSetsUtilization,
  };
}
