// SPDX-License-Identifier: Apache-2.0
import type { SourceLocation } from '../problem.ts';

export interface SyntaxProblem {
  readonly line: number;
  readonly col: number;
  readonly message: string;
}

/** Location of a value, and of its key if it has one. */
export interface NodeLocation {
  readonly key?: Omit<SourceLocation, 'file'>;
  readonly value: Omit<SourceLocation, 'file'>;
}

export interface ParsedDocument {
  /** Undefined when the text is not YAML, or not a mapping. */
  readonly tree: Readonly<Record<string, unknown>> | undefined;
  /** By configPathKey. */
  readonly locations: ReadonlyMap<string, NodeLocation>;
  readonly problems: readonly SyntaxProblem[];
}
