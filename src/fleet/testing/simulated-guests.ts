// SPDX-License-Identifier: Apache-2.0
// What the machines of a MemoryHypervisor do once they run: read their seed, join with the token in it if the cluster
// knows it, be Ready, and fall silent when they stop. They know nothing but their seed and their SMBIOS UUID.
import { vmProviderId } from '../../model/provider-id.ts';
import { parseTaint } from '../../model/taints.ts';
import type { MemoryCluster } from '../../ports/fakes/memory-cluster.ts';
import type { MemoryHypervisor } from '../../ports/fakes/memory-hypervisor.ts';
import type { MemoryVm } from '../../ports/fakes/memory-region.ts';
import { aClusterNode } from '../../ports/fakes/sample-cluster.ts';
import type { VirtualClock } from '../../ports/fakes/virtual-clock.ts';

const BOOT_MS = 4_000;
const READY_MS = 6_000;

export interface GuestBehaviour {
  /** Leaves its provider id to others. */
  readonly withoutProviderId?: boolean;
  /** Never registers. */
  readonly mute?: boolean;
  /** Registers and never becomes Ready. */
  readonly neverReady?: boolean;
}

export interface GuestParts {
  readonly clock: VirtualClock;
  readonly hypervisor: MemoryHypervisor;
  readonly cluster: MemoryCluster;
}

export class SimulatedGuests {
  behaviour: GuestBehaviour = {};
  readonly #parts: GuestParts;
  /** What each VM read when it started, by VM id and start. */
  readonly #seeds = new Map<string, string>();

  constructor(parts: GuestParts) {
    this.#parts = parts;
  }

  /** Everything that has happened in guests since the last call. */
  settle(): void {
    const { hypervisor, clock, cluster } = this.#parts;
    hypervisor.state.finishDueTasks(clock.monotonic());
    const running = [...hypervisor.state.vms.values()].filter((vm) => vm.startedAt !== undefined);
    for (const vm of running) this.#live(vm);
    const alive = new Set(running.map(uuidOf));
    for (const node of cluster.state.nodes.values()) {
      if (node.ready && !alive.has(node.systemUuid)) {
        cluster.state.updateNode(node.name, { ready: false });
      }
    }
  }

  #live(vm: MemoryVm): void {
    const { clock, cluster } = this.#parts;
    const upMs = clock.monotonic() - (vm.startedAt ?? 0);
    const seed = this.#seedOf(vm);
    if (this.behaviour.mute === true || upMs < BOOT_MS || seed === undefined) return;
    const name = vm.options.get('name') ?? '';
    const known = cluster.state.nodes.get(name);
    if (known === undefined) return this.#register(vm, seed);
    const isReady = upMs >= READY_MS && this.behaviour.neverReady !== true;
    if (known.ready !== isReady && known.systemUuid === uuidOf(vm)) {
      cluster.state.updateNode(name, { ready: isReady });
    }
  }

  #register(vm: MemoryVm, seed: string): void {
    const { clock, cluster, hypervisor } = this.#parts;
    const { nodes, tokens } = cluster.state;
    if ([...nodes.values()].some(({ systemUuid }) => systemUuid === uuidOf(vm))) return;
    const isLetIn = tokens.some(
      ({ token, expiresAt }) => seed.includes(token) && expiresAt > clock.now(),
    );
    if (!isLetIn) return;
    const name = vm.options.get('name') ?? '';
    cluster.state.putNode(
      aClusterNode({
        name,
        uid: `uid-${uuidOf(vm)}`,
        systemUuid: uuidOf(vm),
        providerId:
          this.behaviour.withoutProviderId === true ? '' : vmProviderId(hypervisor.region, vm.vmId),
        ready: false,
        createdAt: clock.now(),
        labels: Object.fromEntries(
          itemsOf(seed, 'node-label').map((label): [string, string] => {
            const at = label.indexOf('=');
            return [label.slice(0, at), label.slice(at + 1)];
          }),
        ),
        taints: itemsOf(seed, 'node-taint').flatMap((text) => {
          const taint = parseTaint(text);
          return taint.ok ? [taint.value] : [];
        }),
      }),
    );
  }

  /** Read at the first start; kept by the guest, as its disk would. */
  #seedOf(vm: MemoryVm): string | undefined {
    const key = uuidOf(vm);
    const attached = vm.options.get('ide2')?.split(',')[0];
    const volumes = [...this.#parts.hypervisor.state.volumes.values()];
    const data = volumes.find(({ id }) => id === attached)?.data;
    if (!this.#seeds.has(key) && data !== undefined) {
      this.#seeds.set(key, new TextDecoder().decode(data));
    }
    return this.#seeds.get(key);
  }
}

function uuidOf(vm: MemoryVm): string {
  return /uuid=([0-9a-f-]{36})/i.exec(vm.options.get('smbios1') ?? '')?.[1]?.toLowerCase() ?? '';
}

function itemsOf(seed: string, list: string): readonly string[] {
  const [, block = ''] = new RegExp(`${list}:\\n((?:\\s+- .*\\n)+)`).exec(seed) ?? [];
  return block.split('\n').flatMap((line) => {
    const [, item] = /^\s+- ["']?([^"']*)["']?$/.exec(line) ?? [];
    return item === undefined ? [] : [item];
  });
}
