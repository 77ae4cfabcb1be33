// SPDX-License-Identifier: Apache-2.0
// Changes to Nodes. Taints are a list that others change too, so a change of them names the version it is based on.
import type { Taint } from '../model/taints.ts';
import type { Clock } from '../ports/clock.ts';
import type { ClusterCallOptions, NodeChange, NodeRef } from '../ports/cluster.ts';
import { Conflict, NotFound } from '../ports/errors.ts';
import type { Random } from '../ports/random.ts';
import { type Api, FIELD_MANAGER, pathOf } from './api.ts';
import type { NodeObject, TaintObject } from './objects.ts';
import { translateStatus } from './status.ts';

const ATTEMPTS = 12;
const LONGEST_PAUSE_MS = 400;

export class Nodes {
  readonly #api: Api;
  readonly #clock: Clock;
  readonly #random: Random;

  constructor(parts: { readonly api: Api; readonly clock: Clock; readonly random: Random }) {
    this.#api = parts.api;
    this.#clock = parts.clock;
    this.#random = parts.random;
  }

  async change(ref: NodeRef, change: NodeChange, options?: ClusterCallOptions): Promise<void> {
    const signal = options?.signal;
    for (let attempt = 1; attempt <= ATTEMPTS; attempt += 1) {
      const node = await this.#read(ref, signal);
      if (node === undefined) throw gone(ref);
      const patch = patchOf(ref, node, change);
      if (patch === undefined || (await this.#patch(ref, patch, signal))) return;
      const pauseMs = Math.min(LONGEST_PAUSE_MS, 10 * 2 ** attempt) * this.#random.fraction();
      await this.#clock.sleep(pauseMs, { signal });
    }
    throw new Conflict('NODE_CHANGED', `node ${ref.name} changed ${ATTEMPTS} times in between`);
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

  /** False: it changed in between. */
  async #patch(ref: NodeRef, body: object, signal: AbortSignal | undefined): Promise<boolean> {
    const doing = `change node ${ref.name}`;
    const answer = await this.#api.ask({
      method: 'PATCH',
      path: pathOfNode(ref),
      query: { fieldManager: FIELD_MANAGER },
      contentType: 'application/merge-patch+json',
      body,
      doing,
      signal,
    });
    if (answer.ok) return true;
    if (answer.status.code === 409) return false;
    throw answer.status.code === 404 ? gone(ref) : translateStatus(answer.status, doing);
  }
}

function pathOfNode({ name }: NodeRef): string {
  return pathOf('api', 'v1', 'nodes', name);
}

function gone({ name }: NodeRef): NotFound {
  return new NotFound('NODE_NOT_FOUND', `node ${name} is gone, or another has its name`);
}

/** Undefined: it is as wanted already. */
function patchOf(ref: NodeRef, node: NodeObject, change: NodeChange): object | undefined {
  const spec = specPatch(ref, node, change);
  const labels = different(node.metadata.labels, change.labels);
  const annotations = different(node.metadata.annotations, change.annotations);
  if (spec === undefined && labels === undefined && annotations === undefined) return undefined;
  const isBased = spec !== undefined && ('taints' in spec || 'providerID' in spec);
  return {
    metadata: {
      // A uid in a patch is a precondition.
      uid: ref.uid,
      ...(isBased && { resourceVersion: node.metadata.resourceVersion }),
      ...(labels && { labels }),
      ...(annotations && { annotations }),
    },
    ...(spec && { spec }),
  };
}

function specPatch(ref: NodeRef, { spec = {} }: NodeObject, change: NodeChange) {
  const patch = {
    ...providerIdPatch(ref, spec.providerID ?? '', change.providerId),
    ...switchPatch(spec.unschedulable ?? false, change.unschedulable),
    ...changedTaints(spec.taints ?? [], change),
  };
  return Object.keys(patch).length > 0 ? patch : undefined;
}

function providerIdPatch(ref: NodeRef, current: string, wanted = current) {
  if (wanted === current) return {};
  if (current === '') return { providerID: wanted };
  throw new Conflict('PROVIDER_ID_SET', `node ${ref.name} has the provider id '${current}'`, {
    facts: { providerId: current },
  });
}

function switchPatch(current: boolean, wanted = current) {
  return wanted === current ? {} : { unschedulable: wanted || null };
}

/** Others' taints are passed on as they are, with fields that mean nothing here. */
function changedTaints(
  current: readonly TaintObject[],
  { addTaints = [], removeTaintKeys = [] }: NodeChange,
): { readonly taints?: readonly TaintObject[] } {
  const missing = addTaints.filter((wanted) => !current.some((one) => isEqual(one, wanted)));
  const kept = current.filter(
    (one) => !removeTaintKeys.includes(one.key) && !missing.some((wanted) => isRival(one, wanted)),
  );
  if (missing.length === 0 && kept.length === current.length) return {};
  return { taints: [...kept, ...missing.map(asObject)] };
}

function isRival(one: TaintObject, wanted: Taint): boolean {
  return one.key === wanted.key && one.effect === wanted.effect;
}

function isEqual(one: TaintObject, wanted: Taint): boolean {
  return isRival(one, wanted) && (one.value ?? '') === wanted.value;
}

function asObject({ key, value, effect }: Taint): TaintObject {
  return { key, ...(value !== '' && { value }), effect };
}

function different(
  current: Readonly<Record<string, string>> | null | undefined,
  wanted: Readonly<Record<string, string | null>> = {},
): Readonly<Record<string, string | null>> | undefined {
  const changes = Object.entries(wanted).filter(
    ([key, value]) => (current?.[key] ?? null) !== value,
  );
  return changes.length > 0 ? Object.fromEntries(changes) : undefined;
}
