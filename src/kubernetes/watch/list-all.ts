// SPDX-License-Identifier: Apache-2.0
import { Bug } from '../../ports/errors.ts';
import type { Api } from '../api.ts';
import type { ApiList, ApiObject } from '../objects.ts';
import { isExpired, translateStatus } from '../status.ts';

export interface ListOrder {
  readonly api: Api;
  readonly path: string;
  readonly pageSize: number;
  readonly signal: AbortSignal;
  /** Called with each object, in pages; what it keeps of it is all that is kept. */
  readonly take: (object: ApiObject) => void;
  /** What was taken so far is void: the list begins anew. */
  readonly restart: () => void;
}

/**
 * Reads a collection in pages and returns the resource version to watch from. Without a resource version in the
 * request the API server answers with what is certainly current.
 */
export async function listAll(order: ListOrder): Promise<string> {
  let token = '';
  let limit = String(order.pageSize);
  for (;;) {
    const answer = await order.api.ask<ApiList<ApiObject>>({
      path: order.path,
      query: { ...(limit !== '' && { limit }), ...(token !== '' && { continue: token }) },
      doing: `list ${order.path}`,
      signal: order.signal,
    });
    if (answer.ok) {
      for (const item of answer.value.items ?? []) order.take(item);
      token = answer.value.metadata.continue ?? '';
      if (token === '') return versionOf(answer.value, order.path);
    } else if (isExpired(answer.status) && token !== '') {
      // The pages took longer than the server remembers. Once more, in one piece: that cannot expire.
      order.restart();
      token = '';
      limit = '';
    } else {
      throw translateStatus(answer.status, `list ${order.path}`);
    }
  }
}

function versionOf({ metadata }: ApiList<ApiObject>, path: string): string {
  if (metadata.resourceVersion !== undefined && metadata.resourceVersion !== '') {
    return metadata.resourceVersion;
  }
  throw new Bug('UNEXPECTED_ANSWER', `list ${path}: no resource version to go on from`);
}
