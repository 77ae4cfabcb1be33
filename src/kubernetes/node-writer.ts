// SPDX-License-Identifier: Apache-2.0
// Writes to Nodes. Declared fields are written by server-side apply. All managers share one list of taints, so a change
// of them is a patch with a resource version. Both name the uid: a different Node may have the same name.
import { Backoff } from '../ports/backoff.ts';
import type { Clock } from '../ports/clock.ts';
import type {
  ClusterCallOptions,
  FieldConflict,
  NodeChange,
  NodeDeclaration,
  NodeRef,
} from '../ports/cluster.ts';
import { Conflict, NotFound } from '../ports/errors.ts';
import type { Random } from '../ports/random.ts';
import { type ApiClient, type ApiResult, apiPath, FIELD_MANAGER } from './api-client.ts';
import { buildApplyBody, readConflicts, withoutConflicts } from './node-declaration.ts';
import { buildNodePatch } from './node-patch.ts';
import type { NodeObject } from './objects.ts';
import { translateStatus } from './status.ts';

const MAX_ATTEMPTS = 12;
const BACKOFF = { firstMs: 20, maxMs: 400 } as const;

const CONTENT_TYPES = {
  merge: 'application/merge-patch+json',
  // JSON is valid YAML; older API servers know only this name.
  apply: 'application/apply-patch+yaml',
} as const;

interface PatchRequest {
  readonly kind: keyof typeof CONTENT_TYPES;
  readonly body: object;
  readonly signal: AbortSignal | undefined;
}

export class NodeWriter {
  readonly #api: ApiClient;
  readonly #clock: Clock;
  readonly #random: Random;

  constructor(dependencies: {
    readonly api: ApiClient;
    readonly clock: Clock;
    readonly random: Random;
  }) {
    this.#api = dependencies.api;
    this.#clock = dependencies.clock;
    this.#random = dependencies.random;
  }

  async declare(
    ref: NodeRef,
    declaration: NodeDeclaration,
    { signal }: ClusterCallOptions = {},
  ): Promise<readonly FieldConflict[]> {
    const backoff = this.#createBackoff();
    let conflicts: readonly FieldConflict[] = [];
    for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt += 1) {
      const node = await this.#readExisting(ref, signal);
      const body = buildApplyBody(ref, node, withoutConflicts(declaration, conflicts));
      if (body === undefined) return conflicts;
      const result = await this.#write(ref, { kind: 'apply', body, signal });
      if (result.ok) return conflicts;
      const found = readConflicts(result.status);
      conflicts = [...conflicts, ...found];
      if (found.length === 0) await backoff.sleep(signal);
    }
    throw keepsChanging(ref);
  }

  async change(
    ref: NodeRef,
    change: NodeChange,
    { signal }: ClusterCallOptions = {},
  ): Promise<void> {
    const backoff = this.#createBackoff();
    for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt += 1) {
      const body = buildNodePatch(ref, await this.#readExisting(ref, signal), change);
      if (body === undefined) return;
      if ((await this.#write(ref, { kind: 'merge', body, signal })).ok) return;
      await backoff.sleep(signal);
    }
    throw keepsChanging(ref);
  }

  async delete(ref: NodeRef, { signal }: ClusterCallOptions = {}): Promise<void> {
    const operation = `delete node ${ref.name}`;
    const result = await this.#api.request({
      method: 'DELETE',
      path: nodePath(ref),
      body: { apiVersion: 'v1', kind: 'DeleteOptions', preconditions: { uid: ref.uid } },
      operation,
      signal,
    });
    if (result.ok || result.status.code === 404) return;
    // A different uid means that our Node is gone. Any other conflict is an error.
    if (result.status.code === 409 && (await this.#read(ref, signal)) === undefined) return;
    throw translateStatus(result.status, operation);
  }

  /** Undefined if the Node is gone or a different Node has its name. */
  async #read(ref: NodeRef, signal: AbortSignal | undefined): Promise<NodeObject | undefined> {
    const operation = `read node ${ref.name}`;
    const result = await this.#api.request<NodeObject>({
      path: nodePath(ref),
      operation,
      signal,
    });
    if (result.ok) return result.value.metadata.uid === ref.uid ? result.value : undefined;
    if (result.status.code === 404) return undefined;
    throw translateStatus(result.status, operation);
  }

  async #readExisting(ref: NodeRef, signal: AbortSignal | undefined): Promise<NodeObject> {
    const node = await this.#read(ref, signal);
    if (node === undefined) throw nodeNotFound(ref);
    return node;
  }

  /** Success or a conflict (409); after a conflict the caller reads the Node again. */
  async #write(ref: NodeRef, { kind, body, signal }: PatchRequest): Promise<ApiResult<unknown>> {
    const operation = `change node ${ref.name}`;
    const result = await this.#api.request({
      method: 'PATCH',
      path: nodePath(ref),
      query: { fieldManager: FIELD_MANAGER },
      contentType: CONTENT_TYPES[kind],
      body,
      operation,
      signal,
    });
    if (result.ok || result.status.code === 409) return result;
    // The API server refuses a different uid as an invalid value (422): our Node is gone.
    if (result.status.code === 404 || result.status.code === 422)
      await this.#readExisting(ref, signal);
    throw translateStatus(result.status, operation);
  }

  #createBackoff(): Backoff {
    return new Backoff({ clock: this.#clock, random: this.#random, ...BACKOFF });
  }
}

function nodePath({ name }: NodeRef): string {
  return apiPath('api', 'v1', 'nodes', name);
}

function nodeNotFound({ name }: NodeRef): NotFound {
  return new NotFound('NODE_NOT_FOUND', `node ${name} is gone, or a different Node has its name`);
}

function keepsChanging({ name }: NodeRef): Conflict {
  return new Conflict(
    'NODE_CHANGED',
    `node ${name} was changed by others during each of ${MAX_ATTEMPTS} attempts to write it`,
  );
}
