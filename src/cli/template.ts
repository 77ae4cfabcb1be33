// SPDX-License-Identifier: Apache-2.0
// `template`: templates that pvescaler builds from images.
import type { Command } from 'commander';
import { type ConfigOptions, withConfigOptions } from './config-options.ts';
import type { CommandHost } from './context.ts';
import { type OutputOptions, withOutputOption } from './output-option.ts';
import type { BuildOptions, TemplateDeleteOptions } from './run-template.ts';
import { withTimeoutOption } from './timeout-option.ts';
import { withFleet } from './with-fleet.ts';

const NAME = 'name in templates of the config (default: the only one that has an image)';

export function addTemplate(program: Command, host: CommandHost): void {
  const template = program
    .command('template')
    .description('build, list, show, sync or delete templates');
  addBuild(template, host, 'build');
  addBuild(template, host, 'sync');
  addList(template, host);
  addShow(template, host);
  addDelete(template, host);
}

const DESCRIPTIONS = {
  build: 'build a new version of a template from its image',
  sync: 'build the newest version on the hosts that lack it, and delete old versions without linked clones',
} as const;

function addBuild(parent: Command, host: CommandHost, kind: 'build' | 'sync'): void {
  const command = parent
    .command(kind)
    .description(DESCRIPTIONS[kind])
    .argument('[template]', NAME)
    .option('--host <name>', 'only on this host')
    .option('--all-hosts', 'on every host, also where all share the storage of the template')
    .option('--reason <text>', 'reason for the journal', 'requested on the command line');
  withConfigOptions(withOutputOption(withTimeoutOption(command))).action(
    (name: string | undefined, options: BuildOptions) =>
      withFleet(host, options, {
        access: 'drive',
        checksTokens: false,
        use: async (open) => {
          const { runBuild } = await import('./run-template.ts');
          await runBuild(host, open, { name, options, kind });
        },
      }),
  );
}

function addList(parent: Command, host: CommandHost): void {
  const command = parent.command('list').description('list templates by host, with their versions');
  withConfigOptions(withOutputOption(command)).action((options: ConfigOptions & OutputOptions) =>
    withFleet(host, options, {
      access: 'view',
      use: async (open) => {
        const { listTemplates } = await import('./template-list.ts');
        await listTemplates(host, open, options);
      },
    }),
  );
}

function addShow(parent: Command, host: CommandHost): void {
  const command = parent
    .command('show')
    .description('show how a template is built, and where it is')
    .argument('[template]', NAME);
  withConfigOptions(withOutputOption(command)).action(
    (name: string | undefined, options: ConfigOptions & OutputOptions) =>
      withFleet(host, options, {
        access: 'view',
        use: async (open) => {
          const { showTemplate } = await import('./template-list.ts');
          await showTemplate(host, open, { name, output: options.output });
        },
      }),
  );
}

function addDelete(parent: Command, host: CommandHost): void {
  const command = parent
    .command('delete')
    .description('delete the versions of a template that pvescaler built')
    .argument('<template>', 'name in templates of the config')
    .option('--version <number>', 'only this version')
    .option('--host <name>', 'only on this host')
    .option('--reason <text>', 'reason for the journal', 'requested on the command line');
  withConfigOptions(withOutputOption(withTimeoutOption(command))).action(
    (name: string, options: TemplateDeleteOptions) =>
      withFleet(host, options, {
        access: 'drive',
        checksTokens: false,
        use: async (open) => {
          const { deleteTemplate } = await import('./run-template.ts');
          await deleteTemplate(host, open, { name, options });
        },
      }),
  );
}
