// SPDX-License-Identifier: Apache-2.0
// ProxmoxPool objects: watched, and written only where they are ours, which is one finalizer and the status. Each write
// names the version that was read, so that a former leader or a late answer changes nothing.
import type { Clock } from '../../ports/clock.ts';
import { NotFound, type PvescalerError } from '../../ports/errors.ts';
import type { PoolObject, PoolObjectStatus, PoolObjects } from '../../ports/pool-objects.ts';
import type { Random } from '../../ports/random.ts';
import type { Transport } from '../../ports/transport.ts';
import { WaitQueue } from '../../ports/wait-queue.ts';
import { ApiClient, apiPath, FIELD_MANAGER } from '../api-client.ts';
import { DEFAULT_REQUEST_TIMEOUT_MS } from '../cluster.ts';
import type { ApiObject, ObjectMeta } from '../objects.ts';
import { asRecord } from '../status.ts';
import { Reflector } from '../watch/reflector.ts';

export const POOL_FINALIZER = 'pvescaler.dev/machines';

interface PoolResource extends ApiObject {
  readonly metadata: ObjectMeta & {
    readonly generation?: number;
    readonly finalizers?: readonly string[] | null;
  };
  readonly spec?: unknown;
  readonly status?: Partial<PoolObjectStatus>;
}

interface CachedPool {
  readonly object: PoolObject;
  readonly finalizers: readonly string[];
}

export interface PoolObjectsOptions {
  /** Adds the credentials itself. */
  readonly transport: Transport;
  /** Base URL of the API server. */
  readonly server: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly namespace: string;
  readonly onError: (error: PvescalerError) => void;
  readonly watchSeconds?: number;
}

export class KubernetesPoolObjects implements PoolObjects {
  readonly #options: PoolObjectsOptions;
  readonly #api: ApiClient;
  readonly #reflector: Reflector<CachedPool>;
  readonly #changes = new WaitQueue();
  #revision = 0;

  constructor(options: PoolObjectsOptions) {
    this.#options = options;
    const { transport, server, clock, random, onError, watchSeconds } = options;
    const requestTimeoutMs = DEFAULT_REQUEST_TIMEOUT_MS;
    this.#api = new ApiClient({ transport, server, clock, requestTimeoutMs });
    this.#reflector = new Reflector<CachedPool>({
      api: this.#api,
      clock,
      random,
      path: this.#path(),
      parse: parsePool,
      onChange: () => {
        this.#revision += 1;
        this.#changes.wakeAll();
      },
      onError,
      ...(watchSeconds !== undefined && { watchSeconds }),
    });
    this.#reflector.start();
  }

  all(): readonly PoolObject[] | undefined {
    if (this.#reflector.freshAt === undefined) return undefined;
    return this.#reflector.values().map(({ object }) => object);
  }

  lastError(): PvescalerError | undefined {
    return this.#reflector.lastError;
  }

  waitForChange(signal: AbortSignal): Promise<void> {
    const before = this.#revision;
    return this.#changes.waitUntil(() => this.#revision > before, signal);
  }

  async setHeld(object: PoolObject, isHeld: boolean): Promise<void> {
    const { namespace } = this.#options;
    const known = this.#reflector.get(`${namespace}/${object.name}`);
    const others = (known?.finalizers ?? []).filter((each) => each !== POOL_FINALIZER);
    const finalizers = isHeld ? [...others, POOL_FINALIZER] : others;
    await this.#patch(object, { metadata: { finalizers } });
  }

  async writeStatus(object: PoolObject, status: PoolObjectStatus): Promise<void> {
    await this.#patch(object, { status }, 'status');
  }

  async close(): Promise<void> {
    this.#changes.close();
    await this.#reflector.stop();
    await this.#options.transport.close();
  }

  async #patch(
    { name, uid, version }: PoolObject,
    change: { readonly metadata?: object; readonly status?: object },
    ...subresource: readonly 'status'[]
  ): Promise<void> {
    try {
      await this.#api.requestOrThrow({
        method: 'PATCH',
        path: this.#path(name, ...subresource),
        query: { fieldManager: FIELD_MANAGER },
        contentType: 'application/merge-patch+json',
        body: { ...change, metadata: { ...change.metadata, uid, resourceVersion: version } },
        operation: `write ProxmoxPool ${name}`,
      });
    } catch (error) {
      // It is gone, which the watch reports, too.
      if (!(error instanceof NotFound)) throw error;
    }
  }

  #path(...names: readonly string[]): string {
    const { namespace } = this.#options;
    const group = ['apis', 'pvescaler.dev', 'v1alpha1'];
    return apiPath(...group, 'namespaces', namespace, 'proxmoxpools', ...names);
  }
}

function parsePool({ metadata, spec, status }: PoolResource): CachedPool {
  const finalizers = metadata.finalizers ?? [];
  return {
    finalizers,
    object: {
      name: metadata.name ?? '',
      uid: metadata.uid ?? '',
      version: metadata.resourceVersion ?? '',
      generation: metadata.generation ?? 0,
      createdAt: Date.parse(metadata.creationTimestamp ?? '') || 0,
      isTerminating: (metadata.deletionTimestamp ?? '') !== '',
      isHeld: finalizers.includes(POOL_FINALIZER),
      spec: asRecord(spec),
      status,
    },
  };
}
