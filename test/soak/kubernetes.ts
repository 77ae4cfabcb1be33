// SPDX-License-Identifier: Apache-2.0
// The Kubernetes cluster of one installation. Guests of the simulated regions join it with the settings and the token
// in their seeds; faults make it unreachable, stale or empty.
import { vmProviderId } from '../../src/model/provider-id.ts';
import { parseTaint } from '../../src/model/taints.ts';
import type { ClusterCallOptions, ClusterNode, ClusterView } from '../../src/ports/cluster.ts';
import { MemoryCluster } from '../../src/ports/fakes/memory-cluster.ts';
import { MemoryClusterState } from '../../src/ports/fakes/memory-cluster-state.ts';
import { aClusterNode } from '../../src/ports/fakes/sample-cluster.ts';
import { SeededRandom } from '../../src/ports/fakes/seeded-random.ts';
import type { VirtualClock } from '../../src/ports/fakes/virtual-clock.ts';
import type { Inspection, ProxmoxSim } from '../../src/sim/proxmox/index.ts';
import { LOST_AFTER_MS } from './soak-settings.ts';

type Vm = Inspection['vms'][number];

const READY_MS = 5_000;
const SETTLE_EVERY_MS = 1_000;

/** `watch-stale`: the view stays as it is, calls succeed. `no-nodes`: the API server answers, but lists no Nodes. */
export type ClusterMode = 'connected' | 'unreachable' | 'watch-stale' | 'no-nodes';

/** A Node that no machine has, and that must stay as it is. */
const UNMANAGED_NODES: readonly ClusterNode[] = [
  aClusterNode({ name: 'control-plane', uid: 'uid-control-plane' }),
  aClusterNode({
    name: 'by-hand',
    uid: 'uid-by-hand',
    ready: false,
    providerId: vmProviderId('lab', 1_250),
    systemUuid: '0a1b2c3d-8888-4000-8000-000000000000',
  }),
];

interface KubernetesParts {
  readonly clock: VirtualClock;
  readonly seed: number;
  readonly uid: string;
  readonly server: string;
  readonly sims: ReadonlyMap<string, ProxmoxSim>;
}

interface JoinedGuest {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly taints: ClusterNode['taints'];
  readonly providerId: string;
}

export class SoakCluster extends MemoryCluster {
  readonly #parts: KubernetesParts;
  /** Guests with credentials of their own, by SMBIOS UUID. They need no token any more. */
  readonly #joined = new Map<string, JoinedGuest>();
  /** When a guest registered its Node, on the monotonic clock. */
  readonly #registeredAt = new Map<string, number>();
  /** Guests whose kubelet does not register again after its Node was deleted. */
  readonly #unregistered = new Map<string, number>();
  readonly #lost = new Set<string>();
  readonly #notReadyUntil = new Map<string, number>();
  #mode: ClusterMode = 'connected';
  #modeUntil = 0;
  #frozen: ClusterView | undefined;
  #settledAt = Number.NEGATIVE_INFINITY;
  #registrations = 0;

  constructor(parts: KubernetesParts) {
    const { clock, seed, uid } = parts;
    const state = new MemoryClusterState(uid);
    super({ clock, random: new SeededRandom(seed + 6), state });
    this.#parts = parts;
    for (const node of UNMANAGED_NODES) state.putNode(node);
  }

  async setMode(mode: ClusterMode, forMs = 0): Promise<void> {
    this.reconnect();
    this.#frozen = undefined;
    if (mode === 'watch-stale') this.#frozen = await super.view();
    if (mode === 'unreachable') this.disconnect();
    this.#mode = mode;
    this.#modeUntil = this.#parts.clock.monotonic() + forMs;
  }

  /** Ends a fault whose time is over, and advances all guests to the current time. */
  async settle(): Promise<void> {
    const now = this.#parts.clock.monotonic();
    if (this.#mode !== 'connected' && now >= this.#modeUntil) await this.setMode('connected');
    if (now - this.#settledAt >= SETTLE_EVERY_MS) this.#settleGuests(now);
  }

  override async view(): Promise<ClusterView> {
    await this.settle();
    return this.#frozen ?? this.#withMode(await super.view());
  }

  override async refresh(options?: ClusterCallOptions): Promise<ClusterView> {
    await this.settle();
    return this.#withMode(await super.refresh(options));
  }

  #withMode(view: ClusterView): ClusterView {
    return this.#mode === 'no-nodes' ? { ...view, nodes: [] } : view;
  }

  /** Nodes of machines, by SMBIOS UUID. */
  machineNodes(): ReadonlyMap<string, ClusterNode> {
    const nodes = [...this.state.nodes.values()].filter(({ name }) => !isUnmanagedNode(name));
    return new Map(nodes.map((node) => [node.systemUuid, node]));
  }

  makeNotReady(machine: string, forMs: number): void {
    this.#notReadyUntil.set(machine, this.#parts.clock.monotonic() + forMs);
  }

  /** A person deletes the Node. The kubelet registers it again only after a restart. */
  deleteMachineNode(machine: string): void {
    const node = this.machineNodes().get(machine);
    if (node === undefined) return;
    this.#unregistered.set(machine, this.#parts.clock.monotonic());
    this.state.removeNode(node.name);
  }

  restartKubelets(): void {
    for (const machine of this.#unregistered.keys()) this.isLost(machine);
    this.#unregistered.clear();
  }

  /** Whether the machine's Node has ever been missing for so long that the machine may be deleted. */
  isLost(machine: string): boolean {
    const since = this.#unregistered.get(machine);
    const isLongMissing =
      since !== undefined && this.#parts.clock.monotonic() - since >= LOST_AFTER_MS;
    if (isLongMissing) this.#lost.add(machine);
    return this.#lost.has(machine);
  }

  findUnmanagedChange(): string | undefined {
    const changed = UNMANAGED_NODES.find((before) => {
      const { declared: _, ...node } = this.state.nodes.get(before.name) ?? before;
      const { declared: __, ...expected } = before;
      const isThere = this.state.nodes.has(before.name);
      return !isThere || JSON.stringify(node) !== JSON.stringify(expected);
    });
    return changed?.name;
  }

  #settleGuests(now: number): void {
    this.#settledAt = now;
    const nodes = this.machineNodes();
    const running = new Set<string>();
    for (const [region, sim] of this.#parts.sims) {
      for (const vm of sim.inspect().vms) {
        if (!vm.running) continue;
        const uuid = smbiosUuidOf(vm);
        running.add(uuid);
        const node = nodes.get(uuid);
        if (node === undefined) this.#register({ region, sim, vm, uuid });
        else this.#setReady(node, this.#isReady(uuid, now));
      }
    }
    for (const [uuid, node] of nodes) if (!running.has(uuid)) this.#setReady(node, false);
  }

  #isReady(uuid: string, now: number): boolean {
    const isUp = now - (this.#registeredAt.get(uuid) ?? now) >= READY_MS;
    return isUp && now >= (this.#notReadyUntil.get(uuid) ?? 0);
  }

  #setReady(node: ClusterNode, ready: boolean): void {
    if (node.ready === ready) return;
    this.state.updateNode(node.name, { ready, readyChangedAt: this.#parts.clock.now() });
  }

  #register({ region, sim, vm, uuid }: RunningGuest): void {
    if (this.#unregistered.has(uuid) || this.#mode === 'unreachable') return;
    const guest = this.#joined.get(uuid) ?? this.#join(region, sim, vm);
    if (guest === undefined) return;
    const { clock } = this.#parts;
    this.#joined.set(uuid, guest);
    this.#registrations += 1;
    this.#registeredAt.set(uuid, clock.monotonic());
    const uid = `uid-${this.#registrations}-${uuid}`;
    const own = { uid, systemUuid: uuid, ready: false, createdAt: clock.now() };
    this.state.putNode(aClusterNode({ ...guest, ...own }));
  }

  /** Undefined while the guest has not run its agent, or has no valid token of this cluster. */
  #join(region: string, sim: ProxmoxSim, vm: Vm): JoinedGuest | undefined {
    const attempt = sim.guest(vm.id)?.report().joinAttempts.at(-1);
    if (attempt === undefined || attempt.server !== this.#parts.server) return undefined;
    const isValid = this.state.tokens.some(
      ({ token, expiresAt }) =>
        attempt.token?.includes(token) === true && expiresAt > this.#parts.clock.now(),
    );
    if (!isValid) return undefined;
    return {
      name: attempt.nodeName,
      providerId: attempt.providerId ?? vmProviderId(region, vm.id),
      labels: Object.fromEntries(
        attempt.labels.map((label) => [
          label.slice(0, label.indexOf('=')),
          label.slice(label.indexOf('=') + 1),
        ]),
      ),
      taints: attempt.taints.flatMap((text) => {
        const taint = parseTaint(text);
        return taint.ok ? [taint.value] : [];
      }),
    };
  }
}

interface RunningGuest {
  readonly region: string;
  readonly sim: ProxmoxSim;
  readonly vm: Vm;
  readonly uuid: string;
}

export function isUnmanagedNode(name: string): boolean {
  return UNMANAGED_NODES.some((node) => node.name === name);
}

export function smbiosUuidOf({ config }: Pick<Vm, 'config'>): string {
  return /uuid=([0-9a-f-]{36})/i.exec(config['smbios1'] ?? '')?.[1]?.toLowerCase() ?? '';
}
