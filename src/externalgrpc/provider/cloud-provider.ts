// SPDX-License-Identifier: Apache-2.0
// The CloudProvider service. Every answer comes from memory; what changes something is written down, and that is all
// an RPC waits for. The work happens in the fleet.
import { create } from '@bufbuild/protobuf';
import { AnySchema } from '@bufbuild/protobuf/wkt';
import type { Machine } from '../../model/machine.ts';
import type { MachineId } from '../../model/machine-id.ts';
import type { Clock } from '../../ports/clock.ts';
import { Conflict, InvalidRequest, NotFound, NotOwned, Unreachable } from '../../ports/errors.ts';
import type { FleetSide } from '../fleet-side.ts';
import type {
  CloudProvider,
  NodeGroupAutoscalingOptionsRequest,
  PricingNodePriceRequest,
  PricingPodPriceRequest,
} from '../gen/externalgrpc/cloud_provider_pb.js';
import type { Implementation } from '../server/services.ts';
import type { FaceSettings, GroupSettings } from '../settings.ts';
import { Templates } from '../template/templates.ts';
import { Groups } from './groups.ts';
import { answeredOptions } from './options.ts';
import { readPodDemand } from './pod-requests.ts';
import { hoursOf, nodePricePerHour, pricePerHourOf } from './prices.ts';
import { type AskedNode, type Resolved, resolveNode } from './resolve-node.ts';

export interface ProviderParts {
  readonly fleet: FleetSide;
  readonly settings: FaceSettings;
  readonly clock: Pick<Clock, 'now'>;
}

export const REQUESTED_BY = 'cluster-autoscaler';

/**
 * Older than this, a view of Proxmox is no ground to promise anything on. Room is not offered any more a while before:
 * who asks for what was offered at the beginning of his loop is not refused, which would cost the group minutes.
 */
const VIEW_TOO_OLD_MS = 60_000;

const NO_GROUP = { id: '', minSize: 0, maxSize: 0, debug: '' };

export class Provider {
  readonly groups: Groups;
  readonly #parts: ProviderParts;
  readonly #templates: Templates;

  constructor(parts: ProviderParts) {
    this.#parts = parts;
    this.groups = new Groups(parts);
    this.#templates = new Templates(parts.fleet.view, parts.settings);
  }

  groupForNode(node: AskedNode | undefined) {
    if (node === undefined) return NO_GROUP;
    const resolved = resolveNode(node, this.#parts.fleet.view);
    const pool = poolOf(resolved);
    return (pool === undefined ? undefined : this.groups.find(pool)) ?? NO_GROUP;
  }

  async increase(id: string, delta: number, signal: AbortSignal): Promise<void> {
    const group = this.groups.settings(id);
    if (delta <= 0) throw invalid(`delta ${delta} is not positive`);
    this.#requireFreshView(group);
    const reason = `${delta} more for node group ${id}`;
    await this.#parts.fleet.request(id, delta, { by: REQUESTED_BY, reason, signal });
  }

  /** All of them or none: what is not the group's own is refused before anything is written. */
  async deleteNodes(id: string, nodes: readonly AskedNode[], signal: AbortSignal): Promise<void> {
    this.groups.settings(id);
    const machines = new Set<MachineId>();
    for (const node of nodes) {
      const machine = this.#toDelete(id, node);
      if (machine !== undefined) machines.add(machine);
    }
    if (machines.size === 0) return;
    const reason = `${machines.size} of node group ${id} are not needed`;
    await this.#parts.fleet.remove([...machines], { by: REQUESTED_BY, reason, signal });
  }

  async decrease(id: string, delta: number, signal: AbortSignal): Promise<void> {
    this.groups.settings(id);
    if (delta >= 0) throw invalid(`delta ${delta} is not negative`);
    const reason = `node group ${id} is to be ${-delta} smaller, as far as nothing is made yet`;
    await this.#parts.fleet.cancel(id, -delta, { by: REQUESTED_BY, reason, signal });
  }

  template(id: string): Uint8Array {
    return this.#templates.bytes(this.groups.settings(id));
  }

  options({ id, defaults }: NodeGroupAutoscalingOptionsRequest) {
    const options = answeredOptions(this.groups.settings(id).options, defaults);
    return options === undefined ? {} : { nodeGroupAutoscalingOptions: options };
  }

  /** The autoscaler asks with a template node, which has labels and no provider id. */
  nodePrice(request: PricingNodePriceRequest): number {
    const { node } = request;
    if (node === undefined) throw invalid('no node');
    const { settings, fleet } = this.#parts;
    const named = settings.groups.find((group) => node.labels[group.groupLabel] === group.name);
    const pool = named?.name ?? poolOf(resolveNode(node, fleet.view));
    if (pool === undefined) throw new NotFound('MACHINE_NOT_FOUND', 'the node is of no node group');
    const perHour = nodePricePerHour(this.groups.settings(pool), settings.pricing);
    const { startTimestamp, endTimestamp, startTime, endTime } = request;
    return perHour * hoursOf([startTimestamp, endTimestamp], [startTime, endTime]);
  }

  podPrice(request: PricingPodPriceRequest): number {
    const demand = readPodDemand(request.podBytes.length > 0 ? request.podBytes : request.pod);
    const perHour = pricePerHourOf(demand, this.#parts.settings.pricing);
    const { startTimestamp, endTimestamp, startTime, endTime } = request;
    return perHour * hoursOf([startTimestamp, endTimestamp], [startTime, endTime]);
  }

  gpuTypes(): readonly string[] {
    const { groups, gpu } = this.#parts.settings;
    return [...new Set([...gpu.types, ...groups.flatMap((group) => group.gpu?.type ?? [])])];
  }

  gpuLabel(): string {
    return this.gpuTypes().length === 0 ? '' : this.#parts.settings.gpu.label;
  }

  /** Undefined for what is gone already. */
  #toDelete(group: string, node: AskedNode): MachineId | undefined {
    const resolved = resolveNode(node, this.#parts.fleet.view);
    const pool = poolOf(resolved);
    if (pool !== undefined && pool !== group) {
      throw new NotOwned('VM_NOT_OWNED', `${said(node)} is of node group ${pool}, not ${group}`);
    }
    switch (resolved.kind) {
      case 'machine':
        if (resolved.machine.phase === 'gone') return undefined;
        requireSameId(node, resolved.machine);
        return resolved.id;
      case 'coming':
        return resolved.id;
      case 'past':
        if (!this.#isStranger(resolved)) return undefined;
        throw new NotOwned('VM_NOT_OWNED', `${said(node)} is there and is none of our machines`);
      default:
        throw new NotOwned('VM_NOT_OWNED', `${said(node)} is none of our machines`);
    }
  }

  /** A VM that the last view has under an id of which no machine is known. */
  #isStranger({ region, vmId }: Extract<Resolved, { kind: 'past' }>): boolean {
    if (region === undefined || vmId === undefined) return false;
    const { forecast } = this.#parts.fleet;
    return forecast.takenAt(region) === undefined || forecast.hasVm(region, vmId);
  }

  #requireFreshView(group: GroupSettings): void {
    if (this.groups.isSeen(group, VIEW_TOO_OLD_MS)) return;
    const { name, regions } = group;
    const { forecast } = this.#parts.fleet;
    const reasons = regions.map((region) => {
      const why = forecast.readError(region) ?? 'it has not been read yet';
      return `region ${region}: ${why}`;
    });
    throw new Unreachable(
      'VIEW_STALE',
      `Proxmox has not been seen for a minute, node group ${name} does not grow (${reasons.join('; ')})`,
    );
  }
}

/** Undefined for what is not ours and for what is over. */
function poolOf(resolved: Resolved): string | undefined {
  if (resolved.kind === 'coming') return resolved.intent.pool;
  if (resolved.kind !== 'machine' || resolved.machine.phase === 'gone') return undefined;
  return resolved.machine.pool;
}

/**
 * The autoscaler's list of instances is up to two minutes old. It takes away what does not register in time, by the id
 * that it had then; whoever has registered meanwhile has another one, and is at work.
 */
function requireSameId({ name, providerID }: AskedNode, machine: Machine): void {
  const { nodeName, providerId, failure, phase } = machine;
  const isFake = name === providerID;
  if (!isFake || nodeName === undefined || providerId === undefined || providerId === providerID) {
    return;
  }
  if (failure !== undefined || phase === 'deleting') return;
  throw new Conflict(
    'MACHINE_JOINED',
    `${said({ name, providerID })} has become node ${nodeName}, ${providerId}`,
  );
}

function invalid(problem: string): InvalidRequest {
  return new InvalidRequest('REQUEST_INVALID', problem);
}

function said({ name, providerID }: AskedNode): string {
  const text = providerID === '' || providerID === name ? name : `${name} (${providerID})`;
  return `node ${JSON.stringify(text.slice(0, 200))}`;
}

/** The service, one line per RPC. */
export function cloudProvider(provider: Provider): Implementation<typeof CloudProvider> {
  return {
    nodeGroups: () => ({ nodeGroups: [...provider.groups.all()] }),
    nodeGroupForNode: ({ node }) => ({ nodeGroup: provider.groupForNode(node) }),
    pricingNodePrice: (request) => ({ price: provider.nodePrice(request) }),
    pricingPodPrice: (request) => ({ price: provider.podPrice(request) }),
    gPULabel: () => ({ label: provider.gpuLabel() }),
    getAvailableGPUTypes: () => ({
      gpuTypes: Object.fromEntries(provider.gpuTypes().map((type) => [type, create(AnySchema)])),
    }),
    // The autoscaler says so when it ends: no reason to take anything away.
    cleanup: () => ({}),
    // Everything is as fresh as it gets without a call to anybody.
    refresh: () => ({}),
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
