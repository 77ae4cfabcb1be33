// SPDX-License-Identifier: Apache-2.0
// What is on a node now, read from the API server and not from the watch cache: a drain decides by it.
import type { Pod } from '../model/pod.ts';
import type { PodSource } from '../model/pod-source.ts';
import type { ClaimRef } from '../ports/cluster.ts';
import { Bug } from '../ports/errors.ts';
import { type ApiClient, apiPath } from './api-client.ts';
import type { Interner } from './interner.ts';
import type { ApiObject, ClaimObject, VolumeAttachmentObject } from './objects.ts';
import { parsePod } from './parse-pod.ts';
import { translateStatus } from './status.ts';
import { listAll } from './watch/list-all.ts';

const PAGE_SIZE = 500;

interface ReadOptions {
  readonly api: ApiClient;
  readonly signal: AbortSignal;
}

export async function listPodsOn(
  node: string,
  { interner, ...options }: ReadOptions & { readonly interner: Interner },
): Promise<readonly Pod[]> {
  const query = { fieldSelector: `spec.nodeName=${node}` };
  const objects = await listObjects<PodSource & ApiObject>('/api/v1/pods', query, options);
  const pods = objects.map((object) => {
    const pod = parsePod(object, interner);
    // A pod that is skipped would be lost with its node.
    if (!pod.ok) throw new Bug('UNEXPECTED_ANSWER', pod.problem);
    return pod.value;
  });
  return pods.filter(({ nodeName }) => nodeName === node);
}

/** Names of volumes; of an inline volume, the name of its attachment. */
export async function listAttachedVolumes(
  node: string,
  exceptClaims: readonly ClaimRef[],
  options: ReadOptions,
): Promise<readonly string[]> {
  const path = '/apis/storage.k8s.io/v1/volumeattachments';
  const all = await listObjects<VolumeAttachmentObject>(path, {}, options);
  const attached = all
    .filter(({ spec }) => spec?.nodeName === node)
    .map(({ metadata, spec }) => spec?.source?.persistentVolumeName ?? metadata.name ?? '');
  if (attached.length === 0) return [];
  const kept = await Promise.all(exceptClaims.map((claim) => readVolumeName(claim, options)));
  return attached.filter((name) => !kept.includes(name));
}

/** Undefined if the claim is gone or not bound. */
async function readVolumeName(
  { namespace, name }: ClaimRef,
  { api, signal }: ReadOptions,
): Promise<string | undefined> {
  const operation = `read claim ${namespace}/${name}`;
  const path = apiPath('api', 'v1', 'namespaces', namespace, 'persistentvolumeclaims', name);
  const result = await api.request<ClaimObject>({ path, operation, signal });
  if (result.ok) return result.value.spec?.volumeName;
  if (result.status.code === 404) return undefined;
  throw translateStatus(result.status, operation);
}

async function listObjects<T extends ApiObject>(
  path: string,
  query: Readonly<Record<string, string>>,
  { api, signal }: ReadOptions,
): Promise<readonly T[]> {
  const objects: T[] = [];
  await listAll({
    api,
    path,
    query,
    pageSize: PAGE_SIZE,
    signal,
    // The path determines the type of its objects.
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- see above
    onObject: (object) => objects.push(object as T),
    onRestart: () => objects.splice(0),
  });
  return objects;
}
