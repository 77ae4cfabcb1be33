// SPDX-License-Identifier: Apache-2.0
// The API server that has the records of a lab.
import { fromObject, RECORD_KINDS, RESOURCE_DEFINITIONS } from '../../src/kubernetes/index.ts';
import type { Machine } from '../../src/model/machine.ts';
import type { Clock } from '../../src/ports/clock.ts';
import { SeededRandom } from '../../src/ports/fakes/seeded-random.ts';
import {
  KubernetesSim,
  type ServedKubernetes,
  serveKubernetes,
} from '../../src/sim/kubernetes/index.ts';

const API = 'pvescaler.dev/v1alpha1';
const NAMESPACE = 'pvescaler';
const PLURALS = RECORD_KINDS.map(({ plural }) => plural);

type SimObject = Parameters<KubernetesSim['create']>[2];

export interface SavedObject {
  readonly apiVersion: string;
  readonly plural: string;
  readonly object: SimObject;
}

interface StartOptions {
  readonly clock: Clock;
  readonly seed: number;
  readonly objects: readonly SavedObject[];
  /** After a write took effect, before its response is sent. */
  readonly onWrite: (method: string, path: string) => void;
}

export class LabKubernetes {
  readonly #sim: KubernetesSim;
  readonly #served: ServedKubernetes;

  private constructor(sim: KubernetesSim, served: ServedKubernetes) {
    this.#sim = sim;
    this.#served = served;
  }

  static async start({ clock, seed, objects, onWrite }: StartOptions): Promise<LabKubernetes> {
    const sim = new KubernetesSim({ clock, random: new SeededRandom(seed) });
    sim.install(RESOURCE_DEFINITIONS);
    sim.create('v1', 'namespaces', { metadata: { name: NAMESPACE } });
    for (const { apiVersion, plural, object } of objects) {
      sim.create(apiVersion, plural, object);
      if (object['status'] !== undefined) sim.change(apiVersion, plural, object);
    }
    const fetch = sim.fetch.bind(sim);
    sim.fetch = async (request, peer) => {
      const { pathname } = new URL(request.url);
      const isWrite = request.method !== 'GET' && pathname.includes('pvescaler.dev');
      const response = await fetch(request, peer);
      // The process is killed: it never receives the response.
      if (isWrite && response.ok) onWrite(request.method, pathname);
      return response;
    };
    return new LabKubernetes(sim, await serveKubernetes(sim));
  }

  get kubeconfig(): string {
    const name = 'lab';
    return JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': name,
      contexts: [{ name, context: { cluster: name, user: name } }],
      clusters: [{ name, cluster: { server: this.#served.url, 'insecure-skip-tls-verify': true } }],
      users: [{ name, user: {} }],
    });
  }

  machines(): readonly Machine[] {
    return RECORD_KINDS.flatMap((kind) =>
      this.#sim.list(API, kind.plural).flatMap((object) => {
        const parts = fromObject(kind, object);
        return parts.ok ? (parts.value.machines ?? []) : [];
      }),
    );
  }

  save(): readonly SavedObject[] {
    const records = PLURALS.flatMap((plural) => this.#list(API, plural));
    return [...records, ...this.#list('v1', 'configmaps')];
  }

  /** The identity is kept, as the file beside the database is. */
  lose(): void {
    for (const { plural, object } of this.save()) {
      if (PLURALS.includes(plural)) this.#sim.remove(API, plural, object.metadata);
    }
  }

  close(): Promise<void> {
    return this.#served.close();
  }

  #list(apiVersion: string, plural: string): readonly SavedObject[] {
    const all = this.#sim.list(apiVersion, plural);
    return all
      .filter(({ metadata }) => metadata.namespace === NAMESPACE)
      .map((object) => ({ apiVersion, plural, object: withoutServerFields(object) }));
  }
}

/** Another API server gives it another uid and resource version. */
function withoutServerFields(object: ReturnType<KubernetesSim['list']>[number]): SimObject {
  const { uid: _, resourceVersion: __, ...metadata } = structuredClone(object.metadata);
  return { ...structuredClone(object), metadata };
}
