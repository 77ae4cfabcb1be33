// SPDX-License-Identifier: Apache-2.0
// OpenAPI v3 documents: kubectl reads from the operations that the server validates fields and supports dry runs, and then
// validates nothing itself; from the schemas it explains kinds.
import { RESOURCES, splitApiVersion } from '../storage/resources.ts';
import { describeKind } from './openapi-schemas.ts';

const PREFIX = '/openapi/v3';
const PATCH_PARAMETERS = ['dryRun', 'fieldManager', 'fieldValidation', 'force'].map((name) => ({
  name,
  in: 'query',
  schema: { type: 'string', uniqueItems: true },
}));

/** Undefined when the path is no path of a document. */
export function readOpenApi(path: string): object | undefined {
  if (path === PREFIX) return { paths: Object.fromEntries(API_PATHS.map(indexEntry)) };
  if (!path.startsWith(`${PREFIX}/`)) return undefined;
  const found = API_PATHS.find((one) => path === `${PREFIX}/${one}`);
  return found === undefined ? undefined : describePaths(found);
}

function apiPathOf(apiVersion: string): string {
  return apiVersion === 'v1' ? 'api/v1' : `apis/${apiVersion}`;
}

const API_PATHS = [...new Set(RESOURCES.map(({ apiVersion }) => apiPathOf(apiVersion)))];

function indexEntry(path: string): [string, object] {
  return [path, { serverRelativeURL: `${PREFIX}/${path}?hash=0` }];
}

function describePaths(apiPath: string): object {
  const resources = RESOURCES.filter(({ apiVersion }) => apiPathOf(apiVersion) === apiPath);
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
