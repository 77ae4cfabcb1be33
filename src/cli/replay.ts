// SPDX-License-Identifier: Apache-2.0
import type { Command } from 'commander';
import { InvalidRequest } from '../ports/errors.ts';
import type { CommandHost } from './context.ts';

interface ReplayOptions {
  readonly json?: true;
  readonly all?: true;
}

export function addReplay(parent: Command, host: CommandHost): void {
  parent
    .command('replay')
    .description('make the plan again from a file of pvescaler plan --save')
    .argument('<file>', 'the file')
    .option('--json', 'print JSON')
    .option('--all', 'show every refusal, not a few of each kind')
    .action(async (file: string, options: ReplayOptions) => {
      const { decide, parseStoredInput, restoreInput } = await import('../scaling/index.ts');
      const stored = parseStoredInput(await readText(host, file));
      if (stored === undefined)
        throw new InvalidRequest(
          'REQUEST_INVALID',
          `${file} is not a file of pvescaler plan --save`,
          {
            hint: 'Files of other versions of pvescaler may differ: use the version that wrote it.',
          },
        );
      const { plan } = decide(restoreInput(stored));
      const { formatPlan } = await import('./format-plan.ts');
      host.context.out(
        options.json === true
          ? `${JSON.stringify(plan, null, 2)}\n`
          : formatPlan(plan, { all: options.all === true }),
      );
    });
}

async function readText({ context }: CommandHost, file: string): Promise<string> {
  const text = await context.files.read(file).catch((cause: unknown) => {
    throw new InvalidRequest('REQUEST_INVALID', `cannot read ${file}: ${String(cause)}`, { cause });
  });
  if (text === undefined)
    throw new InvalidRequest('REQUEST_INVALID', `the file ${file} does not exist`);
  return text;
}
