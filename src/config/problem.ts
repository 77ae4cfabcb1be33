// SPDX-License-Identifier: Apache-2.0
// What is wrong with a config, where, and what to do about it. A message never repeats a value that could be
// a secret: it may end in a terminal, a CI log or a bug report.

export type Severity = 'error' | 'warning';

/** Where a value came from; also where a problem with it is reported. */
export interface SourceLocation {
  /** Path of the file, `environment:NAME` or `flag:--name`. */
  readonly file: string;
  /** From 1; 0 where there are no lines. */
  readonly line: number;
  readonly col: number;
}

export interface Problem extends SourceLocation {
  /** The value's way in the config, `pools[0].size`; empty for the file as a whole. */
  readonly path: string;
  readonly severity: Severity;
  readonly message: string;
  /** What to write instead, where that is known: a key or a value. */
  readonly suggestion?: string;
}

/** `file:line:col: error: message`, the form that editors and CI systems link. */
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

/** By place, errors first where several share one; the same problem is said once. */
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
