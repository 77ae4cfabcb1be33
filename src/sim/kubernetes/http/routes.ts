// SPDX-License-Identifier: Apache-2.0
import { ApiError, notFoundError } from '../storage/api-error.ts';
import { findResource, type Resource } from '../storage/resources.ts';

/** The object or collection that a request path addresses. */
export interface Route {
  readonly resource: Resource;
  readonly namespace: string;
  /** Empty for the whole collection. */
  readonly name: string;
  readonly subresource: string;
}

const API_PATH = /^\/(?:api|apis(?=\/[^/]+\/v))\/((?:[^/]+\/)?v[^/]+)\/(.+)$/;
/** Matches namespaced resources, but not `namespaces/NAME/status`, the status of a namespace itself. */
const NAMESPACED_PATH = /^namespaces\/([^/]+)\/((?!status$).+)$/;

/** Accepts `/api/v1/…` and `/apis/GROUP/VERSION/…`, with and without namespace. */
export function parseRoute(path: string): Route {
  const [, apiVersion = '', inside = ''] = API_PATH.exec(path) ?? [];
  const [, namespace = '', rest = inside] = NAMESPACED_PATH.exec(inside) ?? [];
  const [plural = '', name = '', subresource = ''] = rest.split('/').map(decodeURIComponent);
  return checkRoute({
    resource: findResource(apiVersion, plural),
    namespace: decodeURIComponent(namespace),
    name,
    subresource,
  });
}

function checkRoute(
  route: Omit<Route, 'resource'> & { readonly resource: Resource | undefined },
): Route {
  const { resource, namespace, name } = route;
  if (resource === undefined) throw unknownPathError();
  if (name !== '' && resource.isNamespaced && namespace === '') {
    throw notFoundError(resource.plural, name);
  }
  return { ...route, resource };
}

function unknownPathError(): ApiError {
  return new ApiError(404, 'NotFound', 'the server could not find the requested resource');
}
