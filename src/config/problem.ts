// SPDX-License-Identifier: Apache-2.0
// A problem in a config: what is wrong, where, and how to fix it. A message never contains a value that
// may be a secret, because it may be shown in a terminal, a CI log or a bug report.

export type Severity = 'error' | 'warning';

/** Source of a value, and the location at which its problems are reported. */
export interface SourceLocation {
  /** Path of the file, `environment:NAME` or `flag:--name`. */
  readonly file: string;
  /** Starts at 1; 0 for sources without lines. */
  readonly line: number;
  readonly col: number;
}

export interface Problem extends SourceLocation {
  /** Path of the value, `pools[0].size`; empty for the whole file. */
  readonly path: string;
  readonly severity: Severity;
  readonly message: string;
  /** The suggested key or value, if there is one. */
  readonly suggestion?: string;
}

/** `file:line:col: error: message`, the format that editors and CI systems turn into links. */
export function renderProblem(problem: Problem): string {
  const { path, severity, message } = problem;
  const subject = path === '' ? '' : `${path}: `;
  return `${formatLocation(problem)}: ${severity}: ${subject}${message}`;
}

export function formatLocation({ file, line, col }: SourceLocation): string {
  return line === 0 ? file : `${file}:${line}:${col}`;
}

export function renderProblems(problems: readonly Problem[]): string {
  return problems.map((problem) => `${renderProblem(problem)}\n`).join('');
}

/** Sorts by location, errors before warnings, and removes duplicates. */
export function sortProblems(problems: readonly Problem[]): readonly Problem[] {
  const unique = new Map(problems.map((problem) => [renderProblem(problem), problem]));
  return [...unique.values()].sort(compareLocations);
}

function compareLocations(left: Problem, right: Problem): number {
  return (
    compareText(left.file, right.file) ||
    left.line - right.line ||
    left.col - right.col ||
    compareText(left.severity, right.severity)
  );
}

function compareText(left: string, right: string): number {
  if (left === right) return 0;
  return left < right ? -1 : 1;
}

export function hasErrors(problems: readonly Problem[]): boolean {
  return problems.some(({ severity }) => severity === 'error');
}
