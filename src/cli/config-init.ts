// SPDX-License-Identifier: Apache-2.0
import { type Command, Option } from 'commander';
import type { CommandHost } from './context.ts';
import { writeResult } from './write-result.ts';

interface InitOptions {
  readonly full?: true;
  readonly mode?: 'standalone' | 'externalgrpc';
  readonly output?: string;
  readonly force?: true;
}

export function addConfigInit(parent: Command, { context }: CommandHost): void {
  parent
    .command('init')
    .description('print a first config file, commented and valid, to be filled in')
    .option('--full', 'with every key there is')
    .addOption(
      new Option('--mode <mode>', 'what it is for').choices(['standalone', 'externalgrpc']),
    )
    .option('-o, --output <file>', 'write it there instead')
    .option('--force', 'overwrite the file')
    .action(async (options: InitOptions) => {
      const { starterConfig } = await import('../config/index.ts');
      await writeResult(
        context,
        starterConfig({ full: options.full === true, mode: options.mode ?? 'standalone' }),
        options,
      );
    });
}
