// SPDX-License-Identifier: Apache-2.0
import { LostLeadership, PvescalerError } from '../../ports/errors.ts';
import type { RequestFence } from '../../ports/write-fence.ts';
import { type ApiClient, type ApiResult, apiPath, FIELD_MANAGER } from '../api-client.ts';
import { translateStatus } from '../status.ts';
import { GROUP, type ObjectKind, VERSION } from './kinds.ts';
import type { RecordObject } from './record-objects.ts';

interface ObjectClientOptions {
  readonly api: ApiClient;
  readonly namespace: string;
  readonly kind: ObjectKind;
  readonly fence: RequestFence | undefined;
}

/** `refused`: the object is not as the request expects it; read it again. */
export type WriteOutcome = { readonly object?: RecordObject } | 'refused';

type WriteRequest = Pick<Parameters<ApiClient['request']>[0], 'method' | 'path' | 'body'> & {
  readonly operation: string;
  readonly isFenced: boolean;
};

/** Requests for the objects of one kind. */
export class ObjectClient {
  readonly #options: ObjectClientOptions;
  /** Path of the collection. */
  readonly path: string;

  constructor(options: ObjectClientOptions) {
    this.#options = options;
    this.path = apiPath(
      'apis',
      GROUP,
      VERSION,
      'namespaces',
      options.namespace,
      options.kind.plural,
    );
  }

  /** Current data, not from a cache. */
  async read(name: string): Promise<RecordObject | undefined> {
    const operation = this.#describe('read', name);
    const path = `${this.path}${apiPath(name)}`;
    const result = await this.#options.api.request<RecordObject>({ path, operation });
    if (result.ok) return result.value;
    if (result.status.code === 404) return undefined;
    throw translateStatus(result.status, operation);
  }

  create(object: RecordObject, isFenced: boolean): Promise<WriteOutcome> {
    const operation = this.#describe('create', object.metadata.name ?? '');
    return this.#write(
      { method: 'POST', path: this.path, body: object, operation, isFenced },
      [409],
    );
  }

  /** Replaces the status where it is a subresource, otherwise the object. */
  replace(name: string, object: RecordObject, isFenced: boolean): Promise<WriteOutcome> {
    const { kind } = this.#options;
    const path = `${this.path}${apiPath(name)}${kind.hasStatusSubresource ? '/status' : ''}`;
    const operation = this.#describe('write', name);
    return this.#write({ method: 'PUT', path, body: object, operation, isFenced }, [404, 409]);
  }

  async delete(
    name: string,
    preconditions: { readonly uid: string; readonly resourceVersion: string },
    isFenced: boolean,
  ): Promise<WriteOutcome> {
    const operation = this.#describe('delete', name);
    const path = `${this.path}${apiPath(name)}`;
    const body = { apiVersion: 'v1', kind: 'DeleteOptions', preconditions };
    const outcome = await this.#write(
      { method: 'DELETE', path, body, operation, isFenced },
      [404, 409],
    );
    return outcome === 'refused' ? outcome : {};
  }

  async #write(request: WriteRequest, refusals: readonly number[]): Promise<WriteOutcome> {
    const result = await this.#send(request);
    if (result.ok) return { object: result.value };
    if (refusals.includes(result.status.code)) return 'refused';
    throw translateStatus(result.status, request.operation);
  }

  async #send({ isFenced, ...request }: WriteRequest): Promise<ApiResult<RecordObject>> {
    const { api, fence } = this.#options;
    const query = { fieldManager: FIELD_MANAGER };
    if (!isFenced || fence === undefined) return api.request({ ...request, query });
    if (!fence.mayAct()) throw leaseLost(request.operation);
    const endRequest = fence.beginRequest();
    try {
      // The process may be suspended while it connects, until long after its lease has expired.
      const maySend = () => fence.mayAct();
      const result = await api.request<RecordObject>({ ...request, query, maySend });
      endRequest(result.ok || result.status.code < 500 ? 'settled' : 'unknown');
      return result;
    } catch (error) {
      const isSent = mayHaveBeenSent(error);
      endRequest(isSent ? 'unknown' : 'settled');
      throw isSent || fence.mayAct() ? error : leaseLost(request.operation);
    }
  }

  #describe(verb: string, name: string): string {
    return `${verb} ${this.#options.kind.kind} ${this.#options.namespace}/${name}`;
  }
}

/** Whether the write may have taken effect although its request failed. */
export function mayHaveBeenSent(error: unknown): boolean {
  return !(error instanceof PvescalerError && error.facts['requestSent'] === false);
}

function leaseLost(operation: string): LostLeadership {
  return new LostLeadership(
    'LEASE_LOST',
    `${operation}: this process is no longer the driver; the request was not sent`,
    { facts: { requestSent: false } },
  );
}
