// SPDX-License-Identifier: Apache-2.0
// What an import yields: our file and what is to be said about it, or why there is none.

import type { SourceSystem } from '../source-systems.ts';

export interface SourcePosition {
  /** Both count from 1. */
  readonly line: number;
  readonly column: number;
}

/**
 * - `action-required`: the file is valid without it, but does not work before somebody acts
 * - `not-imported`: has no home here
 * - `imported-differently`: is in the file, and means something slightly different from before
 * - `ignored-by-source`: had no effect in the other system
 */
export const NOTE_SEVERITIES = [
  'action-required',
  'not-imported',
  'imported-differently',
  'ignored-by-source',
] as const;
export type NoteSeverity = (typeof NOTE_SEVERITIES)[number];

export interface ImportNote {
  /** The other system's key or variable, as it names it. */
  readonly path: string;
  /** Where it stands in the other system's file; nowhere for what is absent or comes from the environment. */
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

/** Variables of the place where the other system runs; only the ones it reads are looked at. */
export type SourceEnvironment = Readonly<Record<string, string | undefined>>;

export interface ImportRequest {
  readonly from: SourceSystem;
  /** For messages; nothing is opened. */
  readonly fileName: string;
  readonly text: string;
  readonly environment?: SourceEnvironment;
}
