// SPDX-License-Identifier: Apache-2.0
// Our own validator has the last word on what is printed. A value that it refuses is taken out again and noted,
// so that whatever stood in the other system's file, what comes out is valid.

import { CheckScope, checkFile } from '../../checks/index.ts';
import { readDocument } from '../../document/read-document.ts';
import { completeFile } from '../../effective/complete.ts';
import { explainIssues } from '../../issues/explain.ts';
import type { Finding } from '../../issues/finding.ts';
import { configSchema } from '../../schema/index.ts';
import { formatPath, type Work } from '../work.ts';
import type { Draft } from './draft.ts';
import { fillRequired } from './required.ts';

const ROUNDS = 20;

export type Accepted =
  | { readonly ok: true; readonly yaml: string }
  | { readonly ok: false; readonly findings: readonly Finding[] };

export function makeAcceptable(work: Work, draft: Draft): Accepted {
  let findings: readonly Finding[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    fillRequired(work, draft);
    const yaml = draft.toYaml();
    findings = errorsOf(yaml);
    if (findings.length === 0) return { ok: true, yaml };
    const removed = findings.filter((finding) => takeOut(work, draft, finding));
    if (removed.length === 0) break;
  }
  return { ok: false, findings };
}

function takeOut(work: Work, draft: Draft, { path, message }: Finding): boolean {
  const removed = draft.remove(path);
  for (const gone of removed) {
    const where = work.originOf(gone) ?? { path: formatPath(gone) };
    const text = `${formatPath(gone)} refuses the value, so it was left out: ${message}`;
    work.note(where, 'needs-you', text);
  }
  return removed.length > 0;
}

function errorsOf(yaml: string): readonly Finding[] {
  const { tree, problems } = readDocument(yaml);
  if (tree === undefined || problems.length > 0) {
    return problems.map(({ message }) => ({ path: [], severity: 'error', message }));
  }
  const parsed = configSchema.safeParse(tree);
  if (!parsed.success) return explainIssues(parsed.error.issues, tree);
  const findings = checkFile(
    completeFile(parsed.data),
    new CheckScope(tree, { temp: [], resolve: (path) => path }),
  );
  return findings.filter(({ severity }) => severity === 'error');
}
