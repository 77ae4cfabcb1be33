// SPDX-License-Identifier: Apache-2.0
import type { Command } from 'commander';
import { InvalidRequest } from '../ports/errors.ts';
import type { CommandHost } from './context.ts';
import { formatPlan } from './plan.ts';

export function addReplay(parent: Command, host: CommandHost): void {
  parent
    .command('replay')
    .description('make the plan again from a file that pvescaler plan --save wrote')
    .argument('<file>', 'the file')
    .option('--json', 'print JSON')
    .action(async (file: string, options: { readonly json?: true }) => {
      const { decide, parseStoredInput, restoreInput } = await import('../scaling/index.ts');
      const text = await host.context.files.read(file);
      if (text === undefined) throw new InvalidRequest('USAGE', `there is no file ${file}`);
      const stored = parseStoredInput(text);
      if (stored === undefined)
        throw new InvalidRequest('USAGE', `${file} was not written by pvescaler plan --save`);
      host.context.out(formatPlan(decide(restoreInput(stored)).plan, options));
    });
}
