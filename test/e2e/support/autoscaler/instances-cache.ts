// SPDX-License-Identifier: Apache-2.0
// The autoscaler keeps what it was told of instances: for two minutes, which are seconds here, unless the group is
// growing or something of it was deleted.
import type { RpcResponse } from '../../../interop/client.ts';
import type { NodeGroup, ProviderClient } from './provider-client.ts';

const REFRESH_EVERY_MS = 2_000;

export class InstancesCache {
  readonly #provider: ProviderClient;
  readonly #kept = new Map<string, readonly RpcResponse[]>();
  #refreshedAt: number | undefined;

  constructor(provider: ProviderClient) {
    this.#provider = provider;
  }

  forget(id: string): void {
    this.#kept.delete(id);
  }

  /** Throws where a group that is not kept cannot be read. */
  async all(
    groups: readonly NodeGroup[],
    now: number,
  ): Promise<ReadonlyMap<string, readonly RpcResponse[]>> {
    await this.#refreshIfDue(groups, now);
    const ids = new Set(groups.map(({ id }) => id));
    for (const id of this.#kept.keys()) if (!ids.has(id)) this.#kept.delete(id);
    for (const id of ids) {
      if (!this.#kept.has(id)) this.#kept.set(id, await this.#provider.instances(id));
    }
    return new Map(this.#kept);
  }

  /** In the background, for the real one. What cannot be read has no instances from then on. */
  async #refreshIfDue(groups: readonly NodeGroup[], now: number): Promise<void> {
    this.#refreshedAt ??= now;
    if (now - this.#refreshedAt < REFRESH_EVERY_MS) return;
    this.#refreshedAt = now;
    for (const { id } of groups) {
      const read = await this.#provider.instances(id).catch((error: unknown) => {
        this.#provider.trouble('NodeGroupNodes', error);
        return [];
      });
      this.#kept.set(id, read);
    }
  }
}
