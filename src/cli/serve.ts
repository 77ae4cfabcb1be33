// SPDX-License-Identifier: Apache-2.0
import type { Command } from 'commander';
import type { LoadedConfig } from '../config/index.ts';
import { UnsupportedVersion } from '../ports/errors.ts';
import { type ConfigOptions, readConfigFor, withConfigOptions } from './config-options.ts';
import type { CommandHost } from './context.ts';
import { tellFaults } from './tell-problems.ts';

export function addServe(parent: Command, host: CommandHost): void {
  withConfigOptions(
    parent
      .command('serve')
      .description(
        'run as a service (not in this release yet: checks the config and says what is missing)',
      ),
  ).action(async (options: ConfigOptions) => {
    const result = await readConfigFor(host.context, options);
    if (!result.ok) return tellFaults(host, result.problems);
    const { renderProblems } = await import('../config/index.ts');
    host.context.err(renderProblems(result.problems));
    refuse(result);
  });
}

/** Saying what is missing beats starting something that silently does less than the config asks for. */
function refuse({ config, planned }: LoadedConfig): never {
  const lines = planned.map(({ path, feature }) => `\n  ${path}: ${feature}`);
  const asked =
    lines.length === 0 ? '' : ` What the config asks for and is not there yet:${lines.join('')}`;
  throw new UnsupportedVersion(
    'FEATURE_NOT_THERE',
    `mode ${config.mode} cannot be served by this release.${asked}`,
    { hint: 'Until then pvescaler pool scale makes and removes machines; see the changelog.' },
  );
}
