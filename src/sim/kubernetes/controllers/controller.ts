// SPDX-License-Identifier: Apache-2.0
// What the controllers share: reading and writing objects, owner references, Events.
import type { Clock } from '../../../ports/clock.ts';
import type { Random } from '../../../ports/random.ts';
import { ApiError } from '../storage/api-error.ts';
import {
  formatTime,
  isEqualJson,
  type JsonObject,
  listField,
  objectField,
  type SimObject,
  statusOf,
  textField,
} from '../storage/objects.ts';
import type { ResourceStorage } from '../storage/resource-storage.ts';
import { EVENTS, PODS, type Resource } from '../storage/resources.ts';

export interface Controller {
  readonly name: string;
  /** A change of one of these resources causes a sync. */
  readonly watches: readonly Resource[];
  /** A change of a custom resource causes a sync too. */
  readonly watchesCustom?: boolean;
  /** Brings the cluster nearer to what the objects ask for. Returns when to sync again, on the monotonic clock. */
  sync(cluster: ControllerContext): number | undefined;
}

/** The authority that signs certificates of nodes, and its certificate. */
export interface ClusterAuthority {
  readonly certPem: string;
  /** Signs a PKCS #10 request in PEM; returns the certificate in PEM. */
  sign(requestPem: string): string;
}

interface NewEvent {
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  readonly note: string;
}

const MANAGER = 'kube-controller-manager';

export class ControllerContext {
  readonly storage: ResourceStorage;
  readonly clock: Clock;
  readonly random: Random;

  constructor(options: {
    readonly storage: ResourceStorage;
    readonly clock: Clock;
    readonly random: Random;
  }) {
    this.storage = options.storage;
    this.clock = options.clock;
    this.random = options.random;
  }

  list(resource: Resource, namespace = ''): readonly SimObject[] {
    return this.storage.store.list(resource, namespace);
  }

  find(resource: Resource, namespace: string, name: string): SimObject | undefined {
    return this.storage.store.find({ resource, namespace, name });
  }

  create(resource: Resource, body: JsonObject, namespace = ''): SimObject {
    const name = textField(objectField(body, 'metadata'), 'name');
    return this.storage.create({ resource, namespace, name }, body, MANAGER);
  }

  /** Applies a strategic merge patch to everything but the status. */
  patch(resource: Resource, object: SimObject, body: JsonObject): SimObject {
    return this.storage.patch(addressOf(resource, object), {
      kind: 'strategic',
      body,
      manager: MANAGER,
    });
  }

  /** Merges the fields into the status; writes nothing when they are equal already. */
  updateStatus(resource: Resource, object: SimObject, fields: JsonObject): SimObject {
    const status = { ...statusOf(object), ...fields };
    if (isEqualJson(status, statusOf(object))) return object;
    const address = addressOf(resource, object);
    return this.storage.replaceStatus(address, { status }, MANAGER);
  }

  delete(resource: Resource, object: SimObject, options: JsonObject = {}): void {
    const preconditions = { uid: object.metadata.uid };
    this.storage.delete(addressOf(resource, object), { preconditions, ...options });
  }

  /** Runs the work for each object. A conflict or a refusal ends only the work for that object. */
  forEach(objects: readonly SimObject[], work: (object: SimObject) => void): void {
    for (const object of objects) {
      try {
        work(object);
      } catch (error) {
        if (!(error instanceof ApiError)) throw error;
      }
    }
  }

  emit(controller: string, object: SimObject, { type, reason, note }: NewEvent): void {
    const { name, namespace = 'default', uid } = object.metadata;
    const { apiVersion, kind } = object;
    const suffix = this.random.uuid().replaceAll('-', '').slice(0, 16);
    const body = {
      metadata: { name: `${name}.${suffix}`, namespace },
      eventTime: new Date(this.clock.now()).toISOString().replace('Z', '000Z'),
      reportingController: controller,
      reportingInstance: controller,
      action: reason,
      reason,
      note,
      type,
      regarding: { apiVersion, kind, name, namespace, uid },
    };
    const address = { resource: EVENTS, namespace, name: body.metadata.name };
    this.forEach([object], () => this.storage.create(address, body, controller));
  }
}

export function addressOf(resource: Resource, { metadata }: SimObject) {
  return { resource, namespace: metadata.namespace ?? '', name: metadata.name };
}

export function controllerReference({ apiVersion, kind, metadata }: SimObject): JsonObject {
  const { name, uid } = metadata;
  return { apiVersion, kind, name, uid, controller: true, blockOwnerDeletion: true };
}

/** The uid of the controller that owns the object; empty when there is none. */
export function controllerUid({ metadata }: SimObject): string {
  const owner = listField(metadata, 'ownerReferences').find((one) => one['controller'] === true);
  return owner === undefined ? '' : textField(owner, 'uid');
}

/** Pods by the uid of their controller. */
export function podsByController(
  cluster: ControllerContext,
): ReadonlyMap<string, readonly SimObject[]> {
  return Map.groupBy(cluster.list(PODS), controllerUid);
}

export function podPhase(pod: SimObject): string {
  return textField(statusOf(pod), 'phase');
}

export function isFinished(pod: SimObject): boolean {
  return ['Succeeded', 'Failed'].includes(podPhase(pod));
}

export function isReady(object: SimObject): boolean {
  return listField(statusOf(object), 'conditions').some(
    (one) => one['type'] === 'Ready' && one['status'] === 'True',
  );
}

interface NewCondition {
  readonly type: string;
  readonly isTrue: boolean;
  readonly reason: string;
  readonly message?: string;
}

/** The conditions with this one; the transition time changes only with the status. */
export function withCondition(
  object: SimObject,
  { type, isTrue, reason, message = '' }: NewCondition,
  now: number,
): readonly JsonObject[] {
  const before = listField(statusOf(object), 'conditions');
  const status = isTrue ? 'True' : 'False';
  const old = before.find((one) => one['type'] === type);
  const lastTransitionTime =
    old?.['status'] === status ? (old['lastTransitionTime'] ?? null) : formatTime(now);
  const condition = { type, status, reason, message, lastTransitionTime };
  return [...before.filter((one) => one !== old), condition];
}

/** A number, or a percentage of the total. */
export function resolvePercentage(value: unknown, total: number, round: 'up' | 'down'): number {
  if (typeof value === 'number') return value;
  const percent = typeof value === 'string' ? Number.parseInt(value, 10) : 0;
  const share = (percent * total) / 100;
  return round === 'up' ? Math.ceil(share) : Math.floor(share);
}

/** A pod of a workload: its template with the owner and further metadata. */
export function podFromTemplate(
  owner: SimObject,
  template: JsonObject,
  { metadata, spec }: { readonly metadata: JsonObject; readonly spec?: JsonObject },
): JsonObject {
  const own = objectField(template, 'metadata');
  return {
    metadata: {
      ...own,
      ...metadata,
      labels: { ...objectField(own, 'labels'), ...objectField(metadata, 'labels') },
      ownerReferences: [controllerReference(owner)],
    },
    spec: { ...objectField(template, 'spec'), ...spec },
  };
}

const HASH_LETTERS = 'bcdfghjklmnpqrstvwxz2456789';
const HASH_LENGTH = 10;

/** A short stable hash of a pod template, in the letters of generated names. */
export function templateHash(template: JsonObject): string {
  let hash = 0xcbf29ce484222325n;
  for (const byte of Buffer.from(JSON.stringify(template))) {
    hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n);
  }
  const base = BigInt(HASH_LETTERS.length);
  return Array.from({ length: HASH_LENGTH }, () => {
    const letter = HASH_LETTERS[Number(hash % base)];
    hash /= base;
    return letter;
  }).join('');
}
