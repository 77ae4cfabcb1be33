// SPDX-License-Identifier: Apache-2.0
// A name that must be defined in another section of the file.
import type { ConfigPath } from '../config-path.ts';
import { errorAt, type Finding, withDependencies } from '../issues/finding.ts';
import { canShowValue, quoteValue } from '../secrets/detect-secret.ts';
import { closestMatch } from '../values/closest-match.ts';

export interface Reference {
  readonly path: ConfigPath;
  readonly name: string;
  /** Singular name for the message, such as `image`. */
  readonly kind: string;
  /** Section that must define the name, such as `images`. */
  readonly section: string;
  readonly defined: readonly string[];
}

export function checkReference(reference: Reference): readonly Finding[] {
  const { path, name, kind, section, defined } = reference;
  if (defined.includes(name)) return [];
  const closest = closestMatch(
    name,
    defined.filter((known) => canShowValue(known)),
  );
  const message = `${kind} ${quoteValue(name)} is not defined${referenceHint(closest, section, defined)}`;
  const finding = { ...errorAt(path, message, closest), isIndependent: true };
  return [withDependencies([[section]], finding)];
}

function referenceHint(
  closest: string | undefined,
  section: string,
  defined: readonly string[],
): string {
  if (closest !== undefined) return `; did you mean ${quoteValue(closest)}?`;
  return defined.length === 0
    ? `; '${section}' is empty`
    : `; '${section}' defines ${defined.map(quoteValue).join(', ')}`;
}
