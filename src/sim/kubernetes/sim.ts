// SPDX-License-Identifier: Apache-2.0
import type { Clock } from '../../ports/clock.ts';
import type { Random } from '../../ports/random.ts';
import { type ClusterAuthority, ControllerContext } from './controllers/controller.ts';
import { type ControllerOptions, createControllers } from './controllers/index.ts';
import { ControllerManager } from './controllers/manager.ts';
import { Faults } from './faults.ts';
import { AccessRules } from './http/access.ts';
import { type AppOptions, handleRequest, type JoinInfo, type Peer } from './http/app.ts';
import { PagedLists } from './http/list.ts';
import { Watches } from './http/watch.ts';
import { findPlaces, type PlaceRequest } from './scheduler/scheduler.ts';
import { maintainDefinitions } from './storage/definition-lifecycle.ts';
import type { ObjectSnapshot } from './storage/object-store.ts';
import type { JsonObject, SimObject } from './storage/objects.ts';
import { ResourceStorage } from './storage/resource-storage.ts';
import { CONFIG_MAPS } from './storage/resources.ts';

/** Field manager of the changes made through `KubernetesSim` and not through HTTP. */
const SIM_FIELD_MANAGER = 'others';

export interface KubernetesSimOptions {
  readonly clock: Clock;
  readonly random: Random;
  /** Bearer token of an administrator. Absent: every user is an administrator. */
  readonly adminToken?: string;
  /** Absent: the test acts as the controllers. */
  readonly controllers?: ControllerOptions;
  /** Where nodes can join, and the authority that signs their certificates. */
  readonly join?: JoinOptions;
}

export interface JoinOptions {
  /** `https://host:port` of the API server. */
  readonly server: string;
  readonly authority: ClusterAuthority;
}

/**
 * An in-process Kubernetes API server. Clients call `fetch`; tests use the other methods to act as users, kubelets and
 * controllers. With the option `controllers`, `run` runs controllers and a scheduler.
 */
export class KubernetesSim {
  readonly faults = new Faults();
  readonly access = new AccessRules();
  readonly watches = new Watches();
  /** Every request so far, as `VERB path`. A watch has the verb `WATCH`. */
  readonly requests: string[] = [];
  /** Called with each request line before the request is handled. */
  onRequest: ((line: string) => void) | undefined;
  readonly #storage: ResourceStorage;
  readonly #lists: PagedLists;
  readonly #app: AppOptions;
  readonly #context: ControllerContext;
  readonly #manager: ControllerManager | undefined;

  constructor({ clock, random, adminToken, controllers, join }: KubernetesSimOptions) {
    const taintsNewNodes = controllers !== undefined;
    this.#storage = new ResourceStorage({ clock, random, taintsNewNodes });
    maintainDefinitions(this.#storage, () => clock.now());
    this.#lists = new PagedLists(this.#storage.store);
    if (join !== undefined) publishClusterInfo(this.#storage, join);
    this.#context = new ControllerContext({ storage: this.#storage, clock, random });
    if (controllers !== undefined) {
      const all = createControllers(controllers, join?.authority);
      this.#manager = new ControllerManager(this.#context, all);
    }
    this.#app = {
      storage: this.#storage,
      lists: this.#lists,
      watches: this.watches,
      faults: this.faults,
      access: this.access,
      clock,
      ...(adminToken !== undefined && { adminToken }),
      ...(join && { joinInfo: joinInfoOf(join) }),
      onRequest: (verb, path) => {
        const line = `${verb} ${path}`;
        this.requests.push(line);
        this.onRequest?.(line);
      },
    };
  }

  /** Runs the controllers until the signal aborts; without controllers it ends at once. */
  async run(signal: AbortSignal): Promise<void> {
    await this.#manager?.run(signal);
  }

  fetch(request: Request, peer: Peer = {}): Promise<Response> {
    return handleRequest(this.#app, request, peer);
  }

  create(apiVersion: string, plural: string, body: JsonObject & NamedBody): SimObject {
    const resource = this.#storage.requireResource(apiVersion, plural);
    const { name, namespace = '' } = body.metadata;
    return this.#storage.create({ resource, namespace, name }, body, SIM_FIELD_MANAGER);
  }

  /** Creates CustomResourceDefinitions; their resources are served from then on. */
  install(definitions: readonly object[]): void {
    for (const definition of definitions) {
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a definition is a JSON object with a name
      const body = JSON.parse(JSON.stringify(definition)) as JsonObject & NamedBody;
      this.create('apiextensions.k8s.io/v1', 'customresourcedefinitions', body);
    }
  }

  /** Applies a merge patch to the object and its status, as controllers and kubelets do. */
  change(apiVersion: string, plural: string, body: JsonObject & NamedBody): SimObject {
    const resource = this.#storage.requireResource(apiVersion, plural);
    const { name, namespace = '' } = body.metadata;
    const address = { resource, namespace, name };
    const patch = { kind: 'merge', body, manager: SIM_FIELD_MANAGER } as const;
    if (body['status'] !== undefined) this.#storage.patchStatus(address, patch);
    return this.#storage.patch(address, patch);
  }

  remove(apiVersion: string, plural: string, metadata: NamedBody['metadata']): void {
    const resource = this.#storage.requireResource(apiVersion, plural);
    this.#storage.store.delete(
      { resource, namespace: metadata.namespace ?? '', name: metadata.name },
      '',
    );
  }

  list(apiVersion: string, plural: string): readonly SimObject[] {
    return this.#storage.store.list(this.#storage.requireResource(apiVersion, plural), '');
  }

  /**
   * The nodes that the scheduler could bind a copy of the pod to now, after all pending pods have got their places. The
   * pod's own node does not count.
   */
  findPlaces(request: PlaceRequest): readonly string[] {
    return findPlaces(this.#context, request);
  }

  /** A backup of all objects, like a snapshot of etcd. */
  snapshot(): ObjectSnapshot {
    return this.#storage.store.snapshot();
  }

  /** Restores a backup and restarts the API server: resource versions go back, and every watch breaks. */
  restore(snapshot: ObjectSnapshot): void {
    this.#storage.store.restore(snapshot);
    this.#lists.expireTokens();
    this.watches.disconnect();
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

function joinInfoOf({ server, authority }: JoinOptions): JoinInfo {
  return { address: new URL(server).host, caPem: authority.certPem };
}

/** The ConfigMap that a node joining with kubeadm reads before it trusts the server. */
function publishClusterInfo(storage: ResourceStorage, { server, authority }: JoinOptions): void {
  const cluster = {
    server,
    'certificate-authority-data': Buffer.from(authority.certPem).toString('base64'),
  };
  const kubeconfig = JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: '', cluster }],
  });
  const address = { resource: CONFIG_MAPS, namespace: 'kube-public', name: 'cluster-info' };
  storage.create(address, { metadata: {}, data: { kubeconfig } }, SIM_FIELD_MANAGER);
}
