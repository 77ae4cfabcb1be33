// SPDX-License-Identifier: Apache-2.0
// A process that dies at a chosen instant: after a durable write, or at a call to Proxmox, whose effect is there
// while its answer was never seen, or was seen and never written down. Afterwards nothing gets through to anybody.
import type { Cluster } from '../../ports/cluster.ts';
import { type MemoryStore, SimulatedCrash } from '../../ports/fakes/memory-store.ts';
import type { Hypervisor } from '../../ports/hypervisor.ts';

/** Calls that leave something behind. */
const CHANGING = [
  'createVm',
  'cloneVm',
  'applySpec',
  'attachSeed',
  'ejectSeed',
  'setDescription',
  'removeProtection',
  'growBootDisk',
  'startVm',
  'shutdownVm',
  'stopVm',
  'destroyVm',
  'downloadImage',
  'uploadIso',
  'deleteVolume',
] as const satisfies readonly (keyof Hypervisor)[];

/** Calls to the cluster that leave something behind. */
const CHANGING_CLUSTER = [
  'changeNode',
  'declareNode',
  'deleteNode',
  'createBootstrapToken',
] as const satisfies readonly (keyof Cluster)[];

export type CrashPoint =
  | { readonly kind: 'never' }
  | { readonly kind: 'write'; readonly number: number }
  | { readonly kind: 'unseen' | 'seen'; readonly number: number };

export class CrashingProcess {
  readonly store: MemoryStore;
  readonly hypervisor: Hypervisor;
  /** The changing calls so far. */
  readonly calls: string[] = [];
  readonly #wish: CrashPoint;
  #isDead = false;

  constructor(store: MemoryStore, hypervisor: Hypervisor, wish: CrashPoint) {
    this.#wish = wish;
    this.store = store.reopen({
      onWrite: () => {
        this.writes += 1;
        if (wish.kind === 'write' && this.writes === wish.number) this.#isDead = true;
      },
    });
    if (wish.kind === 'write') this.store.crashAfterWrites(wish.number);
    this.hypervisor = this.wrap(hypervisor);
  }

  writes = 0;

  /** Another side that this process talks to, for as long as it lives. */
  wrap<Port extends object>(port: Port): Port {
    return new Proxy(port, {
      get: (target, name, receiver) => {
        const member: unknown = Reflect.get(target, name, receiver);
        if (typeof member !== 'function') return member;
        if (name === 'volumeId') return member.bind(target) as unknown;
        return (...given: unknown[]) => this.#call(String(name), () => member.apply(target, given));
      },
    });
  }

  async #call(name: string, work: () => unknown): Promise<unknown> {
    this.#assertAlive();
    const isChanging = [...CHANGING, ...CHANGING_CLUSTER].some((one) => one === name);
    if (isChanging) this.calls.push(name);
    const number = this.calls.length;
    const isFatal = isChanging && this.#wish.kind !== 'never' && number === this.#wish.number;
    if (isFatal && this.#wish.kind === 'seen') this.store.crashAfterWrites(0);
    const answer: unknown = await work();
    if (isFatal && this.#wish.kind === 'unseen') this.#die();
    this.#assertAlive();
    return answer;
  }

  #die(): void {
    this.#isDead = true;
    this.store.crashAfterWrites(0);
  }

  #assertAlive(): void {
    if (this.#isDead) throw new SimulatedCrash('the process is dead');
  }
}
