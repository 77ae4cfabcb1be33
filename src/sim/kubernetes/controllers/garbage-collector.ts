// SPDX-License-Identifier: Apache-2.0
// Deletes objects whose owners are all gone, and ends foreground deletions and orphaning.
import { FOREGROUND_FINALIZER, ORPHAN_FINALIZER } from '../storage/deletion.ts';
import {
  isTerminating,
  listField,
  type SimObject,
  textField,
  textList,
} from '../storage/objects.ts';
import { RESOURCES, type Resource } from '../storage/resources.ts';
import { addressOf, type Controller, type ControllerContext } from './controller.ts';

interface Found {
  readonly resource: Resource;
  readonly object: SimObject;
}

export const garbageCollector: Controller = {
  name: 'garbage-collector-controller',
  watches: RESOURCES.filter(({ plural }) => plural !== 'events' && plural !== 'leases'),
  watchesCustom: true,
  sync(cluster) {
    const all = cluster.storage.resources.stored.flatMap((resource) =>
      cluster.list(resource).map((object): Found => ({ resource, object })),
    );
    const uids = new Set(all.map(({ object }) => object.metadata.uid));
    for (const found of all) collect(cluster, found, { all, uids });
    return undefined;
  },
};

interface Graph {
  readonly all: readonly Found[];
  readonly uids: ReadonlySet<string>;
}

function collect(cluster: ControllerContext, { resource, object }: Found, graph: Graph): void {
  const finalizers = textList(object.metadata, 'finalizers');
  cluster.forEach([object], () => {
    if (isTerminating(object) && finalizers.includes(ORPHAN_FINALIZER)) {
      for (const dependent of dependentsOf(object, graph)) removeOwner(cluster, dependent, object);
      removeFinalizer(cluster, { resource, object }, ORPHAN_FINALIZER);
    } else if (isTerminating(object) && finalizers.includes(FOREGROUND_FINALIZER)) {
      deleteInForeground(cluster, { resource, object }, graph);
    } else if (isAbandoned(object, graph) && !isTerminating(object)) {
      cluster.delete(resource, object);
    }
  });
}

function ownersOf({ metadata }: SimObject) {
  return listField(metadata, 'ownerReferences');
}

function isAbandoned(object: SimObject, { uids }: Graph): boolean {
  const owners = ownersOf(object);
  return owners.length > 0 && owners.every((owner) => !uids.has(textField(owner, 'uid')));
}

function dependentsOf({ metadata }: SimObject, { all }: Graph): readonly Found[] {
  return all.filter(({ object }) => ownersOf(object).some((one) => one['uid'] === metadata.uid));
}

function deleteInForeground(cluster: ControllerContext, found: Found, graph: Graph): void {
  const dependents = dependentsOf(found.object, graph);
  for (const { resource, object } of dependents) {
    if (!isTerminating(object))
      cluster.delete(resource, object, { propagationPolicy: 'Foreground' });
  }
  if (dependents.length === 0) removeFinalizer(cluster, found, FOREGROUND_FINALIZER);
}

function removeFinalizer(
  cluster: ControllerContext,
  { resource, object }: Found,
  finalizer: string,
): void {
  const finalizers = textList(object.metadata, 'finalizers').filter((one) => one !== finalizer);
  const metadata = { ...object.metadata, finalizers };
  cluster.storage.store.replace(addressOf(resource, object), { ...object, metadata });
}

function removeOwner(
  cluster: ControllerContext,
  { resource, object }: Found,
  { metadata: { uid } }: SimObject,
): void {
  const ownerReferences = ownersOf(object).filter((one) => one['uid'] !== uid);
  const metadata = { ...object.metadata, ownerReferences };
  cluster.storage.store.replace(addressOf(resource, object), { ...object, metadata });
}
