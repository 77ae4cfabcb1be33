// SPDX-License-Identifier: Apache-2.0
import type { Command } from 'commander';
import { InvalidRequest, NotFound } from '../ports/errors.ts';
import { type ConfigOptions, withConfigOptions } from './config-options.ts';
import type { CommandHost } from './context.ts';
import { withFleet } from './with-fleet.ts';

interface ResumeOptions extends ConfigOptions {
  readonly reason: string;
}

export function addPoolResume(parent: Command, host: CommandHost): void {
  withConfigOptions(
    parent
      .command('resume')
      .description('end the pause of a pool whose last machines helped no pod')
      .argument('<name>', 'name of the pool')
      .option('--reason <text>', 'reason for the journal', 'requested on the command line'),
  ).action((name: string, options: ResumeOptions) =>
    withFleet(host, options, {
      access: 'read',
      use: async ({ fleet, config }) => {
        const { pools } = await fleet.status();
        const pool = pools.find((one) => one.name === name);
        if (pool === undefined)
          throw new NotFound('POOL_NOT_FOUND', `the config has no pool ${name}`, {
            hint: `It has ${config.pools.map((each) => each.name).join(', ')}.`,
          });
        if (pool.pause === undefined)
          throw new InvalidRequest('REQUEST_INVALID', `pool ${name} is not paused`);
        await fleet.resume(name, { by: 'cli', reason: options.reason });
        host.context.out(
          `Pool ${name} is resumed as soon as pvescaler serve has read the request.\n`,
        );
      },
    }),
  );
}
