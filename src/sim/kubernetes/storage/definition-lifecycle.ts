// SPDX-License-Identifier: Apache-2.0
// CustomResourceDefinitions from their creation to their deletion: conditions, resources, and the end of all objects.
import { CLEANUP_FINALIZER } from './deletion.ts';
import type { ObjectChange } from './object-store.ts';
import {
  formatTime,
  isTerminating,
  type JsonObject,
  listField,
  objectField,
  type SimObject,
  specOf,
  statusOf,
  textList,
} from './objects.ts';
import type { ResourceStorage } from './resource-storage.ts';
import { DEFINITIONS, type Resource } from './resources.ts';

const MANAGER = 'kube-apiserver';

/** Serves the resources of definitions from their creation to their deletion. */
export function maintainDefinitions(storage: ResourceStorage, now: () => number): void {
  const { store, resources } = storage;
  const addressOf = (name: string) => ({ resource: DEFINITIONS, namespace: '', name });
  const setConditions = (definition: SimObject, status: JsonObject, conditions: Conditions) => {
    const before = listField(statusOf(definition), 'conditions');
    const added = Object.entries(conditions)
      .filter(([type]) => !before.some((one) => one['type'] === type))
      .map(([type, [reason, message]]) => {
        const lastTransitionTime = formatTime(now());
        return { type, status: 'True', lastTransitionTime, reason, message };
      });
    const next = { ...statusOf(definition), ...status, conditions: [...before, ...added] };
    storage.replaceStatus(addressOf(definition.metadata.name), { status: next }, MANAGER);
  };
  const finishDeletion = (name: string, resource: Resource) => {
    const definition = store.find(addressOf(name));
    if (definition === undefined || !isTerminating(definition) || store.count(resource) > 0) return;
    const finalizers = textList(definition.metadata, 'finalizers');
    const metadata = {
      ...definition.metadata,
      finalizers: finalizers.filter((one) => one !== CLEANUP_FINALIZER),
    };
    store.replace(addressOf(name), { ...definition, metadata });
  };
  const deleteObjects = (name: string, resource: Resource) => {
    for (const { metadata } of store.list(resource)) {
      const address = { resource, namespace: metadata.namespace ?? '', name: metadata.name };
      if (metadata.deletionTimestamp === undefined) storage.delete(address);
    }
    finishDeletion(name, resource);
  };
  store.watch(store.version, ({ resource, type, object, previous }: ObjectChange) => {
    const { name } = object.metadata;
    if (resource.custom !== undefined) {
      if (type === 'DELETED') finishDeletion(resource.custom.definition, resource);
      return;
    }
    if (resource !== DEFINITIONS) return;
    if (type === 'DELETED') return resources.remove(name);
    resources.define(object);
    const served = resources.findDefined(name);
    if (!isTerminating(object)) {
      const acceptedNames = objectField(specOf(object), 'names');
      setConditions(object, { acceptedNames }, ESTABLISHED);
    } else if (served !== undefined && (previous === undefined || !isTerminating(previous))) {
      setConditions(object, {}, TERMINATING);
      deleteObjects(name, served);
    }
  });
}

type Conditions = Readonly<Record<string, readonly [reason: string, message: string]>>;

const ESTABLISHED: Conditions = {
  NamesAccepted: ['NoConflicts', 'no conflicts found'],
  Established: ['InitialNamesAccepted', 'the initial names have been accepted'],
};
const TERMINATING: Conditions = {
  Terminating: ['InstanceDeletionInProgress', 'CustomResource deletion is in progress'],
};
