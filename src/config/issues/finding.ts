// SPDX-License-Identifier: Apache-2.0
// A problem before its location is known: what is wrong, and with which value.
import type { ConfigPath } from '../config-path.ts';
import type { Severity } from '../problem.ts';

export interface Finding {
  readonly path: ConfigPath;
  readonly severity: Severity;
  readonly message: string;
  readonly suggestion?: string;
  /** Report the location of the key instead of the value, because the key is wrong. */
  readonly atKey?: boolean;
  /** Sections that the check needs. The finding is dropped when one of them was refused as a whole. */
  readonly dependsOn?: readonly ConfigPath[];
  /** Concerns only this value, independent of problems with its siblings. */
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
