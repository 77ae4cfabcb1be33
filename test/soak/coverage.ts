// SPDX-License-Identifier: Apache-2.0
// Counts which faults hit a machine in which phase. An empty cell is a case that no seed has tested.
import { isPossible, PHASES, ROWS } from './faults.ts';
import type { SeedResult } from './scenario.ts';

export type Coverage = Readonly<Record<string, number>>;

export function mergeCoverage(results: readonly SeedResult[]): Coverage {
  const sum: Record<string, number> = {};
  for (const { coverage } of results) {
    for (const [cell, count] of Object.entries(coverage)) sum[cell] = (sum[cell] ?? 0) + count;
  }
  return sum;
}

export function listEmptyCells(coverage: Coverage): readonly string[] {
  return ROWS.flatMap((row) =>
    PHASES.filter((column) => isPossible(row, column) && !coverage[`${row} ${column}`]).map(
      (column) => `${row} × ${column}`,
    ),
  );
}

export function formatCoverageTable(coverage: Coverage): string {
  const line = (cells: readonly string[]) =>
    cells.map((cell, at) => (at === 0 ? cell.padEnd(16) : cell.padStart(12))).join('');
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
