// SPDX-License-Identifier: Apache-2.0
import type { Hono } from 'hono';
import type { Clock } from '../../ports/clock.ts';
import type { Random } from '../../ports/random.ts';
import { Faults } from './faults.ts';
import { createApp } from './http/app.ts';
import { Lists } from './http/list.ts';
import { Watches } from './http/watch.ts';
import type { JsonObject, SimObject } from './world/objects.ts';
import { known, World } from './world/world.ts';

/** Who owns the fields that are set from this process. */
const OTHERS = 'others';

export interface KubernetesSimOptions {
  readonly clock: Clock;
  readonly random: Random;
}

/** A Kubernetes API in this process. `fetch` is its door; the rest is for whoever plays the cluster. */
export class KubernetesSim {
  readonly faults = new Faults();
  readonly watches = new Watches();
  /** Every request so far, as `VERB path`; a watch is a verb of its own. */
  readonly requests: string[] = [];
  /** Sees each of them before it is answered. */
  onRequest: ((line: string) => void) | undefined;
  readonly #world: World;
  readonly #lists: Lists;
  readonly #app: Hono;

  constructor({ clock, random }: KubernetesSimOptions) {
    this.#world = new World(clock, random);
    this.#lists = new Lists(this.#world.store);
    this.#app = createApp({
      world: this.#world,
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
    const resource = known(apiVersion, plural);
    const { name, namespace = '' } = body.metadata;
    return this.#world.create({ resource, namespace, name }, body, OTHERS);
  }

  /** By merge patch, status included: as controllers and kubelets do. */
  change(apiVersion: string, plural: string, body: JsonObject & NamedBody): SimObject {
    const resource = known(apiVersion, plural);
    const { name, namespace = '' } = body.metadata;
    const address = { resource, namespace, name };
    const patch = { kind: 'merge', body, manager: OTHERS } as const;
    if (body['status'] !== undefined) this.#world.patchStatus(address, patch);
    return this.#world.patch(address, patch);
  }

  remove(apiVersion: string, plural: string, at: NamedBody['metadata']): void {
    const resource = known(apiVersion, plural);
    this.#world.store.delete({ resource, namespace: at.namespace ?? '', name: at.name }, '');
  }

  list(apiVersion: string, plural: string): readonly SimObject[] {
    return this.#world.store.list(known(apiVersion, plural), '');
  }

  /** Versions given out so far are too old from here on: watches and continued lists get 410. */
  forget(): void {
    this.#world.store.forget();
    this.#lists.forget();
  }
}

interface NamedBody {
  readonly metadata: JsonObject & { readonly name: string; readonly namespace?: string };
}
