// SPDX-License-Identifier: Apache-2.0
// Opens what a command needs to look at the fleet, or to drive it, and closes it whatever happens.
import type { Config } from '../config/index.ts';
import type { FleetSettings } from '../fleet/index.ts';
import { type ConfigOptions, readConfigFor } from './config-options.ts';
import type { CommandHost } from './context.ts';
import { type OpenFleet, openFleet } from './open-fleet.ts';
import { tellFaults } from './tell-problems.ts';

interface Access {
  /** Looking reads an existing database only; driving connects to Proxmox and may make one. */
  readonly to: 'look' | 'drive';
  readonly adjust?: (settings: FleetSettings) => FleetSettings;
}

export async function withFleet(
  host: CommandHost,
  options: ConfigOptions,
  work: Access & { readonly use: (open: OpenFleet) => Promise<void> },
): Promise<void> {
  const result = await readConfigFor(host.context, options);
  if (!result.ok) return tellFaults(host, result.problems);
  const { config }: { config: Config } = result;
  const open = await openFleet(host.context, config, {
    to: work.to,
    adjust: work.adjust,
    warn: (warning) => host.context.err(`warning: ${warning}\n`),
  });
  try {
    await work.use(open);
  } finally {
    await open.close();
  }
}
