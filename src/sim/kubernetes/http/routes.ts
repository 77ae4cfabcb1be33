// SPDX-License-Identifier: Apache-2.0
import { ApiError, notFound } from '../world/api-error.ts';
import { findResource, type Resource } from '../world/resources.ts';

/** What a path names. */
export interface Route {
  readonly resource: Resource;
  readonly namespace: string;
  /** Empty: the whole collection. */
  readonly name: string;
  readonly subresource: string;
}

const PATH = /^\/(?:api|apis(?=\/[^/]+\/v))\/((?:[^/]+\/)?v[^/]+)\/(.+)$/;
/** What is in a namespace; the status of a namespace is not. */
const NAMESPACED = /^namespaces\/([^/]+)\/((?!status$).+)$/;

/** `/api/v1/…` and `/apis/GROUP/VERSION/…`, with and without namespace. */
export function routeOf(path: string): Route {
  const [, apiVersion = '', inside = ''] = PATH.exec(path) ?? [];
  const [, namespace = '', rest = inside] = NAMESPACED.exec(inside) ?? [];
  const [plural = '', name = '', subresource = ''] = rest.split('/').map(decodeURIComponent);
  return checked({
    resource: findResource(apiVersion, plural),
    namespace: decodeURIComponent(namespace),
    name,
    subresource,
  });
}

function checked(
  route: Omit<Route, 'resource'> & { readonly resource: Resource | undefined },
): Route {
  const { resource, namespace, name } = route;
  if (resource === undefined) throw unknownPath();
  if (name !== '' && resource.isNamespaced && namespace === '') {
    throw notFound(resource.plural, name);
  }
  return { ...route, resource };
}

function unknownPath(): ApiError {
  return new ApiError(404, 'NotFound', 'the server could not find the requested resource');
}
