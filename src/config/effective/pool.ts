// SPDX-License-Identifier: Apache-2.0
import { nodeGroupId } from '../../model/names.ts';
import type { Taint } from '../../model/taints.ts';
import { parseTaint } from '../../model/taints.ts';
import { Bug } from '../../ports/errors.ts';
import type { ConfigFile, PoolFile, SizeFile } from '../schema/index.ts';
import { parseCount } from '../values/amount.ts';
import { toBytes, toCpuMilli, toMs, toOptionalMs, unwrapParsed } from './convert.ts';
import { buildNetwork } from './network.ts';
import { buildSize } from './sources.ts';

/**
 * The pool that every other folder receives. Keys without a unit pass through unchanged; all conversions and derived
 * values are here, so that a new key needs no line between the schema and its use.
 */
export function buildPool(pool: PoolFile, file: ConfigFile) {
  const { memoryOverhead, balloon, onboot, provisionTimeout, registrationTimeout, ...rest } = pool;
  const join = pool.join ?? ('none' as const);
  return {
    ...rest,
    regions: pool.regions ?? [],
    from: requireSource(pool),
    join,
    /** True when its machines become Nodes. */
    joins: join !== 'none',
    ...buildSizes(pool, file),
    nodeGroups: buildNodeGroups(pool, file),
    memoryOverheadBytes: toBytes(memoryOverhead),
    balloonBytes: toBytes(balloon),
    names: { ...pool.names, prefix: pool.names.prefix ?? pool.name },
    limits: buildLimits(pool.limits),
    network: buildNetwork(pool.network),
    vmOptions: buildVmOptions({ onboot, ...pool.vmOptions }),
    taints: pool.taints.map(buildTaint),
    extendedResources: buildExtendedResources(pool.extendedResources),
    capacity: buildCapacity(pool.capacity),
    placement: buildPlacement(pool.placement),
    zone: findZone(pool),
    ...buildScaling(pool),
    /** Without an autoscaler beside it, pvescaler itself. */
    minKeptBy: file.mode === 'externalgrpc' ? pool.clusterAutoscaler.minKeptBy : 'pvescaler',
    provisionTimeoutMs: toMs(provisionTimeout),
    registrationTimeoutMs: toMs(registrationTimeout),
  };
}

function buildLimits({ memory, ...limits }: PoolFile['limits']) {
  return { ...limits, memoryBytes: toBytes(memory) };
}

function buildPlacement({ memoryReserve, ...placement }: PoolFile['placement']) {
  return { ...placement, memoryReserveBytes: toBytes(memoryReserve) };
}

/** As text, in the notation of Proxmox. */
function buildVmOptions(options: PoolFile['vmOptions']): Record<string, string> {
  return Object.fromEntries(
    Object.entries(options).map(([name, value]) => [
      name,
      String(typeof value === 'boolean' ? Number(value) : value),
    ]),
  );
}

/** The zone of a Node is its host, which is known in advance only when the pool may use a single host. */
function findZone({ placement, labels }: PoolFile): string | undefined {
  const { allow } = placement.hosts;
  return labels['topology.kubernetes.io/zone'] ?? (allow.length === 1 ? allow[0] : undefined);
}

function requireSource({ from }: PoolFile) {
  if (from === undefined) throw new Bug('BUG', 'a pool without a source passed validation');
  return buildSource(from);
}

export function buildSource(from: NonNullable<PoolFile['from']>) {
  if ('image' in from) return { kind: 'image' as const, image: from.image };
  if ('template' in from) {
    return { kind: 'template' as const, template: from.template, clone: from.clone };
  }
  return { kind: 'netboot' as const };
}

function buildSizes({ size }: PoolFile, file: ConfigFile) {
  const sizes = buildPoolSizes(size, file);
  const [first, ...others] =
    sizes.kind === 'span' ? [{ name: undefined, ...sizes.min }] : sizes.sizes;
  if (first === undefined) throw new Bug('BUG', 'a pool without a size passed validation');
  const { name: instanceType, ...defaultSize } = first;
  return {
    sizes,
    /** Of machines that are requested without a size: the first of a list, the smallest of a span. */
    size: defaultSize,
    /** Name of that size. */
    instanceType,
    instanceTypes: [first, ...others].flatMap(({ name, ...amounts }) =>
      name === undefined ? [] : [{ name, ...amounts }],
    ),
  };
}

function buildPoolSizes(size: PoolFile['size'], file: ConfigFile) {
  if (typeof size === 'object' && 'min' in size) {
    return {
      kind: 'span' as const,
      min: buildSize(size.min),
      max: buildSize(size.max),
      stepCpu: size.step.cpu,
      stepMemoryBytes: toBytes(size.step.memory),
    };
  }
  return {
    kind: 'choice' as const,
    sizes: [size].flat().map((each) => buildNamedSize(each, file)),
  };
}

/** One per size of a list, in mode externalgrpc; else none: the pool itself is the only node group. */
function buildNodeGroups({ name, size }: PoolFile, file: ConfigFile) {
  if (file.mode !== 'externalgrpc' || !Array.isArray(size)) return [];
  return size.map((each) => {
    const { name: instanceType, ...amounts } = buildNamedSize(each, file);
    if (instanceType === undefined)
      throw new Bug('BUG', 'a list with an unnamed size passed validation');
    return { id: nodeGroupId(name, instanceType), instanceType, size: amounts };
  });
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
  const { memory, ...evictionThreshold } = capacity.evictionThreshold;
  return {
    ...capacity,
    kubeReserved: buildReserve(capacity.kubeReserved),
    systemReserved: buildReserve(capacity.systemReserved),
    evictionThreshold: { ...evictionThreshold, memoryBytes: toBytes(memory) },
  };
}

function buildReserve({ cpu, memory, disk }: PoolFile['capacity']['kubeReserved']) {
  return { cpuMilli: toCpuMilli(cpu), memoryBytes: toBytes(memory), diskBytes: toBytes(disk) };
}

function buildScaling({
  limits,
  scaleUp,
  scaleDown,
  headroom,
  schedules,
  deletion,
  clusterAutoscaler,
}: PoolFile) {
  const { shutdownTimeout, ...deletionRest } = deletion;
  const { memory: headroomMemory, ...headroomRest } = headroom;
  return {
    scaleUp: buildScaleUp(scaleUp),
    scaleDown: buildScaleDown(scaleDown),
    headroom: { ...headroomRest, memoryBytes: toBytes(headroomMemory) },
    schedules: schedules.map(({ duration, ...schedule }) => ({
      ...schedule,
      name: schedule.name ?? schedule.start,
      durationMs: toMs(duration),
      min: schedule.min ?? limits.min,
      max: schedule.max ?? limits.max,
    })),
    deletion: { ...deletionRest, shutdownTimeoutMs: toMs(shutdownTimeout) },
    clusterAutoscaler: buildAutoscalerOptions(clusterAutoscaler),
  };
}

function buildScaleUp({ stabilizationWindow, delayAfterAdd, ...rest }: PoolFile['scaleUp']) {
  return {
    ...rest,
    stabilizationWindowMs: toMs(stabilizationWindow),
    delayAfterAddMs: toMs(delayAfterAdd),
  };
}

function buildScaleDown(scaleDown: PoolFile['scaleDown']) {
  const {
    unneededTime,
    drainTimeout,
    delayAfterAdd,
    delayAfterDelete,
    delayAfterFailure,
    ...rest
  } = scaleDown;
  return {
    ...rest,
    unneededTimeMs: toMs(unneededTime),
    drainTimeoutMs: toMs(drainTimeout),
    delayAfterAddMs: toMs(delayAfterAdd),
    delayAfterDeleteMs: toMs(delayAfterDelete),
    delayAfterFailureMs: toMs(delayAfterFailure),
  };
}

/** Undefined: the autoscaler's own flag applies. */
function buildAutoscalerOptions({ options }: PoolFile['clusterAutoscaler']) {
  const { scaleDownUnneededTime, scaleDownUnreadyTime, maxNodeProvisionTime, ...rest } = options;
  return {
    ...rest,
    scaleDownUnneededTimeMs: toOptionalMs(scaleDownUnneededTime),
    scaleDownUnreadyTimeMs: toOptionalMs(scaleDownUnreadyTime),
    maxNodeProvisionTimeMs: toOptionalMs(maxNodeProvisionTime),
  };
}
