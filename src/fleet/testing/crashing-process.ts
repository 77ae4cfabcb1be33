// SPDX-License-Identifier: Apache-2.0
// A process that crashes at a chosen point: after a durable write, or at a mutating call, either before its response is
// received or before the response is recorded. After the crash every further call fails.
import type { Cluster } from '../../ports/cluster.ts';
import { type MemoryStore, SimulatedCrash } from '../../ports/fakes/memory-store.ts';
import type { Hypervisor } from '../../ports/hypervisor.ts';
import type { Store } from '../../ports/store.ts';

/** Calls that change something in Proxmox. */
export const MUTATING_HYPERVISOR_CALLS = [
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
  'convertToTemplate',
  'downloadImage',
  'uploadIso',
  'deleteVolume',
] as const satisfies readonly (keyof Hypervisor)[];

/** Calls that change something in Kubernetes. */
export const MUTATING_CLUSTER_CALLS = [
  'changeNode',
  'declareNode',
  'deleteNode',
  'evict',
  'createBootstrapToken',
] as const satisfies readonly (keyof Cluster)[];

/** `unseen`: before the response of a call is received. `seen`: after it is received, before it is recorded. */
export type CrashPoint =
  | { readonly kind: 'never' }
  | { readonly kind: 'write'; readonly number: number }
  | { readonly kind: 'unseen' | 'seen'; readonly number: number };

/** Like `MemoryStore.crashAfterWrites`. */
export interface CrashableStore extends Store {
  /** Reads what is stored; absent: there is nothing to do. */
  open?(): Promise<void>;
  crashAfterWrites(n: number): void;
}

/** Records that a process opens; `onWrite` is called after each durable write. */
export interface CrashableRecords<S extends CrashableStore> {
  reopen(options: { readonly onWrite: () => void }): S;
}

export class CrashingProcess<S extends CrashableStore = MemoryStore> {
  readonly store: S;
  readonly hypervisor: Hypervisor;
  /** The mutating calls so far. */
  readonly calls: string[] = [];
  readonly #crashPoint: CrashPoint;
  #hasCrashed = false;

  constructor(records: CrashableRecords<S>, hypervisor: Hypervisor, crashPoint: CrashPoint) {
    this.#crashPoint = crashPoint;
    this.store = records.reopen({
      onWrite: () => {
        this.writes += 1;
        if (crashPoint.kind === 'write' && this.writes === crashPoint.number)
          this.#hasCrashed = true;
      },
    });
    if (crashPoint.kind === 'write') this.store.crashAfterWrites(crashPoint.number);
    this.hypervisor = this.wrap(hypervisor);
  }

  writes = 0;

  /** A port whose calls fail after the crash. */
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
    this.#throwIfCrashed();
    const isMutating = [...MUTATING_HYPERVISOR_CALLS, ...MUTATING_CLUSTER_CALLS].some(
      (one) => one === name,
    );
    if (isMutating) this.calls.push(name);
    const number = this.calls.length;
    const isCrashPoint =
      isMutating && this.#crashPoint.kind !== 'never' && number === this.#crashPoint.number;
    if (isCrashPoint && this.#crashPoint.kind === 'seen') this.store.crashAfterWrites(0);
    const response: unknown = await work();
    if (isCrashPoint && this.#crashPoint.kind === 'unseen') this.#crash();
    this.#throwIfCrashed();
    // The response is received, but the process does nothing with it: neither a write nor another call.
    if (isCrashPoint && this.#crashPoint.kind === 'seen') this.#hasCrashed = true;
    return response;
  }

  #crash(): void {
    this.#hasCrashed = true;
    this.store.crashAfterWrites(0);
  }

  #throwIfCrashed(): void {
    if (this.#hasCrashed) throw new SimulatedCrash('the process has crashed');
  }
}
