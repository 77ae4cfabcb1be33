// SPDX-License-Identifier: Apache-2.0
// Makes a plan for a command: reads the cluster, Proxmox and the records once, and changes nothing.
import type { MadePlan } from '../autoscaler/index.ts';
import { InvalidConfig } from '../ports/errors.ts';
import { scalingSettings } from '../setup/index.ts';
import type { ConfigOptions } from './config-options.ts';
import type { CommandHost } from './context.ts';
import { withFleet } from './with-fleet.ts';

export function withPlan(
  host: CommandHost,
  options: ConfigOptions,
  use: (made: MadePlan) => Promise<void>,
): Promise<void> {
  return withFleet(host, options, {
    access: 'drive',
    watch: 'all',
    use: async ({ fleet, cluster, config }) => {
      if (cluster === undefined)
        throw new InvalidConfig('CONFIG_INVALID', 'a plan needs access to Kubernetes', {
          hint: 'Set cluster.kubeconfig, or run pvescaler in a pod of the cluster.',
        });
      const { makePlan } = await import('../autoscaler/index.ts');
      const { clock } = host.context;
      const { pools } = config;
      await use(
        await makePlan({ fleet, cluster, clock, pools, settings: scalingSettings(config) }),
      );
    },
  });
}
