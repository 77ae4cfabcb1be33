// SPDX-License-Identifier: Apache-2.0
import { Conflict } from '../../ports/errors.ts';
import type { StoreIdentity } from '../../ports/store.ts';
import { type ApiClient, apiPath, FIELD_MANAGER } from '../api-client.ts';
import type { ApiObject } from '../objects.ts';
import { translateStatus } from '../status.ts';

export const IDENTITY_CONFIG_MAP = 'pvescaler-identity';
const MAX_ATTEMPTS = 5;

interface ConfigMapObject extends ApiObject {
  readonly data?: Readonly<Record<string, string>> | null;
}

/** The identity in a ConfigMap: stores what is not stored yet, and returns all. */
export async function storeIdentity(
  api: ApiClient,
  namespace: string,
  candidate: StoreIdentity,
): Promise<StoreIdentity> {
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
    const found = await readConfigMap(api, namespace);
    const known = identityOf(found);
    const identity = { ...candidate, ...known };
    if (Object.keys(identity).length === Object.keys(known).length) return known;
    if (await writeConfigMap(api, namespace, { found, identity })) return identity;
  }
  throw new Conflict(
    'KUBERNETES_OBJECT_CHANGED',
    `config map ${namespace}/${IDENTITY_CONFIG_MAP} keeps changing`,
  );
}

async function readConfigMap(
  api: ApiClient,
  namespace: string,
): Promise<ConfigMapObject | undefined> {
  const operation = `read config map ${namespace}/${IDENTITY_CONFIG_MAP}`;
  const result = await api.request<ConfigMapObject>({
    path: path(namespace, IDENTITY_CONFIG_MAP),
    operation,
  });
  if (result.ok) return result.value;
  if (result.status.code === 404) return undefined;
  throw translateStatus(result.status, operation);
}

/** False when another process was faster. */
async function writeConfigMap(
  api: ApiClient,
  namespace: string,
  { found, identity }: { found: ConfigMapObject | undefined; identity: StoreIdentity },
): Promise<boolean> {
  const operation = `write config map ${namespace}/${IDENTITY_CONFIG_MAP}`;
  const result = await api.request({
    method: found === undefined ? 'POST' : 'PUT',
    path: found === undefined ? path(namespace) : path(namespace, IDENTITY_CONFIG_MAP),
    query: { fieldManager: FIELD_MANAGER },
    body: {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: found?.metadata ?? { name: IDENTITY_CONFIG_MAP },
      data: { ...found?.data, ...identity },
    },
    operation,
  });
  if (result.ok) return true;
  // 404 of a creation means that the namespace is missing.
  const isLate = result.status.code === 409 || (result.status.code === 404 && found !== undefined);
  if (isLate) return false;
  throw translateStatus(result.status, operation);
}

function identityOf(found: ConfigMapObject | undefined): StoreIdentity {
  const { id, clusterUid } = found?.data ?? {};
  return { ...(id !== undefined && { id }), ...(clusterUid !== undefined && { clusterUid }) };
}

function path(namespace: string, ...name: readonly string[]): string {
  return apiPath('api', 'v1', 'namespaces', namespace, 'configmaps', ...name);
}
