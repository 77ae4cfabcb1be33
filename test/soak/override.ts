// SPDX-License-Identifier: Apache-2.0

/** A proxy that replaces some members; all others keep their own `this`. */
export function override<T extends object>(original: T, changes: Partial<T>): T {
  return new Proxy(original, {
    get: (target, name) => {
      if (name in changes) return Reflect.get(changes, name) as unknown;
      const member: unknown = Reflect.get(target, name, target);
      return typeof member === 'function' ? (member.bind(target) as unknown) : member;
    },
  });
}
