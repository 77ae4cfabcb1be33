// SPDX-License-Identifier: Apache-2.0
// A problem before its place is known: what is wrong, and with which value.
import type { ConfigPath } from '../config-path.ts';
import type { Severity } from '../problem.ts';

export interface Finding {
  readonly path: ConfigPath;
  readonly severity: Severity;
  readonly message: string;
  readonly suggestion?: string;
  /** Point at the key rather than the value: the key itself is what is wrong. */
  readonly atKey?: boolean;
  /** Sections without which nobody can tell: nothing is said where one of them was refused as a whole. */
  readonly dependsOn?: readonly ConfigPath[];
  /** Is about the value alone, whatever is wrong beside it. */
  readonly isIndependent?: boolean;
}

export function errorAt(path: ConfigPath, message: string, suggestion?: string): Finding {
  return { path, severity: 'error', message, ...(suggestion !== undefined && { suggestion }) };
}

export function errorAtKey(path: ConfigPath, message: string, suggestion?: string): Finding {
  return { ...errorAt(path, message, suggestion), atKey: true };
}

export function warningAt(path: ConfigPath, message: string): Finding {
  return { path, severity: 'warning', message };
}

export function withDependencies(dependsOn: readonly ConfigPath[], finding: Finding): Finding {
  return { ...finding, dependsOn };
}
