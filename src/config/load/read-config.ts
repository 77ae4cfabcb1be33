// SPDX-License-Identifier: Apache-2.0
// Locates and reads the config file through a reader function.
import { InvalidConfig } from '../../ports/errors.ts';
import { CONFIG_PATH_VARIABLES } from '../overrides/variables.ts';
import type { Problem } from '../problem.ts';
import { mayBeToken } from '../secrets/detect-secret.ts';
import { type LoadInput, type LoadResult, loadConfig } from './load-config.ts';

export const DEFAULT_CONFIG_PATH = '/etc/pvescaler/config.yaml';

export interface ReadInput extends Omit<LoadInput, 'file'> {
  /** Value of `--config`. */
  readonly path: string | undefined;
  /** Returns undefined when the file does not exist; throws when it cannot be read. */
  readonly readFile: (path: string) => Promise<string | undefined>;
}

export interface ConfigFileLocation {
  readonly path: string;
  /** The variable that named the file, or `--config`; undefined for the default path. */
  readonly namedBy: string | undefined;
}

/** --config > PVESCALER_CONFIG > PROVIDER_CONFIG > SCALER_CONFIG_PATH > the default path. */
export function locateConfig(
  flag: string | undefined,
  environment: Readonly<Record<string, string | undefined>>,
): ConfigFileLocation {
  if (flag !== undefined) return { path: flag, namedBy: '--config' };
  const variable = CONFIG_PATH_VARIABLES.find((name) => (environment[name] ?? '').trim() !== '');
  return variable === undefined
    ? { path: DEFAULT_CONFIG_PATH, namedBy: undefined }
    : { path: (environment[variable] ?? '').trim(), namedBy: variable };
}

export async function readConfig(input: ReadInput): Promise<LoadResult> {
  const { path, namedBy } = locateConfig(input.path, input.environment);
  const text = await input.readFile(path).catch((cause: unknown) => {
    throw unreadableConfigError(path, namedBy, errorCode(cause));
  });
  // A file that was named must exist. Without a named file, variables may set everything.
  if (text === undefined && namedBy !== undefined)
    throw unreadableConfigError(path, namedBy, 'ENOENT');
  if (text !== undefined) return loadConfig({ ...input, file: { path, text } });
  const result = loadConfig({ ...input, file: undefined });
  return result.ok ? result : { ...result, problems: [missingFile(path), ...result.problems] };
}

function missingFile(path: string): Problem {
  const variables = CONFIG_PATH_VARIABLES.join(', ');
  return {
    file: 'config',
    line: 0,
    col: 0,
    path: '',
    severity: 'error',
    message: `no config file was found: --config is not given, none of ${variables} is set, and ${path} does not exist; 'pvescaler config init' writes a first one`,
  };
}

function errorCode(cause: unknown): string | undefined {
  return cause instanceof Error && 'code' in cause && typeof cause.code === 'string'
    ? cause.code
    : undefined;
}

function unreadableConfigError(
  path: string,
  namedBy: string | undefined,
  code: string | undefined,
): InvalidConfig {
  const shown = mayBeToken(path.replace(/^.*\//, '')) ? '(not shown)' : path;
  const by = namedBy === undefined ? '' : ` named by ${namedBy}`;
  const why =
    code === 'ENOENT'
      ? 'does not exist'
      : `cannot be read${code === undefined ? '' : ` (${code})`}`;
  return new InvalidConfig('CONFIG_UNREADABLE', `config file ${shown}${by} ${why}`);
}
