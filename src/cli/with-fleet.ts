// SPDX-License-Identifier: Apache-2.0
// Opens the fleet for a command, and closes it afterwards.
import type { FleetSettings } from '../fleet/index.ts';
import type { OpenFleet, OpenOptions } from '../setup/index.ts';
import { type ConfigOptions, readConfigFor, reportConfigErrors } from './config-options.ts';
import type { CommandHost } from './context.ts';

interface FleetUse extends Pick<OpenOptions, 'access' | 'checksTokens'> {
  readonly adjust?: (settings: FleetSettings) => FleetSettings;
  /** Which objects of the cluster are watched. Default: Nodes. */
  readonly watch?: 'nodes' | 'all';
}

export async function withFleet(
  host: CommandHost,
  options: ConfigOptions,
  work: FleetUse & { readonly use: (open: OpenFleet) => Promise<void> },
): Promise<void> {
  const file = await readConfigFor(host.context, options);
  if (!file.ok) return reportConfigErrors(host, file.problems);
  const { withPoolObjects } = await import('./with-pool-objects.ts');
  const result = await withPoolObjects(host.context, options, file);
  if (!result.ok) return reportConfigErrors(host, result.problems);
  const { openFleet } = await import('../setup/index.ts');
  const open = await openFleet(host.context, result.config, {
    access: work.access,
    checksTokens: work.checksTokens,
    adjust: work.adjust,
    watch: work.watch,
    warn: (warning) => host.context.err(`warning: ${warning}\n`),
  });
  try {
    await work.use(open);
  } finally {
    await open.close();
  }
}
