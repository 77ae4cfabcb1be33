// SPDX-License-Identifier: Apache-2.0
import { expect, it } from 'vitest';
import { importReportJson, renderImportProblems, renderImportReport } from './index.ts';
import type { ImportNote } from './result.ts';

const NOTES: readonly ImportNote[] = [
  { path: 'a', severity: 'ignored-by-them', message: 'is not read' },
  { path: 'b', at: { line: 3, column: 5 }, severity: 'needs-you', message: 'put it there' },
  { path: 'c', at: { line: 4, column: 1 }, severity: 'needs-you', message: 'decide' },
];

it('puts first what needs somebody', () => {
  expect(renderImportReport(NOTES)).toMatchInlineSnapshot(`
    "Needs you before it works:
      b (line 3): put it there
      c (line 4): decide

    Had no effect there either:
      a: is not read

    3 notes: 2 needs-you, 0 not-carried, 0 carried-differently, 1 ignored-by-them.
    "
  `);
});

it('says when there is nothing to say', () => {
  expect(renderImportReport([])).toBe('Everything was carried over.\n');
});

it('counts for programs', () => {
  expect(importReportJson(NOTES)).toStrictEqual({
    counts: { 'needs-you': 2, 'not-carried': 0, 'carried-differently': 0, 'ignored-by-them': 1 },
    notes: NOTES,
  });
});

it('renders problems as editors link them', () => {
  const problems = [{ file: 'f.yaml', line: 2, column: 7, message: 'is wrong' }];
  expect(renderImportProblems(problems)).toBe('f.yaml:2:7: is wrong\n');
});
