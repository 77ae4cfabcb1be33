// SPDX-License-Identifier: Apache-2.0
import { ApiError, notFoundError } from '../storage/api-error.ts';
import {
  CORE_EVENTS,
  EVENTS,
  findResource,
  qualifiedName,
  type Resource,
} from '../storage/resources.ts';

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
export function parseRoute(path: string): Route {
  const { apiVersion, namespace, plural, name, subresource } = splitPath(path);
  const requested = findResource(apiVersion, plural);
  if (requested === undefined || !hasSubresource(requested, subresource)) throw unknownPathError();
  if (name !== '' && requested.isNamespaced && namespace === '') {
    throw notFoundError(qualifiedName(requested), name);
  }
  const resource = requested === CORE_EVENTS ? EVENTS : requested;
  return { resource, requested, namespace, name, subresource };
}

function splitPath(path: string) {
  const [, apiVersion = '', inside = ''] = API_PATH.exec(path) ?? [];
  const [, namespace = '', rest = inside] = NAMESPACED_PATH.exec(inside) ?? [];
  const [plural = '', name = '', subresource = ''] = rest.split('/').map(decodeURIComponent);
  return { apiVersion, namespace: decodeURIComponent(namespace), plural, name, subresource };
}

function hasSubresource({ hasStatus, subresources }: Resource, name: string): boolean {
  return name === '' || (name === 'status' && hasStatus) || subresources.includes(name);
}

function unknownPathError(): ApiError {
  return new ApiError(404, 'NotFound', 'the server could not find the requested resource');
}
