// SPDX-License-Identifier: Apache-2.0
// Deletes the content of terminating namespaces, and gives every namespace its service account and the cluster's CA.
import { isTerminating, type SimObject, specOf } from '../storage/objects.ts';
import { CONFIG_MAPS, NAMESPACES, RESOURCES, SERVICE_ACCOUNTS } from '../storage/resources.ts';
import { addressOf, type Controller, type ControllerContext } from './controller.ts';

export function createNamespaceController(caPem: string | undefined): Controller {
  return {
    name: 'namespace-controller',
    watches: RESOURCES.filter(
      ({ isNamespaced, plural }) => isNamespaced && !isFrequent(plural),
    ).concat(NAMESPACES),
    watchesCustom: true,
    sync(cluster) {
      cluster.forEach(cluster.list(NAMESPACES), (namespace) => {
        if (isTerminating(namespace)) empty(cluster, namespace);
        else furnish(cluster, namespace.metadata.name, caPem);
      });
      return undefined;
    },
  };
}

function isFrequent(plural: string): boolean {
  return plural === 'events' || plural === 'leases';
}

function furnish(cluster: ControllerContext, namespace: string, caPem: string | undefined): void {
  if (cluster.find(SERVICE_ACCOUNTS, namespace, 'default') === undefined) {
    cluster.create(SERVICE_ACCOUNTS, { metadata: { name: 'default' } }, namespace);
  }
  const name = 'kube-root-ca.crt';
  if (caPem === undefined || cluster.find(CONFIG_MAPS, namespace, name) !== undefined) return;
  cluster.create(CONFIG_MAPS, { metadata: { name }, data: { 'ca.crt': caPem } }, namespace);
}

function empty(cluster: ControllerContext, namespace: SimObject): void {
  const { name } = namespace.metadata;
  cluster.updateStatus(NAMESPACES, namespace, { phase: 'Terminating' });
  let remaining = 0;
  for (const resource of cluster.storage.resources.stored) {
    if (!resource.isNamespaced) continue;
    const content = cluster.list(resource, name);
    cluster.forEach(
      content.filter((object) => !isTerminating(object)),
      (object) => cluster.delete(resource, object),
    );
    remaining += cluster.list(resource, name).length;
  }
  if (remaining > 0) return;
  const address = addressOf(NAMESPACES, namespace);
  const { store } = cluster.storage;
  const current = store.get(address);
  store.replace(address, { ...current, spec: { ...specOf(current), finalizers: [] } });
}
