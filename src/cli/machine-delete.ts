// SPDX-License-Identifier: Apache-2.0
import type { Command } from 'commander';
import type { MachineId } from '../model/machine.ts';
import { type ConfigOptions, withConfigOptions } from './config-options.ts';
import type { CommandHost } from './context.ts';
import { findMachine } from './machine.ts';
import type { OpenFleet } from './open-fleet.ts';
import { type TimeoutOptions, timeoutMsOf, withTimeoutOption } from './timeout-option.ts';
import { withFleet } from './with-fleet.ts';
import { workUntilDone } from './work-until.ts';

interface DeleteOptions extends ConfigOptions, TimeoutOptions {
  readonly reason: string;
}

export function addMachineDelete(parent: Command, host: CommandHost): void {
  const command = withTimeoutOption(
    parent
      .command('delete')
      .description('delete machines with everything that belongs to them, and see it done')
      .argument('<machines...>', 'names, ids, or beginnings of ids')
      .option('--reason <text>', 'why, for the journal', 'asked for on the command line'),
  );
  withConfigOptions(command).action((texts: readonly string[], options: DeleteOptions) =>
    withFleet(host, options, {
      to: 'drive',
      use: (open) => remove(host, open, { texts, options }),
    }),
  );
}

interface Order {
  readonly texts: readonly string[];
  readonly options: DeleteOptions;
}

async function remove(host: CommandHost, open: OpenFleet, order: Order): Promise<void> {
  const { texts, options } = order;
  const ids = new Set<MachineId>();
  await workUntilDone(host, open, {
    regions: Object.keys(open.config.regions),
    timeoutMs: timeoutMsOf(options),
    isLeft: ({ id, phase }) => ids.has(id) && !isOver(phase),
    ask: async () => {
      for (const text of texts) ids.add((await findMachine(open, text)).id);
      await open.fleet.remove([...ids], { by: 'cli', reason: options.reason });
    },
    isDone: async () => {
      const { machines, openIntents } = await open.fleet.status();
      const left = machines.filter(({ id, phase }) => ids.has(id) && !isOver(phase));
      return openIntents === 0 && left.length === 0;
    },
  });
  host.context.out(`${ids.size} machines are gone\n`);
}

function isOver(phase: string): boolean {
  return phase === 'gone' || phase === 'failed';
}
