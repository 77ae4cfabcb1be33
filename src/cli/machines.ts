// SPDX-License-Identifier: Apache-2.0
import type { Command } from 'commander';
import type { Machine } from '../model/machine.ts';
import { type ConfigOptions, withConfigOptions } from './config-options.ts';
import type { CommandHost } from './context.ts';
import type { OpenFleet } from './open-fleet.ts';
import { table } from './table.ts';
import { withFleet } from './with-fleet.ts';

interface MachinesOptions extends ConfigOptions {
  readonly json?: true;
  readonly watch?: true;
  readonly all?: true;
}

const LOOK_EVERY_MS = 500;

export function addMachines(parent: Command, host: CommandHost): void {
  withConfigOptions(
    parent
      .command('machines')
      .description('the machines: where they are and how far they have got'),
  )
    .option('--all', 'also those that are gone')
    .option('--watch', 'print again whenever something changes')
    .option('--json', 'as JSON; with --watch one line per change')
    .action((options: MachinesOptions) =>
      withFleet(host, options, { to: 'look', use: (open) => show(host, open, options) }),
    );
}

async function show(host: CommandHost, open: OpenFleet, options: MachinesOptions): Promise<void> {
  const { clock, signal, out } = host.context;
  let revision: number | undefined;
  let last = '';
  do {
    const current = await open.store.revision();
    if (current !== revision) {
      const machines = await shown(open, options);
      // Leases and journals change too.
      const facts = JSON.stringify(machines);
      if (facts !== last) out(rendered(machines, host.context.clock.now(), options));
      last = facts;
    }
    revision = current;
    if (options.watch !== true) return;
    await clock.sleep(LOOK_EVERY_MS, { signal }).catch(() => undefined);
  } while (!signal.aborted);
}

async function shown({ fleet }: OpenFleet, { all }: MachinesOptions): Promise<readonly Machine[]> {
  const { machines } = await fleet.status();
  return machines.filter(({ phase }) => all === true || phase !== 'gone');
}

function rendered(machines: readonly Machine[], now: number, options: MachinesOptions): string {
  if (options.json !== true) return render(machines, now);
  return options.watch === true
    ? `${JSON.stringify(machines)}\n`
    : `${JSON.stringify(machines, null, 2)}\n`;
}

function render(machines: readonly Machine[], now: number): string {
  const rows = machines.map(({ id, pool, phase, phaseSince, placement, failure }) => [
    placement?.name ?? '-',
    pool,
    phase,
    `${Math.max(0, Math.round((now - phaseSince) / 1_000))}s`,
    placement?.host ?? '-',
    placement === undefined ? '-' : String(placement.vmId),
    placement?.addresses.join(',') ?? '',
    failure?.message ?? '',
    id,
  ]);
  const head = ['NAME', 'POOL', 'PHASE', 'SINCE', 'HOST', 'VM', 'ADDRESS', 'FAILURE', 'ID'];
  return table([head, ...rows]);
}
