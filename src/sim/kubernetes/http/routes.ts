// SPDX-License-Identifier: Apache-2.0
import { ApiError, notFoundError, PlainError } from '../storage/api-error.ts';
import type { ResourceRegistry } from '../storage/custom-resources.ts';
import { PODS, qualifiedName, RESOURCES, type Resource } from '../storage/resources.ts';

/** The object or collection that a request path addresses. */
export interface Route {
  /** As stored. */
  readonly resource: Resource;
  /** As requested: events of `v1` are stored as those of `events.k8s.io/v1`. */
  readonly requested: Resource;
  readonly namespace: string;
  /** Empty for the whole collection. */
  readonly name: string;
  readonly subresource: string;
}

const API_PATH = /^\/(?:api|apis(?=\/[^/]+\/v))\/((?:[^/]+\/)?v[^/]+)\/(.+)$/;
/** Matches namespaced resources, but not the subresources of a namespace itself. */
const NAMESPACED_PATH = /^namespaces\/([^/]+)\/((?!(?:status|finalize)$).+)$/;

/** Accepts `/api/v1/…` and `/apis/GROUP/VERSION/…`, with and without namespace. */
export function parseRoute(path: string, resources: ResourceRegistry): Route {
  const { apiVersion, namespace, plural, name, subresource } = splitPath(path);
  const requested = resources.find(apiVersion, plural);
  const resource = resources.findStored(apiVersion, plural);
  if (requested === undefined || resource === undefined) throw unknownPathError(path);
  checkSubresource(requested, { path, namespace, name, subresource });
  const isNamespaceMissing = requested.isNamespaced && namespace === '';
  if (name !== '' && isNamespaceMissing) throw notFoundError(qualifiedName(requested), name);
  return { resource, requested, namespace, name, subresource };
}

function checkSubresource(
  requested: Resource,
  {
    path,
    namespace,
    name,
    subresource,
  }: Pick<Route, 'namespace' | 'name' | 'subresource'> & {
    readonly path: string;
  },
): void {
  const { custom, isNamespaced } = requested;
  if (custom !== undefined && !isNamespaced && namespace !== '') throw unknownPathError(path);
  if (hasSubresource(requested, subresource)) return;
  if (requested === PODS && CONTAINER_ACCESS.has(subresource)) throw noContainersError();
  throw custom === undefined
    ? unknownPathError(path)
    : notFoundError(qualifiedName(requested), name);
}

/** The parts of a path, whether the API has such a resource or not. */
export function splitPath(path: string) {
  const [, apiVersion = '', inside = ''] = API_PATH.exec(path) ?? [];
  const [, namespace = '', rest = inside] = NAMESPACED_PATH.exec(inside) ?? [];
  const [plural = '', name = '', subresource = ''] = rest.split('/').map(decodeURIComponent);
  return { apiVersion, namespace: decodeURIComponent(namespace), plural, name, subresource };
}

/** Subresources of a pod that need a container. */
const CONTAINER_ACCESS = new Set(['exec', 'attach', 'portforward', 'ephemeralcontainers']);

function noContainersError(): ApiError {
  return new ApiError(405, 'MethodNotAllowed', 'the simulator runs no containers');
}

function hasSubresource({ hasStatus, subresources }: Resource, name: string): boolean {
  return name === '' || (name === 'status' && hasStatus) || subresources.includes(name);
}

/** A group without built-in resources answers with a text instead of a Status. */
function unknownPathError(path: string): ApiError {
  const group = /^\/apis\/([^/]+)/.exec(path)?.[1];
  const isBuiltIn =
    group === undefined || RESOURCES.some(({ apiVersion }) => apiVersion.startsWith(`${group}/`));
  return isBuiltIn
    ? new ApiError(404, 'NotFound', 'the server could not find the requested resource')
    : new PlainError(404, '404 page not found');
}
