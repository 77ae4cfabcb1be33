// SPDX-License-Identifier: Apache-2.0
import { type Command, Option } from 'commander';
import type { CommandHost } from './context.ts';
import { parseFileName, writeResult } from './write-result.ts';

interface InitOptions {
  readonly full?: true;
  readonly mode?: 'standalone' | 'externalgrpc';
  readonly output?: string;
  readonly force?: true;
}

export function addConfigInit(parent: Command, { context }: CommandHost): void {
  parent
    .command('init')
    .description('print a valid config file with comments, to edit')
    .option('--full', 'include every key')
    .addOption(
      new Option('--mode <mode>', 'mode of the daemon').choices(['standalone', 'externalgrpc']),
    )
    .option('-o, --output <file>', 'write to this file instead of standard output', parseFileName)
    .option('--force', 'overwrite an existing file')
    .action(async (options: InitOptions) => {
      const { starterConfig } = await import('../config/index.ts');
      await writeResult(
        context,
        starterConfig({ full: options.full === true, mode: options.mode ?? 'externalgrpc' }),
        options,
      );
    });
}
