// SPDX-License-Identifier: Apache-2.0
import type { Command } from 'commander';
import type { Orphan } from '../fleet/index.ts';
import type { Machine } from '../model/machine.ts';
import { NotFound } from '../ports/errors.ts';
import type { OpenFleet } from '../setup/index.ts';
import { type ConfigOptions, withConfigOptions } from './config-options.ts';
import type { CommandHost } from './context.ts';
import { addOrphansAdopt, addOrphansForget } from './orphans-decide.ts';
import { type OutputOptions, withOutputOption } from './output-option.ts';
import { printObjects, type TableFormat } from './print-objects.ts';
import { parseTimeoutMs, type TimeoutOptions, withTimeoutOption } from './timeout-option.ts';
import { withFleet } from './with-fleet.ts';

interface OrphansOptions extends ConfigOptions, TimeoutOptions, OutputOptions {
  readonly fix?: true;
}

export function addOrphans(parent: Command, host: CommandHost): void {
  const command = withTimeoutOption(
    parent
      .command('orphans')
      .description(
        'list VMs, records and seeds that belong to no machine, or decide whose a VM is',
      ),
  );
  withConfigOptions(withOutputOption(command))
    .option('--fix', 'adopt or delete them, except those that need a manual decision')
    .action((options: OrphansOptions) =>
      withFleet(host, options, {
        access: 'drive',
        checksTokens: false,
        adjust: (settings) =>
          options.fix === true ? { ...settings, orphans: 'delete', lostAfterMs: 0 } : settings,
        use: (open) => listOrphans(host, open, options),
      }),
    );
  addOrphansAdopt(command, host);
  addOrphansForget(command, host);
}

async function listOrphans(
  host: CommandHost,
  open: OpenFleet,
  options: OrphansOptions,
): Promise<void> {
  if (options.fix === true) await fixOrphans(host, open, parseTimeoutMs(options));
  const found = await open.fleet.orphans();
  await printObjects(host, options, {
    value: found,
    // The commands take the bare id of a VM.
    names: found.map(({ what }) => what.replace(/^VM /, '')),
    text: (format) => render(found, format),
  });
  if (found.length > 0) host.exitWith(new NotFound('RECORD_NOT_FOUND', '').externalCodes.exitCode);
}

/** Orphans that remain after so many passes need something else; the journal has the reason. */
const MAX_PASSES = 3;

/** The driver fixes orphans in its passes; the command only has to wait for them. */
async function fixOrphans(
  host: CommandHost,
  open: OpenFleet,
  timeoutMs: number | undefined,
): Promise<void> {
  const { runUntilDone } = await import('./run-until-done.ts');
  await runUntilDone(host, open, {
    regions: Object.keys(open.config.regions),
    timeoutMs,
    isUnfinished: isInProgress,
    submit: () => Promise.resolve(),
    ifAnotherDrives:
      "It adopts VMs and gives up lost machines; with 'cleanup: { orphans: delete }' it also deletes the other orphans. Or stop it and run this command again.",
    isDone: async (completePasses) => {
      const { machines } = await open.fleet.status();
      if (machines.some(isInProgress)) return false;
      if (completePasses >= MAX_PASSES) return true;
      return (await open.fleet.orphans()).every(({ fixable }) => !fixable);
    },
  });
}

function isInProgress({ phase }: Machine): boolean {
  return ['configuring', 'starting', 'booting', 'deleting'].includes(phase);
}

function render(orphans: readonly Orphan[], format: TableFormat): string {
  if (orphans.length === 0) return 'no orphans\n';
  const table = format.table(
    ['KIND', 'REGION', 'OBJECT', 'REASON'],
    orphans.map(({ kind, region, what, message }) => [kind, region, what, message]),
  );
  const commands = orphans.flatMap(({ what, commands: choices }) =>
    choices === undefined ? [] : [`${what}: run ${choices.join(' or ')}\n`],
  );
  return `${table}${commands.join('')}`;
}
