// SPDX-License-Identifier: Apache-2.0
// Counts and times calls to Kubernetes.
import type { Clock } from '../ports/clock.ts';
import type { Cluster } from '../ports/cluster.ts';
import { asPvescalerError } from '../ports/errors.ts';
import type { Meters } from '../ports/meters.ts';

/** These methods send no request. */
const LOCAL_METHODS = new Set(['view', 'changesSince', 'waitForChange', 'close']);

export function meteredCluster(
  cluster: Cluster,
  { meters, clock }: { readonly meters: Meters; readonly clock: Clock },
): Cluster {
  const measure = async (method: string, work: () => unknown): Promise<unknown> => {
    const startedAt = clock.monotonic();
    const record = (outcome: string) => {
      meters.add('pvescaler_kubernetes_calls_total', { method, outcome });
      const seconds = (clock.monotonic() - startedAt) / 1_000;
      meters.observe('pvescaler_kubernetes_call_duration_seconds', { method }, seconds);
    };
    try {
      const result: unknown = await work();
      record('ok');
      return result;
    } catch (error) {
      record(asPvescalerError(error).externalCodes.metricLabel);
      throw error;
    }
  };
  return new Proxy(cluster, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name, target);
      if (typeof member !== 'function') return member;
      const call = (args: unknown[]): unknown => Reflect.apply(member, target, args);
      if (LOCAL_METHODS.has(String(name))) return (...args: unknown[]) => call(args);
      return (...args: unknown[]) => measure(String(name), () => call(args));
    },
  });
}
