// SPDX-License-Identifier: Apache-2.0
import type { Command } from 'commander';
import { InvalidRequest, NotFound } from '../ports/errors.ts';
import type { OpenFleet } from '../setup/index.ts';
import { type ConfigOptions, withConfigOptions } from './config-options.ts';
import type { CommandHost } from './context.ts';
import { type OutputOptions, withOutputOption } from './output-option.ts';
import { printObjects } from './print-objects.ts';
import { parseTimeoutMs, type TimeoutOptions, withTimeoutOption } from './timeout-option.ts';
import { withFleet } from './with-fleet.ts';

type ResumeOptions = ConfigOptions & TimeoutOptions & OutputOptions;

export function addPoolResume(parent: Command, host: CommandHost): void {
  const command = withTimeoutOption(
    parent
      .command('resume')
      .description(
        'end the pause of a pool whose new machines helped no pod, or that a person paused',
      )
      .argument('<pool>', 'name of the pool'),
  );
  withConfigOptions(withOutputOption(command)).action((name: string, options: ResumeOptions) =>
    withFleet(host, options, {
      access: 'drive',
      use: (open) => resume(host, open, { name, options }),
    }),
  );
}

async function resume(
  host: CommandHost,
  open: OpenFleet,
  { name, options }: { readonly name: string; readonly options: ResumeOptions },
): Promise<void> {
  const { pause } = await readPool(open, name);
  if (pause === undefined)
    throw new InvalidRequest('REQUEST_INVALID', `pool ${name} is not paused`, {
      hint: 'A pool that backs off after failed creations continues by itself: see pvescaler pools.',
    });
  const { runUntilDone } = await import('./run-until-done.ts');
  await runUntilDone(host, open, {
    regions: [],
    timeoutMs: parseTimeoutMs(options),
    isUnfinished: () => false,
    submit: async () => {
      await open.fleet.resume(name, { by: 'cli', reason: `pool resume ${name}` });
    },
    isDone: async () => (await readPool(open, name)).pause === undefined,
  });
  await printObjects(host, options, {
    value: await readPool(open, name),
    names: [name],
    text: () => `pool ${name} is resumed; it was paused: ${pause.reason}\n`,
  });
}

async function readPool({ fleet, config }: OpenFleet, name: string) {
  const { pools } = await fleet.status();
  const pool = pools.find((one) => one.name === name);
  if (pool === undefined)
    throw new NotFound('POOL_NOT_FOUND', `the config has no pool ${name}`, {
      hint: `It has ${config.pools.map((one) => one.name).join(', ')}.`,
    });
  return pool;
}
