// SPDX-License-Identifier: Apache-2.0
// Counts and times the calls to Kubernetes. Looking at the view and waiting for its change ask nobody.
import type { Clock } from '../ports/clock.ts';
import type { Cluster } from '../ports/cluster.ts';
import { asPvescalerError } from '../ports/errors.ts';
import type { Meters } from '../ports/meters.ts';

const ASKS_NOBODY = new Set(['view', 'changed', 'close']);

export function meteredCluster(
  cluster: Cluster,
  { meters, clock }: { readonly meters: Meters; readonly clock: Clock },
): Cluster {
  const measured = async (call: string, work: () => unknown): Promise<unknown> => {
    const began = clock.monotonic();
    const done = (outcome: string) => {
      meters.add('pvescaler_kubernetes_calls_total', { call, outcome });
      const seconds = (clock.monotonic() - began) / 1_000;
      meters.observe('pvescaler_kubernetes_call_duration_seconds', { call }, seconds);
    };
    try {
      const answer: unknown = await work();
      done('ok');
      return answer;
    } catch (error) {
      done(asPvescalerError(error).surface.metricLabel);
      throw error;
    }
  };
  return new Proxy(cluster, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name, target);
      if (typeof member !== 'function') return member;
      const call = (given: unknown[]): unknown => Reflect.apply(member, target, given);
      if (ASKS_NOBODY.has(String(name))) return (...given: unknown[]) => call(given);
      return (...given: unknown[]) => measured(String(name), () => call(given));
    },
  });
}
