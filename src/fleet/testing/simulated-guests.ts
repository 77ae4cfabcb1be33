// SPDX-License-Identifier: Apache-2.0
// The guests of a MemoryHypervisor. A running guest reads its seed, registers its Node if the cluster has the token in the
// seed, and becomes Ready. When the VM stops, the Node becomes NotReady. Guests read only their seed and SMBIOS UUID.
import { vmProviderId } from '../../model/provider-id.ts';
import { parseTaint } from '../../model/taints.ts';
import type { ClusterNode } from '../../ports/cluster.ts';
import type { MemoryCluster } from '../../ports/fakes/memory-cluster.ts';
import type { MemoryHypervisor } from '../../ports/fakes/memory-hypervisor.ts';
import type { MemoryVm } from '../../ports/fakes/memory-region.ts';
import { aClusterNode } from '../../ports/fakes/sample-cluster.ts';
import type { VirtualClock } from '../../ports/fakes/virtual-clock.ts';

const BOOT_MS = 4_000;
/** From the registration. */
const READY_MS = 2_000;

export interface GuestBehaviour {
  /** Its node has the size of its VM, not the same size as all others. */
  readonly reportsVmSize?: boolean;
  /** Registers without a provider id. */
  readonly withoutProviderId?: boolean;
  /** Never registers. */
  readonly neverRegisters?: boolean;
  /** Time from the start of the VM to the registration, if it is not the usual one. */
  readonly bootMs?: number;
  /** Registers and never becomes Ready. */
  readonly neverReady?: boolean;
}

export interface GuestParts {
  readonly clock: VirtualClock;
  readonly hypervisor: MemoryHypervisor;
  readonly cluster: MemoryCluster;
}

export class SimulatedGuests {
  /** SMBIOS UUIDs of guests that have a node certificate and need no token any more. */
  readonly #joined = new Set<string>();
  behaviour: GuestBehaviour = {};
  readonly #parts: GuestParts;
  /** The seed that each guest read at its first start, by SMBIOS UUID. */
  readonly #seeds = new Map<string, string>();

  constructor(parts: GuestParts) {
    this.#parts = parts;
  }

  /** Advances all guests to the current time. */
  settle(): void {
    const { hypervisor, clock, cluster } = this.#parts;
    hypervisor.state.finishDueTasks(clock.monotonic());
    const running = [...hypervisor.state.vms.values()].filter((vm) => vm.startedAt !== undefined);
    for (const vm of running) this.#runGuest(vm);
    const runningUuids = new Set(running.map(smbiosUuidOf));
    for (const node of cluster.state.nodes.values()) {
      if (node.ready && !runningUuids.has(node.systemUuid)) {
        cluster.state.updateNode(node.name, { ready: false });
      }
    }
  }

  #runGuest(vm: MemoryVm): void {
    const { clock, cluster } = this.#parts;
    const upMs = clock.monotonic() - (vm.startedAt ?? 0);
    const seed = this.#seedOf(vm);
    const { neverRegisters, neverReady, bootMs = BOOT_MS } = this.behaviour;
    if (neverRegisters === true || upMs < bootMs || seed === undefined) return;
    const name = vm.options.get('name') ?? '';
    const known = cluster.state.nodes.get(name);
    if (known === undefined) return this.#register(vm, seed);
    const isReady = upMs >= bootMs + READY_MS && neverReady !== true;
    if (known.ready !== isReady && known.systemUuid === smbiosUuidOf(vm)) {
      cluster.state.updateNode(name, { ready: isReady });
    }
  }

  #register(vm: MemoryVm, seed: string): void {
    const { clock, cluster, hypervisor } = this.#parts;
    const { nodes, existingTokens } = cluster.state;
    if ([...nodes.values()].some(({ systemUuid }) => systemUuid === smbiosUuidOf(vm))) return;
    const hasValidToken = existingTokens.some(
      ({ token, expiresAt }) => seed.includes(token) && expiresAt > clock.now(),
    );
    const uuid = smbiosUuidOf(vm) ?? '';
    if (!hasValidToken && !this.#joined.has(uuid)) return;
    this.#joined.add(uuid);
    const name = vm.options.get('name') ?? '';
    const resources = this.behaviour.reportsVmSize === true ? resourcesOf(vm) : undefined;
    cluster.state.putNode(
      aClusterNode({
        name,
        ...(resources !== undefined && { capacity: resources, allocatable: resources }),
        uid: `uid-${smbiosUuidOf(vm)}`,
        systemUuid: smbiosUuidOf(vm),
        providerId:
          this.behaviour.withoutProviderId === true ? '' : vmProviderId(hypervisor.region, vm.vmId),
        ready: false,
        createdAt: clock.now(),
        labels: Object.fromEntries(
          listItems(seed, 'node-label').map((label): [string, string] => {
            const at = label.indexOf('=');
            return [label.slice(0, at), label.slice(at + 1)];
          }),
        ),
        taints: listItems(seed, 'node-taint').flatMap((text) => {
          const taint = parseTaint(text);
          return taint.ok ? [taint.value] : [];
        }),
      }),
    );
  }

  /** Read at the first start and kept, like on the guest's disk. */
  #seedOf(vm: MemoryVm): string | undefined {
    const key = smbiosUuidOf(vm);
    const attached = vm.options.get('ide2')?.split(',')[0];
    const volumes = [...this.#parts.hypervisor.state.volumes.values()];
    const data = volumes.find(({ id }) => id === attached)?.data;
    if (!this.#seeds.has(key) && data !== undefined) {
      this.#seeds.set(key, new TextDecoder().decode(data));
    }
    return this.#seeds.get(key);
  }
}

function smbiosUuidOf(vm: MemoryVm): string {
  return /uuid=([0-9a-f-]{36})/i.exec(vm.options.get('smbios1') ?? '')?.[1]?.toLowerCase() ?? '';
}

function listItems(seed: string, list: string): readonly string[] {
  const [, block = ''] = new RegExp(`${list}:\\n((?:\\s+- .*\\n)+)`).exec(seed) ?? [];
  return block.split('\n').flatMap((line) => {
    const [, item] = /^\s+- ["']?([^"']*)["']?$/.exec(line) ?? [];
    return item === undefined ? [] : [item];
  });
}

/** A guest sees all of its VM. */
function resourcesOf({ options }: MemoryVm): ClusterNode['allocatable'] {
  return {
    cpu: options.get('cores') ?? '1',
    memory: `${options.get('memory') ?? 512}Mi`,
    pods: '110',
  };
}
