// SPDX-License-Identifier: Apache-2.0
// Validates the output with our own validator. A refused value is removed and noted, so that the output is
// valid whatever the source file contains.

import { CheckContext, checkFile } from '../../checks/index.ts';
import { formatConfigPath } from '../../config-path.ts';
import { readDocument } from '../../document/read-document.ts';
import { applyDependentDefaults } from '../../effective/dependent-defaults.ts';
import { explainIssues } from '../../issues/explain-issues.ts';
import type { Finding } from '../../issues/finding.ts';
import { configSchema } from '../../schema/index.ts';
import type { ImportWriter } from '../writer.ts';
import type { Draft } from './draft.ts';
import { addRequiredPlaceholders } from './required.ts';

const MAX_PASSES = 20;

export type ValidationResult =
  | { readonly ok: true; readonly yaml: string }
  | { readonly ok: false; readonly findings: readonly Finding[] };

export function makeValid(writer: ImportWriter, draft: Draft): ValidationResult {
  let findings: readonly Finding[] = [];
  for (let pass = 0; pass < MAX_PASSES; pass += 1) {
    addRequiredPlaceholders(writer, draft);
    const yaml = draft.toYaml();
    findings = findErrors(yaml);
    if (findings.length === 0) return { ok: true, yaml };
    const removed = findings.filter((finding) => removeInvalid(writer, draft, finding));
    if (removed.length === 0) break;
  }
  return { ok: false, findings };
}

function removeInvalid(writer: ImportWriter, draft: Draft, { path, message }: Finding): boolean {
  const removed = draft.remove(path);
  for (const removedPath of removed) {
    const where = writer.findOrigin(removedPath) ?? { path: formatConfigPath(removedPath) };
    const text = `${formatConfigPath(removedPath)} does not accept the value, so it was not imported: ${message}`;
    writer.note(where, 'action-required', text);
  }
  return removed.length > 0;
}

function findErrors(yaml: string): readonly Finding[] {
  const { tree, problems } = readDocument(yaml);
  if (tree === undefined || problems.length > 0) {
    return problems.map(({ message }) => ({ path: [], severity: 'error', message }));
  }
  const parsed = configSchema.safeParse(tree);
  if (!parsed.success) return explainIssues(parsed.error.issues, tree);
  const findings = checkFile(
    applyDependentDefaults(parsed.data),
    new CheckContext(tree, { temp: [], resolve: (path) => path }),
  );
  return findings.filter(({ severity }) => severity === 'error');
}
