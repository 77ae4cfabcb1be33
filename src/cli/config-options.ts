// SPDX-License-Identifier: Apache-2.0
// Options of every command that reads the config, and reading the config with them.
import { type Command, Option } from 'commander';
import type { LoadResult, PoolEntry, Problem } from '../config/index.ts';
import { formatCount } from '../model/format-text.ts';
import { ERROR_CODES } from '../ports/error-codes.ts';
import { EXTERNAL_CODES } from '../ports/external-codes.ts';
import type { CliContext, CommandHost } from './context.ts';

const OVERRIDES = [
  ['mode', '--mode <mode>', 'mode of the daemon', ['standalone', 'externalgrpc']],
  ['bind', '--bind <host>', 'host that the gRPC server listens on'],
  ['port', '--port <number>', 'port that the gRPC server listens on'],
  ['kubeconfig', '--kubeconfig <file>', 'kubeconfig of the Kubernetes cluster'],
  ['context', '--context <name>', 'context of the kubeconfig'],
  ['state', '--state <file>', 'path of the state database'],
  [
    'logLevel',
    '--log-level <level>',
    'lowest level that is logged',
    ['trace', 'debug', 'info', 'warn', 'error'],
  ],
  ['logFormat', '--log-format <format>', 'format of the log', ['json', 'text']],
] as const;

const CONFIG_GROUP = 'Config options:';

export interface ConfigOptions {
  readonly config?: string;
  readonly mode?: string;
  readonly bind?: string;
  readonly port?: string;
  readonly kubeconfig?: string;
  readonly context?: string;
  readonly state?: string;
  readonly logLevel?: string;
  readonly logFormat?: string;
}

export function withConfigOptions(command: Command): Command {
  command.addOption(
    new Option(
      '-c, --config <file>',
      'config file (default: $PVESCALER_CONFIG, then /etc/pvescaler/config.yaml)',
    ).helpGroup(CONFIG_GROUP),
  );
  for (const [, flags, description, choices] of OVERRIDES) {
    const option = new Option(flags, description).helpGroup(CONFIG_GROUP);
    command.addOption(choices === undefined ? option : option.choices(choices));
  }
  return command;
}

interface ReadConfigOptions {
  /** The config file given as an argument. */
  readonly file?: string | undefined;
  readonly readFile?: (path: string) => Promise<string | undefined>;
  /** More entries of `pools`. */
  readonly pools?: readonly PoolEntry[] | undefined;
}

/** Precedence: flag, environment variable, file, default. */
export async function readConfigFor(
  context: CliContext,
  options: ConfigOptions,
  { file, pools, readFile = (path) => context.files.read(path) }: ReadConfigOptions = {},
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
    readFile,
    pools,
  });
}

/** Prints the problems of a config with their positions, and sets the exit code. */
export async function reportConfigErrors(
  host: CommandHost,
  problems: readonly Problem[],
): Promise<void> {
  const { exitCode } = EXTERNAL_CODES.InvalidConfig;
  host.exitWith(exitCode);
  const errors = problems.filter(({ severity }) => severity === 'error').length;
  const message = `${formatCount(errors, 'error')}; nothing was done`;
  if (host.isJson) {
    const { class: errorClass, hint } = ERROR_CODES.CONFIG_INVALID;
    const error = { class: errorClass, code: 'CONFIG_INVALID', message, hint, problems };
    return host.printError(`${JSON.stringify(error)}\n`);
  }
  const { renderProblems } = await import('../config/index.ts');
  host.printError(`${renderProblems(problems)}${message}.\n`);
}
