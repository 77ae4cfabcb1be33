// SPDX-License-Identifier: Apache-2.0
// The options every command that reads the config has in common, and reading it with them.
import { type Command, Option } from 'commander';
import type { LoadResult } from '../config/index.ts';
import type { CliContext } from './context.ts';

const OVERRIDES = [
  ['mode', '--mode <mode>', 'what to run as', ['standalone', 'externalgrpc']],
  ['bind', '--bind <host>', 'host of the gRPC listener'],
  ['port', '--port <number>', 'port of the gRPC listener'],
  ['kubeconfig', '--kubeconfig <file>', 'kubeconfig of the cluster'],
  ['context', '--context <name>', 'context in the kubeconfig'],
  ['state', '--state <file>', 'the state database'],
  [
    'logLevel',
    '--log-level <level>',
    'the least important level that is logged',
    ['trace', 'debug', 'info', 'warn', 'error'],
  ],
] as const;

export interface ConfigOptions {
  readonly config?: string;
  readonly mode?: string;
  readonly bind?: string;
  readonly port?: string;
  readonly kubeconfig?: string;
  readonly context?: string;
  readonly state?: string;
  readonly logLevel?: string;
}

export function withConfigOptions(command: Command): Command {
  command.option(
    '-c, --config <file>',
    'the config file (else PVESCALER_CONFIG, else /etc/pvescaler/config.yaml)',
  );
  for (const [, flags, description, choices] of OVERRIDES) {
    const option = new Option(flags, description);
    command.addOption(choices === undefined ? option : option.choices(choices));
  }
  return command;
}

/** A flag beats a variable beats the file beats the default; a file named as argument is `--config`. */
export async function readConfigFor(
  context: CliContext,
  options: ConfigOptions,
  file?: string,
): Promise<LoadResult> {
  const { readConfig } = await import('../config/index.ts');
  return readConfig({
    path: file ?? options.config,
    environment: context.environment,
    homeFolder: context.homeFolder,
    workingFolder: context.workingFolder,
    tempFolders: context.tempFolders,
    flags: OVERRIDES.flatMap(([name, flags]) => {
      const value = options[name];
      const [flag = ''] = flags.split(' ');
      return value === undefined ? [] : [{ flag, value }];
    }),
    readFile: (path) => context.files.read(path),
  });
}
