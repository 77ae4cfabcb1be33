// SPDX-License-Identifier: Apache-2.0
import type { SourceLocation } from '../problem.ts';

export interface SyntaxProblem {
  readonly line: number;
  readonly col: number;
  readonly message: string;
}

/** Where a value stands, and its key when it has one. */
export interface NodeLocation {
  readonly key?: Omit<SourceLocation, 'file'>;
  readonly value: Omit<SourceLocation, 'file'>;
}

export interface ParsedDocument {
  /** Undefined when the text is not YAML, or not a mapping. */
  readonly tree: Readonly<Record<string, unknown>> | undefined;
  /** By pathKey. */
  readonly locations: ReadonlyMap<string, NodeLocation>;
  readonly problems: readonly SyntaxProblem[];
}
