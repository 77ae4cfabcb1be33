// SPDX-License-Identifier: Apache-2.0
// Discovery documents: which groups, versions and resources the API has. kubectl reads them before every command.
import { type Resource, splitApiVersion } from '../storage/resources.ts';

const AGGREGATED = 'as=APIGroupDiscoveryList';
const AGGREGATED_TYPE = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList';
const VERBS = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'];
const STATUS_VERBS = ['get', 'patch', 'update'];

interface KindRef {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
}

interface SubresourceDescription {
  readonly name: string;
  readonly kind: KindRef;
  readonly verbs: readonly string[];
}

/** Kinds of subresources that differ from the kind of the resource. */
const SUBRESOURCE_KINDS: Readonly<Record<string, KindRef>> = {
  scale: { group: 'autoscaling', version: 'v1', kind: 'Scale' },
  eviction: { group: 'policy', version: 'v1', kind: 'Eviction' },
  binding: { group: '', version: 'v1', kind: 'Binding' },
};
const SUBRESOURCE_VERBS: Readonly<Record<string, readonly string[]>> = {
  eviction: ['create'],
  binding: ['create'],
  log: ['get'],
  finalize: ['update'],
};

export interface DiscoveryDocument {
  readonly body: object;
  readonly contentType: string;
}

/** Undefined when the path is no discovery path. */
export function readDiscovery(
  path: string,
  accept: string,
  served: readonly Resource[],
): DiscoveryDocument | undefined {
  if (path === '/api' || path === '/apis') return readRoot(path, accept, served);
  const apiVersion = /^\/(?:api|apis(?=\/.*\/))\/(.+)$/.exec(path)?.[1];
  if (apiVersion !== undefined) return describeVersion(apiVersion, served);
  if (!path.startsWith('/apis/')) return undefined;
  const found = groupsOf(served).find(({ name }) => path === `/apis/${name}`);
  return found && asJson({ kind: 'APIGroup', apiVersion: 'v1', ...found });
}

function readRoot(
  path: '/api' | '/apis',
  accept: string,
  served: readonly Resource[],
): DiscoveryDocument {
  const isCore = path === '/api';
  if (accept.includes(AGGREGATED)) {
    const own = served.filter(({ apiVersion }) => (apiVersion === 'v1') === isCore);
    return { body: aggregatedList(own), contentType: AGGREGATED_TYPE };
  }
  const groups = { kind: 'APIGroupList', apiVersion: 'v1', groups: groupsOf(served) };
  return asJson(isCore ? CORE_VERSIONS : groups);
}

function asJson(body: object): DiscoveryDocument {
  return { body, contentType: 'application/json' };
}

const CORE_VERSIONS = {
  kind: 'APIVersions',
  versions: ['v1'],
  serverAddressByClientCIDRs: [],
};

/** By group, then by version. */
function groupVersions(served: readonly Resource[]) {
  const byGroup = Map.groupBy(served, ({ apiVersion }) => splitApiVersion(apiVersion).group);
  return [...byGroup].map(([group, resources]) => ({
    group,
    versions: [...Map.groupBy(resources, ({ apiVersion }) => apiVersion)],
  }));
}

function groupsOf(served: readonly Resource[]) {
  return groupVersions(served.filter(({ apiVersion }) => apiVersion !== 'v1')).map(
    ({ group, versions }) => {
      const named = versions.map(([groupVersion]) => ({
        groupVersion,
        version: splitApiVersion(groupVersion).version,
      }));
      return { name: group, versions: named, preferredVersion: named[0] };
    },
  );
}

function describeVersion(
  apiVersion: string,
  served: readonly Resource[],
): DiscoveryDocument | undefined {
  const resources = served.filter((one) => one.apiVersion === apiVersion);
  if (resources.length === 0) return undefined;
  return asJson({
    kind: 'APIResourceList',
    apiVersion: 'v1',
    groupVersion: apiVersion,
    resources: resources.flatMap((resource) => {
      const { plural: name, kind, isNamespaced: namespaced } = resource;
      const { shortNames, categories } = resource;
      return [
        {
          name,
          singularName: singularOf(resource),
          namespaced,
          kind,
          verbs: VERBS,
          shortNames,
          categories,
        },
        ...subresourcesOf(resource).map((one) => ({
          name: `${name}/${one.name}`,
          singularName: '',
          namespaced,
          ...one.kind,
          verbs: one.verbs,
        })),
      ];
    }),
  });
}

function subresourcesOf(resource: Resource): readonly SubresourceDescription[] {
  const { group, version } = splitApiVersion(resource.apiVersion);
  const names = [...(resource.hasStatus ? ['status'] : []), ...resource.subresources];
  return names.map((name) => ({
    name,
    kind: SUBRESOURCE_KINDS[name] ?? { group, version, kind: resource.kind },
    verbs: SUBRESOURCE_VERBS[name] ?? STATUS_VERBS,
  }));
}

function singularOf({ custom, kind }: Resource): string {
  return custom?.singular ?? kind.toLowerCase();
}

function aggregatedList(served: readonly Resource[]): object {
  return {
    kind: 'APIGroupDiscoveryList',
    apiVersion: 'apidiscovery.k8s.io/v2',
    metadata: {},
    items: groupVersions(served).map(({ group, versions }) => ({
      metadata: { name: group, creationTimestamp: null },
      versions: versions.map(([apiVersion, resources]) => ({
        version: splitApiVersion(apiVersion).version,
        resources: resources.map(aggregatedResource),
        freshness: 'Current',
      })),
    })),
  };
}

function aggregatedResource(resource: Resource): object {
  const { plural, kind, isNamespaced, shortNames, categories } = resource;
  return {
    resource: plural,
    responseKind: { ...splitApiVersion(resource.apiVersion), kind },
    scope: isNamespaced ? 'Namespaced' : 'Cluster',
    singularResource: singularOf(resource),
    verbs: VERBS,
    shortNames,
    categories,
    subresources: subresourcesOf(resource).map((one) => ({
      subresource: one.name,
      responseKind: one.kind,
      verbs: one.verbs,
    })),
  };
}
