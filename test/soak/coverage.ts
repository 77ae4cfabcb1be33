// SPDX-License-Identifier: Apache-2.0
// Counts which faults hit a machine in which phase, and how often each feature was exercised. An empty cell is a case
// that no seed has tested.
import { HUNG_HOST, RESTORE } from './episodes.ts';
import { CLOCK_JUMPS, CLUSTER_FAULTS, EXTERNAL_CHANGES } from './external-changes.ts';
import { isPossible, PHASES, ROWS } from './faults.ts';
import { API_FAULTS } from './kubernetes-records.ts';
import { FAILOVER, OUTAGE } from './scenario.ts';

export type Coverage = Readonly<Record<string, number>>;

const FEATURES: readonly string[] = [
  'two regions',
  'two installations',
  'Kubernetes',
  'records in Kubernetes',
  'pool from image',
  'pool from template (full clone)',
  'pool from template (linked clone)',
  'pool from netboot',
  'pool with static addresses',
  'pool with dhcp addresses',
  ...Object.keys(EXTERNAL_CHANGES),
  ...Object.keys(CLUSTER_FAULTS),
  ...Object.keys(API_FAULTS),
  FAILOVER,
  ...CLOCK_JUMPS,
  HUNG_HOST,
  OUTAGE,
  RESTORE,
];

export function mergeCoverage(all: readonly Coverage[]): Coverage {
  const sum: Record<string, number> = {};
  for (const coverage of all) {
    for (const [cell, count] of Object.entries(coverage)) sum[cell] = (sum[cell] ?? 0) + count;
  }
  return sum;
}

export function listEmptyCells(faults: Coverage, features: Coverage): readonly string[] {
  const cells = ROWS.flatMap((row) =>
    PHASES.filter((column) => isPossible(row, column) && !faults[`${row} ${column}`]).map(
      (column) => `${row} × ${column}`,
    ),
  );
  return [...cells, ...FEATURES.filter((name) => !features[name])];
}

export function formatFeatures(features: Coverage): string {
  return FEATURES.map((name) => `${name.padEnd(40)}${features[name] ?? 0}`).join('\n');
}

export function formatCoverageTable(coverage: Coverage): string {
  const line = (cells: readonly string[]) =>
    cells.map((cell, at) => (at === 0 ? cell.padEnd(22) : cell.padStart(12))).join('');
  const rows = ROWS.map((row) =>
    line([
      row,
      ...PHASES.map((column) =>
        isPossible(row, column) ? String(coverage[`${row} ${column}`] ?? 0) : '–',
      ),
    ]),
  );
  return [line(['', ...PHASES]), ...rows].join('\n');
}
