// SPDX-License-Identifier: Apache-2.0
// Deliberate defects of a process with an autoscaler, each of which the soak must detect.
import type { ProcessMutation } from './autoscaler-site.ts';

/** The same object with some methods replaced. */
function replaceMethods<T extends object>(original: T, methods: Partial<T>): T {
  return new Proxy(original, {
    get: (target, key) => {
      const replaced: unknown = Reflect.get(methods, key) ?? Reflect.get(target, key);
      return typeof replaced === 'function' ? replaced.bind(target) : replaced;
    },
  });
}

interface SoakMutation extends ProcessMutation {
  readonly detectedAs: RegExp;
}

export const AUTOSCALER_MUTATIONS: Readonly<Record<string, SoakMutation>> = {
  'machines are deleted without a drain': {
    detectedAs: /was stopped with running pods/,
    fleet: (fleet) =>
      replaceMethods(fleet, {
        drain: ({ machines, ...why }) =>
          fleet.remove(
            machines.map(({ id }) => id),
            why,
          ),
      }),
  },
  'all machines are drained when one is meant, and the drains are not checked': {
    detectedAs: /fits on no other node/,
    checkDrain: () => Promise.resolve({ ok: true }),
    fleet: (fleet) =>
      replaceMethods(fleet, {
        drain: ({ machines, ...why }) => {
          const ready = fleet.view.machines.all().filter(({ phase }) => phase === 'ready');
          const reason = machines[0]?.reason ?? '';
          return fleet.drain({ ...why, machines: ready.map(({ id }) => ({ id, reason })) });
        },
      }),
  },
  'a drain is not checked again before evictions': {
    detectedAs: /fits on no other node/,
    checkDrain: () => Promise.resolve({ ok: true }),
  },
  'pods are deleted, whatever their budgets': {
    detectedAs: /is deleted, not evicted/,
    request: (request) => {
      if (!request.url.endsWith('/eviction')) return request;
      const { body: _, ...rest } = request;
      return { ...rest, method: 'DELETE', url: request.url.replace(/\/eviction$/, '') };
    },
  },
};
