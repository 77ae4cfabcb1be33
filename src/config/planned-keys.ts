// SPDX-License-Identifier: Apache-2.0
// Keys that are parsed and validated, but whose feature is not in this release. `serve` and `config
// validate` report those that a config sets. Remove a row when its feature is released.
import { type ConfigPath, valueAt } from './config-path.ts';

export interface PlannedKey {
  /** As written in the file: `grpc`, `pools[0].schedules`. */
  readonly path: string;
  readonly feature: string;
}

interface PlannedRow {
  /** `*` stands for every region or pool. */
  readonly prefix: readonly string[];
  readonly feature: string;
}

export const PLANNED_KEYS: readonly PlannedRow[] = [
  { prefix: ['http', 'dashboard'], feature: 'the dashboard' },
  { prefix: ['ssh'], feature: 'SSH access to machines' },
  { prefix: ['readiness'], feature: 'vm create' },
  { prefix: ['autoscaler'], feature: 'the standalone autoscaler' },
  { prefix: ['pools', '*', 'scaleUp'], feature: 'the standalone autoscaler' },
  { prefix: ['pools', '*', 'scaleDown'], feature: 'the standalone autoscaler' },
  { prefix: ['pools', '*', 'headroom'], feature: 'the standalone autoscaler' },
  { prefix: ['pools', '*', 'schedules'], feature: 'the standalone autoscaler' },
];

/** The planned keys that this config sets. Takes the tree before defaults. */
export function findPlannedKeys(
  tree: unknown,
  rows: readonly PlannedRow[] = PLANNED_KEYS,
): readonly PlannedKey[] {
  return rows.flatMap(({ prefix, feature }) =>
    expandWildcards(tree, prefix)
      .filter((path) => isSet(valueAt(tree, path)))
      .map((path) => ({ path: path.map(String).join('.'), feature })),
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
