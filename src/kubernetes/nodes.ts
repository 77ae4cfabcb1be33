// SPDX-License-Identifier: Apache-2.0
// Changes to Nodes. What is ours is applied, field by field. Taints are one list for all, so a change of them is a patch
// that names the version it is based on. Both name the uid: a Node of the same name may be another.
import type { Clock } from '../ports/clock.ts';
import type {
  ClusterCallOptions,
  ContestedKey,
  NodeChange,
  NodeDeclaration,
  NodeRef,
} from '../ports/cluster.ts';
import { Conflict, NotFound } from '../ports/errors.ts';
import type { Random } from '../ports/random.ts';
import { type Api, type ApiAnswer, FIELD_MANAGER, pathOf } from './api.ts';
import { conflictsIn, declarationBody, without } from './node-declaration.ts';
import { nodePatch } from './node-patch.ts';
import type { NodeObject } from './objects.ts';
import { translateStatus } from './status.ts';

const ATTEMPTS = 12;
const LONGEST_PAUSE_MS = 400;

const CONTENT_TYPES = {
  merge: 'application/merge-patch+json',
  // JSON is YAML; older API servers know this name only.
  apply: 'application/apply-patch+yaml',
} as const;

interface Writing {
  readonly kind: keyof typeof CONTENT_TYPES;
  readonly body: object;
  readonly signal: AbortSignal | undefined;
}

export class Nodes {
  readonly #api: Api;
  readonly #clock: Clock;
  readonly #random: Random;

  constructor(parts: { readonly api: Api; readonly clock: Clock; readonly random: Random }) {
    this.#api = parts.api;
    this.#clock = parts.clock;
    this.#random = parts.random;
  }

  async declare(
    ref: NodeRef,
    declaration: NodeDeclaration,
    { signal }: ClusterCallOptions = {},
  ): Promise<readonly ContestedKey[]> {
    let contested: readonly ContestedKey[] = [];
    for (let attempt = 1; attempt <= ATTEMPTS; attempt += 1) {
      const node = await this.#demand(ref, signal);
      const body = declarationBody(ref, node, without(declaration, contested));
      if (body === undefined) return contested;
      const answer = await this.#write(ref, { kind: 'apply', body, signal });
      if (answer.ok) return contested;
      const conflicts = conflictsIn(answer.status);
      contested = [...contested, ...conflicts];
      if (conflicts.length === 0) await this.#pause(attempt, signal);
    }
    throw changing(ref);
  }

  async change(
    ref: NodeRef,
    change: NodeChange,
    { signal }: ClusterCallOptions = {},
  ): Promise<void> {
    for (let attempt = 1; attempt <= ATTEMPTS; attempt += 1) {
      const body = nodePatch(ref, await this.#demand(ref, signal), change);
      if (body === undefined) return;
      if ((await this.#write(ref, { kind: 'merge', body, signal })).ok) return;
      await this.#pause(attempt, signal);
    }
    throw changing(ref);
  }

  async delete(ref: NodeRef, { signal }: ClusterCallOptions = {}): Promise<void> {
    const doing = `delete node ${ref.name}`;
    const answer = await this.#api.ask({
      method: 'DELETE',
      path: pathOfNode(ref),
      body: { apiVersion: 'v1', kind: 'DeleteOptions', preconditions: { uid: ref.uid } },
      doing,
      signal,
    });
    if (answer.ok || answer.status.code === 404) return;
    // The uid may be another's: then ours is gone. Anything else is a real conflict.
    if (answer.status.code === 409 && (await this.#read(ref, signal)) === undefined) return;
    throw translateStatus(answer.status, doing);
  }

  /** Undefined if it is gone or another has its name. */
  async #read(ref: NodeRef, signal: AbortSignal | undefined): Promise<NodeObject | undefined> {
    const doing = `read node ${ref.name}`;
    const answer = await this.#api.ask<NodeObject>({ path: pathOfNode(ref), doing, signal });
    if (answer.ok) return answer.value.metadata.uid === ref.uid ? answer.value : undefined;
    if (answer.status.code === 404) return undefined;
    throw translateStatus(answer.status, doing);
  }

  async #demand(ref: NodeRef, signal: AbortSignal | undefined): Promise<NodeObject> {
    const node = await this.#read(ref, signal);
    if (node === undefined) throw gone(ref);
    return node;
  }

  /** Done, or a conflict: then it is looked at again. */
  async #write(ref: NodeRef, { kind, body, signal }: Writing): Promise<ApiAnswer<unknown>> {
    const doing = `change node ${ref.name}`;
    const answer = await this.#api.ask({
      method: 'PATCH',
      path: pathOfNode(ref),
      query: { fieldManager: FIELD_MANAGER },
      contentType: CONTENT_TYPES[kind],
      body,
      doing,
      signal,
    });
    if (answer.ok || answer.status.code === 409) return answer;
    // A uid that is another's is an invalid value to the API server: then ours is gone.
    if (answer.status.code === 404 || answer.status.code === 422) await this.#demand(ref, signal);
    throw translateStatus(answer.status, doing);
  }

  #pause(attempt: number, signal: AbortSignal | undefined): Promise<void> {
    const ms = Math.min(LONGEST_PAUSE_MS, 10 * 2 ** attempt) * this.#random.fraction();
    return this.#clock.sleep(ms, { signal });
  }
}

function pathOfNode({ name }: NodeRef): string {
  return pathOf('api', 'v1', 'nodes', name);
}

function gone({ name }: NodeRef): NotFound {
  return new NotFound('NODE_NOT_FOUND', `node ${name} is gone, or another has its name`);
}

function changing({ name }: NodeRef): Conflict {
  return new Conflict('NODE_CHANGED', `node ${name} changed ${ATTEMPTS} times in between`);
}
