// SPDX-License-Identifier: Apache-2.0
// Renders the notes of an import as text and as JSON.

import {
  type ImportNote,
  type ImportProblem,
  NOTE_SEVERITIES,
  type NoteSeverity,
} from './result.ts';

const SEVERITY_TITLES: Readonly<Record<NoteSeverity, string>> = {
  'action-required': 'Action required before the config works',
  'not-imported': 'Not imported',
  'imported-differently': 'Imported, but different from before',
  'ignored-by-source': 'Had no effect in the source system either',
};

/** Text for the terminal, required actions first. The last line contains the counts. */
export function renderImportReport(notes: readonly ImportNote[]): string {
  const groups = NOTE_SEVERITIES.flatMap((severity) => {
    const own = notes.filter((note) => note.severity === severity);
    return own.length === 0
      ? []
      : [`${SEVERITY_TITLES[severity]}:\n${own.map(renderNote).join('')}`];
  });
  return `${[...groups, renderSummary(notes)].join('\n')}\n`;
}

function renderNote({ path, at, message }: ImportNote): string {
  const place = at === undefined ? '' : ` (line ${at.line})`;
  return `  ${path}${place}: ${message}\n`;
}

function renderSummary(notes: readonly ImportNote[]): string {
  if (notes.length === 0) return 'Everything was imported.';
  const counts = NOTE_SEVERITIES.map((severity) => {
    const count = notes.filter((note) => note.severity === severity).length;
    return `${count} ${severity}`;
  });
  return `${notes.length} notes: ${counts.join(', ')}.`;
}

export interface ImportReportJson {
  readonly counts: Readonly<Record<NoteSeverity, number>>;
  readonly notes: readonly ImportNote[];
}

export function importReportJson(notes: readonly ImportNote[]): ImportReportJson {
  const count = (severity: NoteSeverity) =>
    notes.filter((note) => note.severity === severity).length;
  return {
    counts: {
      'action-required': count('action-required'),
      'not-imported': count('not-imported'),
      'imported-differently': count('imported-differently'),
      'ignored-by-source': count('ignored-by-source'),
    },
    notes,
  };
}

/** `file:line:col: message`, one line each. */
export function renderImportProblems(problems: readonly ImportProblem[]): string {
  return problems
    .map(({ file, line, column, message }) => `${file}:${line}:${column}: ${message}\n`)
    .join('');
}
