// SPDX-License-Identifier: Apache-2.0
import { expect, it } from 'vitest';
import { importReportJson, renderImportProblems, renderImportReport } from './index.ts';
import type { ImportNote } from './result.ts';

const NOTES: readonly ImportNote[] = [
  { path: 'a', severity: 'ignored-by-source', message: 'is not read' },
  { path: 'b', at: { line: 3, column: 5 }, severity: 'action-required', message: 'put it there' },
  { path: 'c', at: { line: 4, column: 1 }, severity: 'action-required', message: 'decide' },
];

it('renders required actions first', () => {
  expect(renderImportReport(NOTES)).toMatchInlineSnapshot(`
    "Action required before the config works:
      b (line 3): put it there
      c (line 4): decide

    Had no effect in the source system either:
      a: is not read

    3 notes: 2 action-required, 0 not-imported, 0 imported-differently, 1 ignored-by-source.
    "
  `);
});

it('renders an import without notes', () => {
  expect(renderImportReport([])).toBe('Everything was imported.\n');
});

it('returns counts as JSON', () => {
  expect(importReportJson(NOTES)).toStrictEqual({
    counts: {
      'action-required': 2,
      'not-imported': 0,
      'imported-differently': 0,
      'ignored-by-source': 1,
    },
    notes: NOTES,
  });
});

it('renders problems as file:line:col', () => {
  const problems = [{ file: 'f.yaml', line: 2, column: 7, message: 'is wrong' }];
  expect(renderImportProblems(problems)).toBe('f.yaml:2:7: is wrong\n');
});
