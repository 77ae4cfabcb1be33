// SPDX-License-Identifier: Apache-2.0
// A name that has to be defined elsewhere in the file.
import type { ConfigPath } from '../config-path.ts';
import { depending, type Finding, wrong } from '../issues/finding.ts';
import { isShown, quoted } from '../secrets/looks-secret.ts';
import { nearest } from '../values/nearest.ts';

export interface Reference {
  readonly path: ConfigPath;
  readonly name: string;
  /** `image`, for the sentence. */
  readonly kind: string;
  /** `images`, where it would be defined. */
  readonly section: string;
  readonly defined: readonly string[];
}

export function checkReference(reference: Reference): readonly Finding[] {
  const { path, name, kind, section, defined } = reference;
  if (defined.includes(name)) return [];
  const meant = nearest(
    name,
    defined.filter((known) => isShown(known)),
  );
  const message = `${kind} ${quoted(name)} is not defined${advice(meant, section, defined)}`;
  const finding = { ...wrong(path, message, meant), standsAlone: true };
  return [depending([[section]], finding)];
}

function advice(meant: string | undefined, section: string, defined: readonly string[]): string {
  if (meant !== undefined) return `; did you mean ${quoted(meant)}?`;
  return defined.length === 0
    ? `; '${section}' defines none`
    : `; '${section}' has ${defined.map(quoted).join(', ')}`;
}
