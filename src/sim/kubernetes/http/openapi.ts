// SPDX-License-Identifier: Apache-2.0
// OpenAPI v3 documents: kubectl reads from the operations that the server validates fields and supports dry runs, and then
// validates nothing itself; from the schemas it explains kinds.
import { createHash } from 'node:crypto';
import { type Resource, splitApiVersion } from '../storage/resources.ts';
import { describeKind } from './openapi-schemas.ts';

const PREFIX = '/openapi/v3';
const PATCH_PARAMETERS = ['dryRun', 'fieldManager', 'fieldValidation', 'force'].map((name) => ({
  name,
  in: 'query',
  schema: { type: 'string', uniqueItems: true },
}));

/** Undefined when the path is no path of a document. */
export function readOpenApi(path: string, served: readonly Resource[]): object | undefined {
  if (path !== PREFIX && !path.startsWith(`${PREFIX}/`)) return undefined;
  const byPath = Map.groupBy(served, ({ apiVersion }) => apiPathOf(apiVersion));
  if (path === PREFIX) return { paths: Object.fromEntries([...byPath].map(indexEntry)) };
  const apiPath = path.slice(PREFIX.length + 1);
  const resources = byPath.get(apiPath);
  return resources && describePaths(apiPath, resources);
}

function apiPathOf(apiVersion: string): string {
  return apiVersion === 'v1' ? 'api/v1' : `apis/${apiVersion}`;
}

/** kubectl keeps a document until its hash changes. */
function indexEntry([path, resources]: [string, readonly Resource[]]): [string, object] {
  const schemas = resources.map(({ custom }) => custom?.schema.source);
  const hash = createHash('sha256').update(JSON.stringify(schemas)).digest('hex');
  return [path, { serverRelativeURL: `${PREFIX}/${path}?hash=${hash}` }];
}

function describePaths(apiPath: string, resources: readonly Resource[]): object {
  const paths = resources.map(({ apiVersion, plural, kind, isNamespaced }) => {
    const scope = isNamespaced ? 'namespaces/{namespace}/' : '';
    const operation = {
      parameters: PATCH_PARAMETERS,
      responses: { '200': { description: 'OK' } },
      'x-kubernetes-group-version-kind': { ...splitApiVersion(apiVersion), kind },
    };
    const path = `/${apiPath}/${scope}${plural}/{name}`;
    return [path, { patch: { ...operation, 'x-kubernetes-action': 'patch' } }];
  });
  return {
    openapi: '3.0.0',
    info: { title: 'Kubernetes', version: 'v1.36.2' },
    paths: Object.fromEntries(paths),
    components: { schemas: Object.fromEntries(resources.map(describeKind)) },
  };
}
