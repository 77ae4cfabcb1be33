// SPDX-License-Identifier: Apache-2.0
// The CloudProvider service. Reads are served from memory. An RPC that changes something waits until its intent is
// durable; the fleet does the work later.

import { create } from '@bufbuild/protobuf';
import { AnySchema } from '@bufbuild/protobuf/wkt';
import type { PoolConfig } from '../../config/types/index.ts';
import type { FleetView } from '../../fleet/index.ts';
import type { Machine, MachineId } from '../../model/machine.ts';

import type { LearnedAllocatable } from '../../model/pool.ts';
import { INSTANCE_TYPE_LABEL, type NodeGroup, sizeKey, templateNode } from '../../pools/index.ts';
import type { Clock } from '../../ports/clock.ts';
import { Conflict, InvalidRequest, NotFound, NotOwned, Unreachable } from '../../ports/errors.ts';
import type { FleetAccess } from '../fleet-access.ts';
import type {
  CloudProvider,
  NodeGroupAutoscalingOptionsRequest,
  PricingNodePriceRequest,
  PricingPodPriceRequest,
} from '../gen/externalgrpc/cloud_provider_pb.js';
import type { Implementation } from '../server/services.ts';
import type { CurrentSettings, ExternalGrpcSettings } from '../settings.ts';
import { encodeNode } from './encode-node.ts';
import { Groups } from './groups.ts';
import { effectiveOptions } from './options.ts';
import { readPodRequests } from './pod-requests.ts';
import { billedHours, nodePricePerHour, resourcePricePerHour } from './prices.ts';
import { type NodeReference, type ResolvedNode, resolveNode } from './resolve-node.ts';

export interface ProviderParts {
  readonly fleet: FleetAccess;
  readonly settings: CurrentSettings;
  readonly clock: Pick<Clock, 'now'>;
}

export const REQUESTED_BY = 'cluster-autoscaler';

/**
 * Growth is refused when the last reading of Proxmox is older than this. Headroom drops to zero earlier
 * (HEADROOM_MAX_AGE_MS): an autoscaler that saw headroom at the start of its loop is not refused at the end of it, which
 * would back the group off for minutes.
 */
const VIEW_MAX_AGE_MS = 60_000;

const NO_GROUP = { id: '', minSize: 0, maxSize: 0, debug: '' };

export class Provider {
  readonly #parts: ProviderParts;
  #derived: DerivedFromSettings;

  constructor(parts: ProviderParts) {
    this.#parts = parts;
    this.#derived = derive(parts);
  }

  get groups(): Groups {
    return this.#current().groups;
  }

  beginLoop(): void {
    this.#parts.settings.beginLoop();
  }

  #current(): DerivedFromSettings {
    if (this.#derived.settings !== this.#parts.settings.value) this.#derived = derive(this.#parts);
    return this.#derived;
  }

  groupForNode(node: NodeReference | undefined) {
    if (node === undefined) return NO_GROUP;
    const resolved = resolveNode(node, this.#parts.fleet.view);
    const id = this.#groupOf(resolved);
    return (id === undefined ? undefined : this.groups.find(id)) ?? NO_GROUP;
  }

  async increase(id: string, delta: number, signal: AbortSignal): Promise<void> {
    const { pool } = this.groups.require(id);
    if (delta <= 0) throw invalidRequest(`delta must be positive, not ${delta}`);
    this.#requireFreshView(id, pool);
    const reason = `node group ${id}: ${delta} more requested`;
    const why = { by: REQUESTED_BY, reason, signal, nodeGroup: id };
    await this.#parts.fleet.request(pool.name, delta, why);
  }

  /** All or none: a node that does not belong to the group refuses the whole call before anything is written. */
  async deleteNodes(
    id: string,
    nodes: readonly NodeReference[],
    signal: AbortSignal,
  ): Promise<void> {
    this.groups.require(id);
    const machines = new Set<MachineId>();
    for (const node of nodes) {
      const machine = this.#findMachineToDelete(id, node);
      if (machine !== undefined) machines.add(machine);
    }
    if (machines.size === 0) return;
    const reason = `node group ${id}: ${machines.size} no longer needed`;
    await this.#parts.fleet.remove([...machines], { by: REQUESTED_BY, reason, signal });
  }

  async decrease(id: string, delta: number, signal: AbortSignal): Promise<void> {
    const { pool } = this.groups.require(id);
    if (delta >= 0) throw invalidRequest(`delta must be negative, not ${delta}`);
    const reason = `node group ${id}: target lowered by ${-delta}, limited to machines not created yet`;
    const why = { by: REQUESTED_BY, reason, signal, nodeGroup: id };
    await this.#parts.fleet.cancel(pool.name, -delta, why);
  }

  template(id: string): Uint8Array {
    const { groups, templates } = this.#current();
    return templates.bytes(groups.require(id));
  }

  options({ id, defaults }: NodeGroupAutoscalingOptionsRequest) {
    const options = effectiveOptions(this.groups.require(id).pool.clusterAutoscaler, defaults);
    return options === undefined ? {} : { nodeGroupAutoscalingOptions: options };
  }

  /** The autoscaler sends a template node, which has labels and no provider id. */
  nodePrice(request: PricingNodePriceRequest): number {
    const { node } = request;
    if (node === undefined) throw invalidRequest('the request contains no node');
    const { fleet } = this.#parts;
    const { pricing } = this.#current().settings;
    const named = this.groups.list().find((group) => isNodeOf(group, node.labels));
    const id = named?.id ?? this.#groupOf(resolveNode(node, fleet.view));
    if (id === undefined)
      throw new NotFound('MACHINE_NOT_FOUND', 'the node belongs to no node group');
    const perHour = nodePricePerHour(this.groups.require(id).pool, pricing);
    const { startTimestamp, endTimestamp, startTime, endTime } = request;
    return perHour * billedHours([startTimestamp, endTimestamp], [startTime, endTime]);
  }

  podPrice(request: PricingPodPriceRequest): number {
    const requests = readPodRequests(request.podBytes.length > 0 ? request.podBytes : request.pod);
    const perHour = resourcePricePerHour(requests, this.#current().settings.pricing);
    const { startTimestamp, endTimestamp, startTime, endTime } = request;
    return perHour * billedHours([startTimestamp, endTimestamp], [startTime, endTime]);
  }

  gpuTypes(): readonly string[] {
    const { pools, gpu } = this.#current().settings;
    return [...new Set([...gpu.types, ...pools.flatMap((pool) => pool.gpu?.type ?? [])])];
  }

  gpuLabel(): string {
    return this.gpuTypes().length === 0 ? '' : this.#current().settings.gpu.label;
  }

  /** Undefined for a foreign node and for a machine that is gone. A pool that left the config has no group in use. */
  #groupOf(resolved: ResolvedNode): string | undefined {
    if (resolved.kind !== 'machine' && resolved.kind !== 'requested') return undefined;
    if (resolved.kind === 'machine' && resolved.machine.phase === 'gone') return undefined;
    const { pool, size } = resolved.kind === 'machine' ? resolved.machine : resolved.intent;
    // Not a valid id: a removed pool may have had the name of a group.
    return this.groups.idFor(pool, size) ?? `${pool} (not in the config)`;
  }

  /** Undefined when the machine is gone already. */
  #findMachineToDelete(group: string, node: NodeReference): MachineId | undefined {
    const resolved = resolveNode(node, this.#parts.fleet.view);
    const own = this.#groupOf(resolved);
    if (own !== undefined && own !== group) {
      throw new NotOwned(
        'VM_NOT_OWNED',
        `${describeNode(node)} belongs to node group ${own}, not ${group}`,
      );
    }
    switch (resolved.kind) {
      case 'machine':
        if (resolved.machine.phase === 'gone') return undefined;
        refuseRegisteredMachine(node, resolved.machine);
        return resolved.id;
      case 'requested':
        return resolved.id;
      case 'stale':
        if (!this.#isUnmanagedVm(resolved)) return undefined;
        throw new NotOwned(
          'VM_NOT_OWNED',
          `${describeNode(node)} exists but is not managed by pvescaler`,
        );
      case 'foreign':
        throw new NotOwned('VM_NOT_OWNED', `${describeNode(node)} is not managed by pvescaler`);
    }
  }

  /** Whether the last reading contains a VM with this id, though no machine has it. */
  #isUnmanagedVm({ region, vmId }: Extract<ResolvedNode, { kind: 'stale' }>): boolean {
    if (region === undefined || vmId === undefined) return false;
    const { forecast } = this.#parts.fleet;
    return forecast.takenAt(region) === undefined || forecast.hasVm(region, vmId);
  }

  #requireFreshView(id: string, pool: PoolConfig): void {
    if (this.groups.isReadWithin(pool, VIEW_MAX_AGE_MS)) return;
    const { forecast } = this.#parts.fleet;
    const reasons = pool.regions.map((region) => {
      const error = forecast.readError(region) ?? 'it has not been read yet';
      return `region ${region}: ${error}`;
    });
    throw new Unreachable(
      'VIEW_STALE',
      `node group ${id} cannot grow: the last reading of Proxmox is older than a minute (${reasons.join('; ')})`,
    );
  }
}

interface DerivedFromSettings {
  readonly settings: ExternalGrpcSettings;
  readonly groups: Groups;
  readonly templates: Templates;
}

function derive({
  fleet,
  clock,
  settings: { value: settings },
}: ProviderParts): DerivedFromSettings {
  return {
    settings,
    groups: new Groups({ fleet, clock, settings }),
    templates: new Templates(fleet.view, settings),
  };
}

/** Sizes of one pool are told apart by the instance type, which no label of the pool may override. */
function isNodeOf({ pool }: NodeGroup, labels: Readonly<Record<string, string>>): boolean {
  if (labels[pool.groupLabel] !== pool.name) return false;
  return pool.nodeGroups.length === 0 || labels[INSTANCE_TYPE_LABEL] === pool.instanceType;
}

/**
 * The autoscaler's list of instances is up to two minutes old. It deletes instances that did not register in time, by
 * the id from that list. A machine whose Node has registered since has another id and runs pods.
 */
function refuseRegisteredMachine({ name, providerID }: NodeReference, machine: Machine): void {
  const { nodeName, providerId, failure, phase } = machine;
  const isPlaceholderNode = name === providerID;
  if (
    !isPlaceholderNode ||
    nodeName === undefined ||
    providerId === undefined ||
    providerId === providerID
  ) {
    return;
  }
  if (failure !== undefined || phase === 'deleting') return;
  throw new Conflict(
    'MACHINE_JOINED',
    `${describeNode({ name, providerID })} has registered as node ${nodeName} (${providerId})`,
  );
}

function invalidRequest(problem: string): InvalidRequest {
  return new InvalidRequest('REQUEST_INVALID', problem);
}

function describeNode({ name, providerID }: NodeReference): string {
  const text = providerID === '' || providerID === name ? name : `${name} (${providerID})`;
  return `node ${JSON.stringify(text.slice(0, 200))}`;
}

/** The service, one line per RPC. */
export function createCloudProviderService(
  provider: Provider,
): Implementation<typeof CloudProvider> {
  return {
    nodeGroups: () => ({ nodeGroups: [...provider.groups.all()] }),
    nodeGroupForNode: ({ node }) => ({ nodeGroup: provider.groupForNode(node) }),
    pricingNodePrice: (request) => ({ price: provider.nodePrice(request) }),
    pricingPodPrice: (request) => ({ price: provider.podPrice(request) }),
    gPULabel: () => ({ label: provider.gpuLabel() }),
    getAvailableGPUTypes: () => ({
      gpuTypes: Object.fromEntries(provider.gpuTypes().map((type) => [type, create(AnySchema)])),
    }),
    // The autoscaler calls this when it exits. Machines stay.
    cleanup: () => ({}),
    // The view is refreshed continuously.
    refresh: () => {
      provider.beginLoop();
      return {};
    },
    nodeGroupTargetSize: ({ id }) => ({ targetSize: provider.groups.targetSize(id) }),
    nodeGroupIncreaseSize: async ({ id, delta }, { signal }) => {
      await provider.increase(id, delta, signal);
      return {};
    },
    nodeGroupDeleteNodes: async ({ id, nodes }, { signal }) => {
      await provider.deleteNodes(id, nodes, signal);
      return {};
    },
    nodeGroupDecreaseTargetSize: async ({ id, delta }, { signal }) => {
      await provider.decrease(id, delta, signal);
      return {};
    },
    nodeGroupNodes: ({ id }) => provider.groups.instances(id),
    nodeGroupTemplateNodeInfo: ({ id }) => {
      const bytes = provider.template(id);
      return { nodeInfo: bytes, nodeBytes: bytes };
    },
    nodeGroupGetOptions: (request) => provider.options(request),
  };
}

// Encoded template nodes of the groups, encoded again when the learned allocatable changes.

interface EncodedTemplate {
  readonly learned: LearnedAllocatable | undefined;
  readonly bytes: Uint8Array;
}

class Templates {
  readonly #view: Pick<FleetView, 'pools'>;
  readonly #gpuLabel: string;
  readonly #encoded = new Map<string, EncodedTemplate>();

  constructor(view: Pick<FleetView, 'pools'>, { gpu }: ExternalGrpcSettings) {
    this.#view = view;
    this.#gpuLabel = gpu.label;
  }

  bytes(group: NodeGroup): Uint8Array {
    const { id, pool } = group;
    const learned = this.#view.pools.get(pool.name)?.allocatable[sizeKey(pool.size)];
    const known = this.#encoded.get(id);
    if (known !== undefined && known.learned === learned) return known.bytes;
    const bytes = encodeNode(templateNode(group, { gpuLabel: this.#gpuLabel, learned }));
    this.#encoded.set(id, { learned, bytes });
    return bytes;
  }
}
