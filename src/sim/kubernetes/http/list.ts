// SPDX-License-Identifier: Apache-2.0
import { ApiError } from '../storage/api-error.ts';
import type { ObjectStore } from '../storage/object-store.ts';
import type { SimObject } from '../storage/objects.ts';
import type { Resource } from '../storage/resources.ts';
import { parseSelectors } from '../storage/selectors.ts';
import type { Presentation } from './presentation.ts';

interface ContinueToken {
  readonly version: number;
  readonly from: number;
}

export interface ListedCollection {
  /** As stored. */
  readonly resource: Resource;
  /** As requested. */
  readonly requested: Resource;
  /** Empty for all namespaces. */
  readonly namespace: string;
}

/** All pages of one list come from the same snapshot, which is kept until the last page was requested. */
export class PagedLists {
  readonly #store: ObjectStore;
  #snapshots = new Map<string, readonly SimObject[]>();

  constructor(store: ObjectStore) {
    this.#store = store;
  }

  /** Invalidates every continue token issued so far. */
  expireTokens(): void {
    this.#snapshots = new Map();
  }

  readPage(
    { resource, namespace, requested }: ListedCollection,
    query: URLSearchParams,
    presentation: Presentation,
  ): object {
    const limit = Number(query.get('limit') ?? 0);
    const token = query.get('continue') ?? '';
    const { version, from } =
      token === '' ? { version: this.#store.version, from: 0 } : decodeContinueToken(token);
    const filter = parseSelectors(requested, query);
    const all =
      token === ''
        ? this.#store
            .list(resource, namespace)
            .filter((object) => filter(presentation.convert(object)))
        : this.#takeSnapshot(token);
    const end = limit > 0 ? from + limit : all.length;
    const metadata = {
      resourceVersion: String(version),
      ...(end < all.length && {
        continue: this.#keepSnapshot({ version, from: end }, all),
        remainingItemCount: all.length - end,
      }),
    };
    return presentation.list(all.slice(from, end), metadata);
  }

  #keepSnapshot(position: ContinueToken, all: readonly SimObject[]): string {
    const token = Buffer.from(JSON.stringify({ ...position, key: this.#snapshots.size })).toString(
      'base64url',
    );
    this.#snapshots.set(token, all);
    return token;
  }

  #takeSnapshot(token: string): readonly SimObject[] {
    const all = this.#snapshots.get(token);
    this.#snapshots.delete(token);
    if (all !== undefined) return all;
    const message =
      'The provided continue parameter is too old to display a consistent list result.';
    throw new ApiError(410, 'Expired', message);
  }
}

function decodeContinueToken(token: string): ContinueToken {
  const value: unknown = JSON.parse(Buffer.from(token, 'base64url').toString('utf8'));
  if (typeof value === 'object' && value !== null && 'version' in value && 'from' in value) {
    return { version: Number(value.version), from: Number(value.from) };
  }
  throw new ApiError(400, 'BadRequest', 'continue key is not valid');
}
