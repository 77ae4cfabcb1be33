// SPDX-License-Identifier: Apache-2.0
import type { Lease } from '../../src/model/lease.ts';
import type { Store, StoreLeases } from '../../src/ports/store.ts';

/** A store that passes every acquired or renewed lease through `onLease`. */
export function observeLeases(store: Store, onLease: (lease: Lease) => Lease): Store {
  const { leases } = store;
  const observed: StoreLeases = {
    acquire: async (...args) => onLease(await leases.acquire(...args)),
    renew: async (...args) => onLease(await leases.renew(...args)),
    release: (...args) => leases.release(...args),
    read: (...args) => leases.read(...args),
  };
  return new Proxy(store, {
    get: (target, name) => {
      if (name === 'leases') return observed;
      const member: unknown = Reflect.get(target, name, target);
      return typeof member === 'function' ? (member.bind(target) as unknown) : member;
    },
  });
}
