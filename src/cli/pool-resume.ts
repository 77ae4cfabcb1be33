// SPDX-License-Identifier: Apache-2.0
import type { Command } from 'commander';
import { InvalidRequest, NotFound } from '../ports/errors.ts';
import type { OpenFleet } from '../setup/index.ts';
import { type ConfigOptions, withConfigOptions } from './config-options.ts';
import type { CommandHost } from './context.ts';
import { parseTimeoutMs, type TimeoutOptions, withTimeoutOption } from './timeout-option.ts';
import { withFleet } from './with-fleet.ts';

export function addPoolResume(parent: Command, host: CommandHost): void {
  const command = withTimeoutOption(
    parent
      .command('resume')
      .description('end the pause of a pool whose new machines helped no pod')
      .argument('<name>', 'name of the pool'),
  );
  withConfigOptions(command).action((name: string, options: ConfigOptions & TimeoutOptions) =>
    withFleet(host, options, {
      access: 'drive',
      use: (open) => resume(host, open, { name, timeoutMs: parseTimeoutMs(options) }),
    }),
  );
}

async function resume(
  host: CommandHost,
  open: OpenFleet,
  { name, timeoutMs }: { readonly name: string; readonly timeoutMs: number | undefined },
): Promise<void> {
  const pause = await readPause(open, name);
  if (pause === undefined)
    throw new InvalidRequest('REQUEST_INVALID', `pool ${name} is not paused`, {
      hint: 'A pool that backs off after failed creations continues by itself: see pvescaler pools.',
    });
  const { runUntilDone } = await import('./run-until-done.ts');
  await runUntilDone(host, open, {
    regions: [],
    timeoutMs,
    isUnfinished: () => false,
    submit: async () => {
      await open.fleet.resume(name, { by: 'cli', reason: `pool resume ${name}` });
    },
    isDone: async () => (await readPause(open, name)) === undefined,
  });
  host.context.out(`pool ${name} is resumed; it was paused: ${pause.reason}\n`);
}

async function readPause({ fleet, config }: OpenFleet, name: string) {
  const { pools } = await fleet.status();
  const pool = pools.find((one) => one.name === name);
  if (pool === undefined)
    throw new NotFound('POOL_NOT_FOUND', `the config has no pool ${name}`, {
      hint: `It has ${config.pools.map((one) => one.name).join(', ')}.`,
    });
  return pool.pause;
}
