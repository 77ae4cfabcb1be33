// SPDX-License-Identifier: Apache-2.0
import type { Command } from 'commander';
import type { CommandHost } from './context.ts';

export function addConfigSchema(parent: Command, { context }: CommandHost): void {
  parent
    .command('schema')
    .description('print the JSON Schema of the config file, for editors')
    .addHelpText(
      'after',
      '\nFirst line of the file, for editors with the YAML language server:\n' +
        '  # yaml-language-server: $schema=./config.schema.json\n',
    )
    .action(async () => {
      const { renderJsonSchema } = await import('../config/index.ts');
      context.out(renderJsonSchema());
    });
}
