// SPDX-License-Identifier: Apache-2.0
import type { Place } from '../problem.ts';

export interface DocumentProblem {
  readonly line: number;
  readonly col: number;
  readonly message: string;
}

/** Where a value stands, and its key when it has one. */
export interface NodePlace {
  readonly key?: Omit<Place, 'file'>;
  readonly value: Omit<Place, 'file'>;
}

export interface ReadDocument {
  /** Undefined when the text is not YAML, or not a mapping. */
  readonly tree: Readonly<Record<string, unknown>> | undefined;
  /** By pathKey. */
  readonly places: ReadonlyMap<string, NodePlace>;
  readonly problems: readonly DocumentProblem[];
}
