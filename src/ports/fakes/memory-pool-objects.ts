// SPDX-License-Identifier: Apache-2.0
import { Conflict, type PvescalerError } from '../errors.ts';
import type { PoolObject, PoolObjectStatus, PoolObjects } from '../pool-objects.ts';
import { WaitQueue } from '../wait-queue.ts';

/** ProxmoxPool objects in memory. Tests play the API server and its users with `put`, `delete` and `lose`. */
export class MemoryPoolObjects implements PoolObjects {
  readonly writes: string[] = [];
  /** Absent: not read yet. */
  #objects: Map<string, PoolObject> | undefined;
  readonly #changes = new WaitQueue();
  #version = 0;
  error: PvescalerError | undefined;

  all(): readonly PoolObject[] | undefined {
    return this.#objects === undefined ? undefined : [...this.#objects.values()];
  }

  get(name: string): PoolObject | undefined {
    return this.#objects?.get(name);
  }

  lastError(): PvescalerError | undefined {
    return this.error;
  }

  waitForChange(signal: AbortSignal): Promise<void> {
    const before = this.#version;
    return this.#changes.waitUntil(() => this.#version > before, signal);
  }

  /** The first list of the objects has ended. */
  markRead(): void {
    this.#objects ??= new Map();
    this.#change();
  }

  /** Creates the object, or changes its spec. */
  put(name: string, spec: PoolObject['spec']): void {
    const before = this.get(name);
    const { generation = 0 } = before ?? {};
    const created = { uid: `uid-${name}-${this.#version}`, createdAt: this.#version };
    const empty = { isTerminating: false, isHeld: false, status: undefined };
    this.#store({ ...created, ...empty, ...before, name, spec, generation: generation + 1 });
  }

  /** As kubectl does. */
  delete(name: string): void {
    const before = this.get(name);
    if (before === undefined) return;
    const { isHeld, generation } = before;
    if (isHeld) this.#store({ ...before, isTerminating: true, generation: generation + 1 });
    else this.lose(name);
  }

  /** Gone, whatever its finalizers are. */
  lose(name: string): void {
    this.#objects?.delete(name);
    this.#change();
  }

  async setHeld(object: PoolObject, isHeld: boolean): Promise<void> {
    const current = this.#requireCurrent(object);
    this.writes.push(`${isHeld ? 'hold' : 'release'} ${object.name}`);
    if (current.isTerminating && !isHeld) this.lose(object.name);
    else this.#store({ ...current, isHeld });
  }

  async writeStatus(object: PoolObject, status: PoolObjectStatus): Promise<void> {
    const current = this.#requireCurrent(object);
    this.writes.push(`status ${object.name}`);
    this.#store({ ...current, status });
  }

  async close(): Promise<void> {
    this.#changes.close();
  }

  #requireCurrent({ name, version }: PoolObject): PoolObject {
    const current = this.get(name);
    if (current?.version === version) return current;
    throw new Conflict('KUBERNETES_OBJECT_CHANGED', `ProxmoxPool ${name} was changed`);
  }

  #store(object: Omit<PoolObject, 'version'>): void {
    this.#objects ??= new Map();
    this.#objects.set(object.name, { ...object, version: String(this.#version + 1) });
    this.#change();
  }

  #change(): void {
    this.#version += 1;
    this.#changes.wakeAll();
  }
}
