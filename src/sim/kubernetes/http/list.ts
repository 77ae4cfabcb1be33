// SPDX-License-Identifier: Apache-2.0
import { ApiError } from '../storage/api-error.ts';
import type { ObjectStore } from '../storage/object-store.ts';
import type { SimObject } from '../storage/objects.ts';
import type { Resource } from '../storage/resources.ts';

interface ContinueToken {
  readonly version: number;
  readonly from: number;
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

  readPage(resource: Resource, namespace: string, query: URLSearchParams): object {
    const limit = Number(query.get('limit') ?? 0);
    const token = query.get('continue') ?? '';
    const { version, from } =
      token === '' ? { version: this.#store.version, from: 0 } : decodeContinueToken(token);
    const all = token === '' ? this.#store.list(resource, namespace) : this.#takeSnapshot(token);
    const end = limit > 0 ? from + limit : all.length;
    const metadata = {
      resourceVersion: String(version),
      ...(end < all.length && {
        continue: this.#keepSnapshot({ version, from: end }, all),
        remainingItemCount: all.length - end,
      }),
    };
    const { apiVersion, kind } = resource;
    return { kind: `${kind}List`, apiVersion, metadata, items: all.slice(from, end) };
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
