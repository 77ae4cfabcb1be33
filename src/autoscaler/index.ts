// SPDX-License-Identifier: Apache-2.0
// The standalone front end: watches pods, decides which machines are needed, requests and drains them, and says why.
// Start reading at autoscaler.ts.
import type { CheckDrain } from '../fleet/index.ts';
import { Autoscaler, type AutoscalerOptions, type AutoscalerSettings } from './autoscaler.ts';
import type { AutoscalerStatus } from './autoscaler-status.ts';

export { Autoscaler, type AutoscalerOptions, type AutoscalerSettings } from './autoscaler.ts';
export { ClusterObserver } from './observation.ts';
export { type PlannedOnce, type PlanOnceOptions, planOnce } from './plan-once.ts';
export { scalingInput } from './scaling-input.ts';

interface RunningAutoscaler {
  readonly description: string;
  waitingFor(): readonly string[];
  /** Never rejects: an error of one decision does not end the loop. */
  readonly failed: Promise<never>;
  readonly checkDrain: CheckDrain;
  scaling(): AutoscalerStatus;
  /** They apply from the next decision on. */
  replaceSettings(settings: AutoscalerSettings): void;
  /** Waits for the decision in progress. */
  close(): Promise<void>;
}

export function startAutoscaler({
  signal,
  ...options
}: AutoscalerOptions & { readonly signal: AbortSignal }): RunningAutoscaler {
  const autoscaler = new Autoscaler(options);
  const stop = new AbortController();
  const running = autoscaler.run(AbortSignal.any([signal, stop.signal]));
  return {
    description: `the standalone autoscaler for ${options.pools.map(({ name }) => name).join(', ')}`,
    waitingFor: () => autoscaler.waitingFor(),
    failed: new Promise<never>(() => undefined),
    checkDrain: autoscaler.checkDrain,
    scaling: () => autoscaler.status,
    replaceSettings: (settings) => autoscaler.replaceSettings(settings),
    close: async () => {
      stop.abort();
      await running;
    },
  };
}
