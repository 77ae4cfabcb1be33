// SPDX-License-Identifier: Apache-2.0
import type { Hono } from 'hono';
import type { Clock } from '../../ports/clock.ts';
import type { Random } from '../../ports/random.ts';
import { Faults } from './faults.ts';
import { createApp } from './http/app.ts';
import { PagedLists } from './http/list.ts';
import { Watches } from './http/watch.ts';
import type { JsonObject, SimObject } from './storage/objects.ts';
import { ResourceStorage, requireResource } from './storage/resource-storage.ts';

/** Field manager of the changes made through `KubernetesSim` and not through HTTP. */
const SIM_FIELD_MANAGER = 'others';

export interface KubernetesSimOptions {
  readonly clock: Clock;
  readonly random: Random;
}

/**
 * An in-process Kubernetes API server. Clients call `fetch`; tests use the other methods to act as kubelets and
 * controllers.
 */
export class KubernetesSim {
  readonly faults = new Faults();
  readonly watches = new Watches();
  /** Every request so far, as `VERB path`. A watch has the verb `WATCH`. */
  readonly requests: string[] = [];
  /** Called with each request line before the request is handled. */
  onRequest: ((line: string) => void) | undefined;
  readonly #storage: ResourceStorage;
  readonly #lists: PagedLists;
  readonly #app: Hono;

  constructor({ clock, random }: KubernetesSimOptions) {
    this.#storage = new ResourceStorage(clock, random);
    this.#lists = new PagedLists(this.#storage.store);
    this.#app = createApp({
      storage: this.#storage,
      lists: this.#lists,
      watches: this.watches,
      faults: this.faults,
      clock,
      onRequest: (verb, path) => {
        const line = `${verb} ${path}`;
        this.requests.push(line);
        this.onRequest?.(line);
      },
    });
  }

  async fetch(request: Request): Promise<Response> {
    return this.#app.fetch(request);
  }

  create(apiVersion: string, plural: string, body: JsonObject & NamedBody): SimObject {
    const resource = requireResource(apiVersion, plural);
    const { name, namespace = '' } = body.metadata;
    return this.#storage.create({ resource, namespace, name }, body, SIM_FIELD_MANAGER);
  }

  /** Applies a merge patch to the object and its status, as controllers and kubelets do. */
  change(apiVersion: string, plural: string, body: JsonObject & NamedBody): SimObject {
    const resource = requireResource(apiVersion, plural);
    const { name, namespace = '' } = body.metadata;
    const address = { resource, namespace, name };
    const patch = { kind: 'merge', body, manager: SIM_FIELD_MANAGER } as const;
    if (body['status'] !== undefined) this.#storage.patchStatus(address, patch);
    return this.#storage.patch(address, patch);
  }

  remove(apiVersion: string, plural: string, metadata: NamedBody['metadata']): void {
    const resource = requireResource(apiVersion, plural);
    this.#storage.store.delete(
      { resource, namespace: metadata.namespace ?? '', name: metadata.name },
      '',
    );
  }

  list(apiVersion: string, plural: string): readonly SimObject[] {
    return this.#storage.store.list(requireResource(apiVersion, plural), '');
  }

  /** Discards the change history: watches and list continuations from earlier versions receive 410. */
  compact(): void {
    this.#storage.store.compact();
    this.#lists.expireTokens();
  }
}

interface NamedBody {
  readonly metadata: JsonObject & { readonly name: string; readonly namespace?: string };
}
