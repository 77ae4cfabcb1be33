// SPDX-License-Identifier: Apache-2.0
// Keys that are parsed and validated, but have no effect: their feature is not in this release, or the config has the
// other mode. `serve` and `config validate` report those that a config sets. Remove a row when its feature is released.
import { type ConfigPath, formatConfigPath, valueAt } from './config-path.ts';

export interface PlannedKey {
  /** As written in the file: `grpc`, `pools[0].schedules`. */
  readonly path: string;
  readonly feature: string;
  /** The mode in which it has no effect. */
  readonly mode?: Mode;
}

type Mode = 'standalone' | 'externalgrpc';

interface PlannedRow {
  /** `*` stands for every region, template or pool. */
  readonly prefix: readonly string[];
  readonly feature: string;
  /** The value that needs no such feature. */
  readonly supported?: string;
}

export const PLANNED_KEYS: readonly PlannedRow[] = [];

const SCALING = 'the standalone autoscaler';
const GRPC = 'the gRPC server for the Cluster Autoscaler';

const KEYS_OF_OTHER_MODE: Readonly<Record<Mode, readonly PlannedRow[]>> = {
  externalgrpc: [
    { prefix: ['autoscaler'], feature: SCALING },
    { prefix: ['intervals', 'scan'], feature: SCALING },
    { prefix: ['guards', 'breaker'], feature: SCALING },
    ...['scaleUp', 'headroom', 'schedules'].map((key) => ({
      prefix: ['pools', '*', key],
      feature: SCALING,
    })),
    // Drains of the command line use the other ones.
    ...[
      'when',
      'utilizationThreshold',
      'ignoreDaemonSets',
      'skipLocalStorage',
      'skipSystemPods',
      'skipCustomControllers',
      'unneededTime',
      'maxConcurrent',
      'delayAfterAdd',
      'delayAfterDelete',
      'delayAfterFailure',
    ].map((key) => ({ prefix: ['pools', '*', 'scaleDown', key], feature: SCALING })),
  ],
  standalone: [
    { prefix: ['grpc'], feature: GRPC },
    { prefix: ['pools', '*', 'clusterAutoscaler'], feature: GRPC },
  ],
};

/** The keys of the other mode that this config sets. Takes the tree before defaults. */
export function findKeysOfOtherMode(tree: unknown, mode: Mode): readonly PlannedKey[] {
  return findPlannedKeys(tree, KEYS_OF_OTHER_MODE[mode]).map((key) => ({ ...key, mode }));
}

/** The planned keys that this config sets. Takes the tree before defaults. */
export function findPlannedKeys(
  tree: unknown,
  rows: readonly PlannedRow[] = PLANNED_KEYS,
): readonly PlannedKey[] {
  return rows.flatMap(({ prefix, feature, supported }) =>
    expandWildcards(tree, prefix)
      .filter((path) => isSet(valueAt(tree, path)) && valueAt(tree, path) !== supported)
      .map((path) => ({ path: formatConfigPath(path), feature })),
  );
}

function expandWildcards(tree: unknown, prefix: readonly string[]): readonly ConfigPath[] {
  let paths: readonly ConfigPath[] = [[]];
  for (const step of prefix) {
    paths = paths.flatMap((path) => (step === '*' ? childPaths(tree, path) : [[...path, step]]));
  }
  return paths;
}

function childPaths(tree: unknown, path: ConfigPath): readonly ConfigPath[] {
  const value = valueAt(tree, path);
  if (Array.isArray(value)) return value.map((_, index) => [...path, index]);
  return typeof value === 'object' && value !== null
    ? Object.keys(value).map((key) => [...path, key])
    : [];
}

function isSet(value: unknown): boolean {
  if (value === undefined || value === null) return false;
  return typeof value !== 'object' || Object.keys(value).length > 0;
}

export function describePlannedKey({ path, feature, mode }: PlannedKey): string {
  if (mode !== undefined) return `${path} has no effect in mode ${mode}: it is for ${feature}`;
  return `${path} has no effect: ${feature} is not in this release`;
}
