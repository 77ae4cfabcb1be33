// SPDX-License-Identifier: Apache-2.0
import type { Taint } from '../../model/taints.ts';
import { parseTaint } from '../../model/taints.ts';
import { Bug } from '../../ports/errors.ts';
import type { ConfigFile, PoolFile, SizeFile } from '../schema/index.ts';
import { parseCount } from '../values/amount.ts';
import { toBytes, toCpuMilli, toMs, toOptionalMs, unwrapParsed } from './convert.ts';
import { buildNetwork } from './network.ts';
import { buildSize } from './sources.ts';

export function buildPool(pool: PoolFile, file: ConfigFile) {
  return {
    name: pool.name,
    regions: pool.regions ?? [],
    from: buildSource(pool),
    join: pool.join ?? ('none' as const),
    size: buildPoolSize(pool.size, file),
    memoryOverheadBytes: toBytes(pool.memoryOverhead),
    balloonBytes: toBytes(pool.balloon),
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
      memoryBytes: toBytes(pool.limits.memory),
    },
    priority: pool.priority,
    network: buildNetwork(pool.network),
    disk: pool.disk,
    vmOptions: pool.vmOptions,
    onboot: pool.onboot,
    labels: pool.labels,
    groupLabel: pool.groupLabel,
    taints: pool.taints.map(buildTaint),
    gpu: pool.gpu,
    extendedResources: buildExtendedResources(pool.extendedResources),
    capacity: buildCapacity(pool.capacity),
    pricePerHour: pool.pricePerHour,
    placement: {
      strategy: pool.placement.strategy,
      hosts: pool.placement.hosts,
      cpuOvercommit: pool.placement.cpuOvercommit,
      memoryOvercommit: pool.placement.memoryOvercommit,
      memoryReserveBytes: toBytes(pool.placement.memoryReserve),
    },
    ...buildScaling(pool),
  };
}

function buildSource({ from }: PoolFile) {
  if (from === undefined) throw new Bug('BUG', 'a pool without a source passed validation');
  if ('image' in from) return { kind: 'image' as const, image: from.image };
  if ('template' in from) {
    return { kind: 'template' as const, template: from.template, clone: from.clone };
  }
  return { kind: 'netboot' as const };
}

function buildPoolSize(size: PoolFile['size'], file: ConfigFile) {
  if (typeof size === 'object' && 'min' in size) {
    return {
      kind: 'span' as const,
      min: buildSize(size.min),
      max: buildSize(size.max),
      stepCpu: size.step.cpu,
      stepMemoryBytes: toBytes(size.step.memory),
    };
  }
  return { kind: 'choice' as const, sizes: [size].flat().map((one) => buildNamedSize(one, file)) };
}

function buildNamedSize(size: string | SizeFile, file: ConfigFile) {
  if (typeof size !== 'string') return { name: undefined, ...buildSize(size) };
  const named = file.sizes[size];
  if (named === undefined) throw new Bug('BUG', 'an undefined size passed validation');
  return { name: size, ...buildSize(named) };
}

function buildTaint(taint: PoolFile['taints'][number]): Taint {
  return typeof taint === 'string' ? unwrapParsed(parseTaint(taint)) : taint;
}

function buildExtendedResources(resources: PoolFile['extendedResources']) {
  return Object.fromEntries(
    Object.entries(resources).map(([name, amount]) => [name, unwrapParsed(parseCount(amount))]),
  );
}

function buildCapacity(capacity: PoolFile['capacity']) {
  return {
    maxPods: capacity.maxPods,
    kubeReserved: buildReserve(capacity.kubeReserved),
    systemReserved: buildReserve(capacity.systemReserved),
    evictionThreshold: {
      memoryBytes: toBytes(capacity.evictionThreshold.memory),
      diskPercentage: capacity.evictionThreshold.diskPercentage,
    },
  };
}

function buildReserve({ cpu, memory, disk }: PoolFile['capacity']['kubeReserved']) {
  return { cpuMilli: toCpuMilli(cpu), memoryBytes: toBytes(memory), diskBytes: toBytes(disk) };
}

function buildScaling(pool: PoolFile) {
  const { scaleUp, scaleDown, headroom } = pool;
  return {
    scaleUp: {
      batchSize: scaleUp.batchSize,
      stabilizationWindowMs: toMs(scaleUp.stabilizationWindow),
      delayAfterAddMs: toMs(scaleUp.delayAfterAdd),
    },
    scaleDown: {
      when: scaleDown.when,
      utilizationThreshold: scaleDown.utilizationThreshold,
      unneededTimeMs: toMs(scaleDown.unneededTime),
      maxConcurrent: scaleDown.maxConcurrent,
      drainTimeoutMs: toMs(scaleDown.drainTimeout),
      delayAfterAddMs: toMs(scaleDown.delayAfterAdd),
      delayAfterDeleteMs: toMs(scaleDown.delayAfterDelete),
      delayAfterFailureMs: toMs(scaleDown.delayAfterFailure),
    },
    headroom: {
      machines: headroom.machines,
      cpu: headroom.cpu,
      memoryBytes: toBytes(headroom.memory),
    },
    schedules: pool.schedules.map((window) => ({
      name: window.name ?? window.start,
      start: window.start,
      durationMs: toMs(window.duration),
      timeZone: window.timeZone,
      min: window.min ?? pool.limits.min,
      max: window.max ?? pool.limits.max,
    })),
    provisionTimeoutMs: toMs(pool.provisionTimeout),
    registrationTimeoutMs: toMs(pool.registrationTimeout),
    deletion: {
      mode: pool.deletion.mode,
      shutdownTimeoutMs: toMs(pool.deletion.shutdownTimeout),
    },
    clusterAutoscaler: buildAutoscalerOptions(pool.clusterAutoscaler),
  };
}

function buildAutoscalerOptions({ options }: PoolFile['clusterAutoscaler']) {
  return {
    scaleDownUtilizationThreshold: options.scaleDownUtilizationThreshold,
    scaleDownGpuUtilizationThreshold: options.scaleDownGpuUtilizationThreshold,
    scaleDownUnneededTimeMs: toOptionalMs(options.scaleDownUnneededTime),
    scaleDownUnreadyTimeMs: toOptionalMs(options.scaleDownUnreadyTime),
    maxNodeProvisionTimeMs: toOptionalMs(options.maxNodeProvisionTime),
    zeroOrMaxNodeScaling: options.zeroOrMaxNodeScaling,
    ignoreDaemonSetsUtilization: options.ignoreDaemonSetsUtilization,
  };
}
