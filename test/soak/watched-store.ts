// SPDX-License-Identifier: Apache-2.0
import type { Lease } from '../../src/model/lease.ts';
import type { Store, StoreLeases } from '../../src/ports/store.ts';

/** The same store; whoever takes or renews a lease through it is seen, and gets what `seen` makes of it. */
export function watchedStore(store: Store, seen: (lease: Lease) => Lease): Store {
  const { leases } = store;
  const watched: StoreLeases = {
    acquire: async (...given) => seen(await leases.acquire(...given)),
    renew: async (...given) => seen(await leases.renew(...given)),
    release: (...given) => leases.release(...given),
    read: (...given) => leases.read(...given),
  };
  return new Proxy(store, {
    get: (target, name) => {
      if (name === 'leases') return watched;
      const member: unknown = Reflect.get(target, name, target);
      return typeof member === 'function' ? (member.bind(target) as unknown) : member;
    },
  });
}
