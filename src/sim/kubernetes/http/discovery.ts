// SPDX-License-Identifier: Apache-2.0
// Discovery documents: which groups, versions and resources the API has. kubectl reads them before every command.
import { RESOURCES, type Resource, splitApiVersion } from '../storage/resources.ts';

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
export function readDiscovery(path: string, accept: string): DiscoveryDocument | undefined {
  if (path === '/api' || path === '/apis') return readRoot(path, accept);
  const apiVersion = /^\/(?:api|apis(?=\/.*\/))\/(.+)$/.exec(path)?.[1];
  if (apiVersion !== undefined) return describeVersion(apiVersion);
  const found = GROUPS.find(({ name }) => path === `/apis/${name}`);
  return found && asJson({ kind: 'APIGroup', apiVersion: 'v1', ...found });
}

function readRoot(path: '/api' | '/apis', accept: string): DiscoveryDocument {
  const isCore = path === '/api';
  if (accept.includes(AGGREGATED)) {
    return { body: aggregatedList(isCore), contentType: AGGREGATED_TYPE };
  }
  return asJson(
    isCore ? CORE_VERSIONS : { kind: 'APIGroupList', apiVersion: 'v1', groups: GROUPS },
  );
}

function asJson(body: object): DiscoveryDocument {
  return { body, contentType: 'application/json' };
}

const CORE_VERSIONS = {
  kind: 'APIVersions',
  versions: ['v1'],
  serverAddressByClientCIDRs: [],
};

const API_VERSIONS = [...new Set(RESOURCES.map(({ apiVersion }) => apiVersion))];

const GROUPS = API_VERSIONS.filter((apiVersion) => apiVersion !== 'v1').map((groupVersion) => {
  const { group, version } = splitApiVersion(groupVersion);
  const named = { groupVersion, version };
  return { name: group, versions: [named], preferredVersion: named };
});

function describeVersion(apiVersion: string): DiscoveryDocument | undefined {
  const resources = RESOURCES.filter((one) => one.apiVersion === apiVersion);
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
          singularName: kind.toLowerCase(),
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

function aggregatedList(isCore: boolean): object {
  const versions = API_VERSIONS.filter((apiVersion) => (apiVersion === 'v1') === isCore);
  return {
    kind: 'APIGroupDiscoveryList',
    apiVersion: 'apidiscovery.k8s.io/v2',
    metadata: {},
    items: versions.map((apiVersion) => {
      const { group, version } = splitApiVersion(apiVersion);
      const resources = RESOURCES.filter((one) => one.apiVersion === apiVersion);
      return {
        metadata: { name: group, creationTimestamp: null },
        versions: [{ version, resources: resources.map(aggregatedResource), freshness: 'Current' }],
      };
    }),
  };
}

function aggregatedResource(resource: Resource): object {
  const { plural, kind, isNamespaced, shortNames, categories } = resource;
  return {
    resource: plural,
    responseKind: { ...splitApiVersion(resource.apiVersion), kind },
    scope: isNamespaced ? 'Namespaced' : 'Cluster',
    singularResource: kind.toLowerCase(),
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
