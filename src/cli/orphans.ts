// SPDX-License-Identifier: Apache-2.0
import type { Command } from 'commander';
import type { Orphan } from '../fleet/index.ts';
import type { Machine } from '../model/machine.ts';
import { NotFound } from '../ports/errors.ts';
import { type ConfigOptions, withConfigOptions } from './config-options.ts';
import type { CommandHost } from './context.ts';
import type { OpenFleet } from './open-fleet.ts';
import { table } from './table.ts';
import { type TimeoutOptions, timeoutMsOf, withTimeoutOption } from './timeout-option.ts';
import { withFleet } from './with-fleet.ts';
import { workUntilDone } from './work-until.ts';

interface OrphansOptions extends ConfigOptions, TimeoutOptions {
  readonly fix?: true;
  readonly json?: true;
}

export function addOrphans(parent: Command, host: CommandHost): void {
  const command = withTimeoutOption(
    parent
      .command('orphans')
      .description('VMs, records, seeds and addresses of ours that have lost their counterpart'),
  );
  withConfigOptions(command)
    .option('--fix', 'adopt or remove them; what only a person can decide stays')
    .option('--json', 'as JSON')
    .action((options: OrphansOptions) =>
      withFleet(host, options, {
        to: 'drive',
        adjust: (settings) =>
          options.fix === true ? { ...settings, orphans: 'delete', lostAfterMs: 0 } : settings,
        use: (open) => run(host, open, options),
      }),
    );
}

async function run(host: CommandHost, open: OpenFleet, options: OrphansOptions): Promise<void> {
  if (options.fix === true) await fix(host, open, timeoutMsOf(options));
  const found = await open.fleet.orphans();
  host.context.out(options.json === true ? `${JSON.stringify(found, null, 2)}\n` : render(found));
  if (found.length > 0) host.exitWith(new NotFound('RECORD_NOT_FOUND', '').externalCodes.exitCode);
}

/** What so many looks at everything did not set right stays: the reason has been told, and is beyond this process. */
const ENOUGH_ROUNDS = 3;

/** A driver sets right what it meets; it has to look, and then to finish. */
async function fix(
  host: CommandHost,
  open: OpenFleet,
  timeoutMs: number | undefined,
): Promise<void> {
  await workUntilDone(host, open, {
    regions: [],
    timeoutMs,
    isLeft: isMoving,
    ask: () => Promise.resolve(),
    ifAnotherDrives:
      "It adopts VMs and gives lost machines up by itself; with 'cleanup: { orphans: delete }' it removes the rest too. Or stop it and run this again.",
    isDone: async (rounds) => {
      const { machines } = await open.fleet.status();
      if (machines.some(isMoving)) return false;
      if (rounds >= ENOUGH_ROUNDS) return true;
      return (await open.fleet.orphans()).every(({ fixable }) => !fixable);
    },
  });
}

function isMoving({ phase }: Machine): boolean {
  return ['configuring', 'starting', 'booting', 'deleting'].includes(phase);
}

function render(orphans: readonly Orphan[]): string {
  if (orphans.length === 0) return 'nothing is orphaned\n';
  return table([
    ['KIND', 'REGION', 'WHAT', ''],
    ...orphans.map(({ kind, region, what, message }) => [kind, region, what, message]),
  ]);
}
