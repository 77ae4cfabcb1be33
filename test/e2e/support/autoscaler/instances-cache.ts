// SPDX-License-Identifier: Apache-2.0
// The autoscaler's cache of instances. The real one refreshes it every two minutes (two seconds here), and sooner when a
// group scales up or an instance was deleted.
import type { RpcResponse } from '../../../interop/client.ts';
import type { NodeGroup, ProviderClient } from './provider-client.ts';

const REFRESH_EVERY_MS = 2_000;

export class InstancesCache {
  readonly #provider: ProviderClient;
  readonly #cached = new Map<string, readonly RpcResponse[]>();
  #refreshedAt: number | undefined;

  constructor(provider: ProviderClient) {
    this.#provider = provider;
  }

  invalidate(id: string): void {
    this.#cached.delete(id);
  }

  /** Throws when a group that is not cached cannot be read. */
  async readAll(
    groups: readonly NodeGroup[],
    now: number,
  ): Promise<ReadonlyMap<string, readonly RpcResponse[]>> {
    await this.#refreshIfDue(groups, now);
    const ids = new Set(groups.map(({ id }) => id));
    for (const id of this.#cached.keys()) if (!ids.has(id)) this.#cached.delete(id);
    for (const id of ids) {
      if (!this.#cached.has(id)) this.#cached.set(id, await this.#provider.listInstances(id));
    }
    return new Map(this.#cached);
  }

  /** The real one does this in the background. A group that cannot be read has no instances until the next refresh. */
  async #refreshIfDue(groups: readonly NodeGroup[], now: number): Promise<void> {
    this.#refreshedAt ??= now;
    if (now - this.#refreshedAt < REFRESH_EVERY_MS) return;
    this.#refreshedAt = now;
    for (const { id } of groups) {
      const read = await this.#provider.listInstances(id).catch((error: unknown) => {
        this.#provider.logError('NodeGroupNodes', error);
        return [];
      });
      this.#cached.set(id, read);
    }
  }
}
