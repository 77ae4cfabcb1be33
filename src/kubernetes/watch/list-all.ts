// SPDX-License-Identifier: Apache-2.0
import { Bug } from '../../ports/errors.ts';
import type { ApiClient } from '../api-client.ts';
import type { ApiList, ApiObject } from '../objects.ts';
import { isExpired, translateStatus } from '../status.ts';

interface ListRequest {
  readonly api: ApiClient;
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly pageSize: number;
  readonly signal: AbortSignal;
  readonly onObject: (object: ApiObject) => unknown;
  /** The list begins again: objects delivered so far are void. */
  readonly onRestart: () => unknown;
}

/**
 * Reads a collection in pages and returns the resource version to watch from. The request names no resource version,
 * so the API server reads current data from etcd, not from its cache.
 */
export async function listAll(request: ListRequest): Promise<string> {
  const { api, path, signal } = request;
  const operation = `list ${path}`;
  let continueToken = '';
  let limit = String(request.pageSize);
  for (;;) {
    const page = await api.request<ApiList<ApiObject>>({
      path,
      query: {
        ...request.query,
        ...(limit !== '' && { limit }),
        ...(continueToken !== '' && { continue: continueToken }),
      },
      operation,
      signal,
    });
    if (page.ok) {
      for (const item of page.value.items ?? []) request.onObject(item);
      continueToken = page.value.metadata.continue ?? '';
      if (continueToken === '') return versionOf(page.value, operation);
    } else if (isExpired(page.status) && continueToken !== '') {
      // Paging took longer than the server keeps the version. A list in one page cannot expire.
      request.onRestart();
      continueToken = '';
      limit = '';
    } else {
      throw translateStatus(page.status, operation);
    }
  }
}

/** The newest resource version of the server, read from etcd. */
export async function readVersion({
  api,
  path,
  signal,
}: Pick<ListRequest, 'api' | 'path' | 'signal'>): Promise<string> {
  const operation = `list ${path}`;
  const query = { limit: '1' };
  const page = await api.requestOrThrow<ApiList<ApiObject>>({ path, query, operation, signal });
  return versionOf(page, operation);
}

function versionOf({ metadata }: ApiList<ApiObject>, operation: string): string {
  if (metadata.resourceVersion !== undefined && metadata.resourceVersion !== '') {
    return metadata.resourceVersion;
  }
  throw new Bug('UNEXPECTED_ANSWER', `${operation}: the response has no resource version`);
}
