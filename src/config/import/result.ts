// SPDX-License-Identifier: Apache-2.0
// The result of an import: the config file and notes, or the problems that prevented the import.

import type { SourceSystem } from '../source-systems.ts';

export interface SourcePosition {
  /** Both count from 1. */
  readonly line: number;
  readonly column: number;
}

/**
 * - `action-required`: the file is valid, but does not work until the user acts
 * - `not-imported`: has no equivalent key
 * - `imported-differently`: imported with a slightly different meaning
 * - `ignored-by-source`: had no effect in the source system
 */
export const NOTE_SEVERITIES = [
  'action-required',
  'not-imported',
  'imported-differently',
  'ignored-by-source',
] as const;
export type NoteSeverity = (typeof NOTE_SEVERITIES)[number];

export interface ImportNote {
  /** The key or variable of the source system. */
  readonly path: string;
  /** Position in the source file; undefined for absent keys and for variables. */
  readonly at?: SourcePosition;
  readonly severity: NoteSeverity;
  readonly message: string;
}

export interface ImportProblem extends SourcePosition {
  readonly file: string;
  readonly message: string;
}

export type ImportResult =
  | { readonly ok: true; readonly yaml: string; readonly notes: readonly ImportNote[] }
  | { readonly ok: false; readonly problems: readonly ImportProblem[] };

/** Environment of the source system. Only the variables that it reads are used. */
export type SourceEnvironment = Readonly<Record<string, string | undefined>>;

export interface ImportRequest {
  readonly from: SourceSystem;
  /** Used in messages only; the file is not opened. */
  readonly fileName: string;
  readonly text: string;
  readonly environment?: SourceEnvironment;
}
