// SPDX-License-Identifier: Apache-2.0
// Makes the decision that the standalone autoscaler would make now, for commands that show it.
import type { PlannedOnce } from '../autoscaler/index.ts';
import { InvalidConfig } from '../ports/errors.ts';
import type { OpenFleet } from '../setup/index.ts';
import type { ConfigOptions } from './config-options.ts';
import type { CommandHost } from './context.ts';
import { withFleet } from './with-fleet.ts';

export async function withPlan(
  host: CommandHost,
  options: ConfigOptions,
  use: (planned: PlannedOnce, open: OpenFleet) => Promise<void> | void,
): Promise<void> {
  await withFleet(host, options, {
    access: 'drive',
    watch: 'all',
    use: async (open) => use(await makePlan(host, open), open),
  });
}

async function makePlan(
  { context }: CommandHost,
  { fleet, cluster, config }: OpenFleet,
): Promise<PlannedOnce> {
  if (cluster === undefined)
    throw new InvalidConfig('CONFIG_INVALID', 'a plan needs access to Kubernetes', {
      hint: 'Set cluster.kubeconfig in the config, or run the command in a pod.',
    });
  const { planOnce } = await import('../autoscaler/index.ts');
  const { pools, guards, autoscaler, pricing, gpu } = config;
  return planOnce({
    fleet,
    cluster,
    clock: context.clock,
    random: context.random,
    pools,
    settings: { ...autoscaler, guards, pricing, gpuLabel: gpu.label },
    signal: context.signal,
  });
}
