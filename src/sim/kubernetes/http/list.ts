// SPDX-License-Identifier: Apache-2.0
import { ApiError } from '../world/api-error.ts';
import type { SimObject } from '../world/objects.ts';
import type { Resource } from '../world/resources.ts';
import type { Store } from '../world/store.ts';

interface Continuation {
  readonly version: number;
  readonly from: number;
}

/** Pages of one list all show the same instant: what is read first is kept until the last page was asked for. */
export class Lists {
  readonly #store: Store;
  #kept = new Map<string, readonly SimObject[]>();

  constructor(store: Store) {
    this.#store = store;
  }

  /** Continuations given out so far are void. */
  forget(): void {
    this.#kept = new Map();
  }

  page(resource: Resource, namespace: string, query: URLSearchParams): object {
    const limit = Number(query.get('limit') ?? 0);
    const token = query.get('continue') ?? '';
    const { version, from } =
      token === '' ? { version: this.#store.version, from: 0 } : decode(token);
    const all = token === '' ? this.#store.list(resource, namespace) : this.#rest(token);
    const end = limit > 0 ? from + limit : all.length;
    const metadata = {
      resourceVersion: String(version),
      ...(end < all.length && {
        continue: this.#keep({ version, from: end }, all),
        remainingItemCount: all.length - end,
      }),
    };
    const { apiVersion, kind } = resource;
    return { kind: `${kind}List`, apiVersion, metadata, items: all.slice(from, end) };
  }

  #keep(at: Continuation, all: readonly SimObject[]): string {
    const token = Buffer.from(JSON.stringify({ ...at, key: this.#kept.size })).toString(
      'base64url',
    );
    this.#kept.set(token, all);
    return token;
  }

  #rest(token: string): readonly SimObject[] {
    const all = this.#kept.get(token);
    this.#kept.delete(token);
    if (all !== undefined) return all;
    const message =
      'The provided continue parameter is too old to display a consistent list result.';
    throw new ApiError(410, 'Expired', message);
  }
}

function decode(token: string): Continuation {
  const value: unknown = JSON.parse(Buffer.from(token, 'base64url').toString('utf8'));
  if (typeof value === 'object' && value !== null && 'version' in value && 'from' in value) {
    return { version: Number(value.version), from: Number(value.from) };
  }
  throw new ApiError(400, 'BadRequest', 'continue key is not valid');
}
