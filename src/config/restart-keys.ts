// SPDX-License-Identifier: Apache-2.0
// Which keys differ between two configs, and which of those a running process cannot change: it has opened its listeners,
// its state and its connections with them.
import { isDeepStrictEqual } from 'node:util';
import { formatConfigPath, isMapping } from './config-path.ts';
import type { ConfigFile } from './schema/index.ts';

const CONNECTION_KEYS = [
  'endpoints',
  'token',
  'user',
  'passwordFile',
  'passwordEnv',
  'passwordRef',
  'tls',
  'transport',
  'requestTimeout',
];

/** `*` stands for every region. */
export const RESTART_KEYS: readonly (readonly string[])[] = [
  ...['mode', 'cluster', 'state', 'grpc', 'http', 'log'].map((key) => [key]),
  ...CONNECTION_KEYS.map((key) => ['proxmox', '*', key]),
];

export interface ConfigChanges {
  /** `pools.small.limits.max`: entries of lists by their names. Without values. */
  readonly keys: readonly string[];
  /** Those of them that need a restart. A region that comes or goes does. */
  readonly needRestart: readonly string[];
}

export function compareConfigs(before: ConfigFile, after: ConfigFile): ConfigChanges {
  if (isDeepStrictEqual(before, after)) return { keys: [], needRestart: [] };
  const paths = [...differences(byName(before), byName(after), [])];
  // Only the order of the pools differs.
  if (paths.length === 0) paths.push(['pools']);
  return {
    keys: paths.map(formatConfigPath),
    needRestart: paths.filter(needsRestart).map(formatConfigPath),
  };
}

function byName({ pools, ...rest }: ConfigFile): object {
  return { ...rest, pools: Object.fromEntries(pools.map((pool) => [pool.name, pool])) };
}

function* differences(
  before: unknown,
  after: unknown,
  path: readonly string[],
): Generator<readonly string[]> {
  if (isDeepStrictEqual(before, after)) return;
  if (!isMapping(before) || !isMapping(after)) {
    yield path;
    return;
  }
  for (const key of new Set([...Object.keys(before), ...Object.keys(after)]))
    yield* differences(before[key], after[key], [...path, key]);
}

function needsRestart(path: readonly string[]): boolean {
  const isRegion = path[0] === 'proxmox' && path.length === 2;
  const isBelow = (prefix: readonly string[]) =>
    prefix.every((step, index) => step === '*' || step === path[index]);
  return isRegion || RESTART_KEYS.some((prefix) => path.length >= prefix.length && isBelow(prefix));
}
