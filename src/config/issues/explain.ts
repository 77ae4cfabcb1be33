// SPDX-License-Identifier: Apache-2.0
// What the schema found, in sentences. Values are never repeated here; see secrets/looks-secret.
import type * as z from 'zod';
import { type ConfigPath, valueAt } from '../config-path.ts';
import { formsAt, nodesAt, withForms } from '../schema/tree.ts';
import { isSecretKey, quotedKey, withoutValue } from '../secrets/looks-secret.ts';
import { nearest } from '../values/nearest.ts';
import { type Finding, wrong, wrongKey } from './finding.ts';
import { expectedKind, kindOfValue } from './kind-of-value.ts';
import { type PlainIssue, plainIssues } from './plain-issues.ts';
import { unknownKey } from './unknown-key.ts';

type Issue = z.core.$ZodIssue;

/** One finding per thing to correct. */
export function explainIssues(issues: readonly Issue[], tree: unknown): readonly Finding[] {
  return plainIssues(issues, tree).flatMap((issue) => explain(issue, tree));
}

function explain({ issue, path }: PlainIssue, tree: unknown): readonly Finding[] {
  switch (issue.code) {
    case 'unrecognized_keys':
      return issue.keys.map((key) => unknownKey(path, key));
    case 'invalid_union':
      return [explainUnion(path, valueAt(tree, path))];
    case 'invalid_type':
      return [wrongKind(path, valueAt(tree, path), issue.expected)];
    case 'custom':
      return [explainCustom(issue, path, tree)];
    default:
      return [explainValue(issue, path, valueAt(tree, path))];
  }
}

/** No form fits: what the forms are. */
function explainUnion(path: ConfigPath, value: unknown): Finding {
  const literals = nodesAt(path).flatMap(withForms).flatMap(literalsOf);
  const near = typeof value === 'string' ? nearest(value, literals) : undefined;
  return wrongKind(path, value, {
    text: formsAt(path) ?? 'another form',
    ...(near !== undefined && { near }),
  });
}

function literalsOf(node: { readonly enum?: readonly unknown[]; readonly const?: unknown }) {
  return [...(node.enum ?? []), node.const].filter((value) => typeof value === 'string');
}

type Expected = string | { readonly text: string; readonly near?: string };

function wrongKind(path: ConfigPath, value: unknown, expected: Expected): Finding {
  const what = typeof expected === 'string' ? expectedKind(expected) : expected.text;
  const near = typeof expected === 'string' ? undefined : expected.near;
  if (value === undefined) return missing(path);
  if (value === null) {
    return wrong(path, `has no value; expected ${what}, or leave the key out`);
  }
  const meant = near === undefined ? '' : `; did you mean '${near}'?`;
  return wrong(
    path,
    `expected ${what}, not ${kindOfValue(value, what)}${hint(path, value, what)}${meant}`,
    near,
  );
}

function hint(path: ConfigPath, value: unknown, expected: string): string {
  const last = path.findLast((step) => typeof step === 'string') ?? '';
  if (typeof value === 'string' && isSecretKey(last)) {
    return '; a secret does not belong in the file: name a file, a variable or a Kubernetes Secret';
  }
  const isTyped = typeof value === 'number' || typeof value === 'boolean';
  return isTyped && !/list|mapping|number|true/.test(expected) ? '; put it in quotes' : '';
}

function missing(path: ConfigPath): Finding {
  const key = path.at(-1);
  return wrongKey(path.slice(0, -1), `key ${quotedKey(String(key))} is missing`);
}

function explainCustom(
  issue: Extract<Issue, { code: 'custom' }>,
  path: ConfigPath,
  tree: unknown,
): Finding {
  const value = valueAt(tree, path);
  const expected: unknown = issue.params?.['expected'];
  if (typeof expected === 'string') return wrongKind(path, value, expected);
  // A parser of ours that never quotes keeps its words, whatever the value has in common with them.
  const isOwnWords = issue.params?.['quotes'] === false;
  return wrong(path, isOwnWords ? issue.message : withoutValue(issue.message, value));
}

function explainValue(issue: Issue, path: ConfigPath, value: unknown): Finding {
  if (value === undefined) return missing(path);
  if (value === null) return wrong(path, 'has no value; give it one, or leave the key out');
  switch (issue.code) {
    case 'invalid_value':
      return wrongChoice(path, value, issue.values);
    case 'too_small':
      return wrong(path, tooSmall(issue));
    case 'too_big':
      return wrong(path, tooBig(issue));
    case 'invalid_key':
      return wrongKey(path, wrongName(issue));
    case 'invalid_format':
      return wrong(path, NAME_RULE);
    default:
      return wrong(path, 'is not valid');
  }
}

function wrongChoice(path: ConfigPath, value: unknown, choices: readonly unknown[]): Finding {
  const words = choices.map(String);
  const near = typeof value === 'string' ? nearest(value, words) : undefined;
  const only = words.length === 1 ? `must be ${words[0]}` : `must be one of ${words.join(', ')}`;
  const meant = near === undefined || words.length === 1 ? '' : `; did you mean '${near}'?`;
  return wrong(path, `${only}${meant}`, near);
}

function tooSmall(issue: Extract<Issue, { code: 'too_small' }>): string {
  if (issue.origin === 'array') return 'needs at least one entry';
  return `must be at least ${issue.minimum}`;
}

function tooBig(issue: Extract<Issue, { code: 'too_big' }>): string {
  if (issue.origin === 'array') return `has more than ${issue.maximum} entries`;
  return `must be at most ${issue.maximum}`;
}

const NAME_RULE =
  "is not a name: letters, digits, '.', '_' and '-', at most 63, starting and ending with a letter or digit";

function wrongName(issue: Extract<Issue, { code: 'invalid_key' }>): string {
  const [inner] = issue.issues;
  return inner?.code === 'custom' ? withoutValue(inner.message, issue.path.at(-1)) : NAME_RULE;
}
