// SPDX-License-Identifier: Apache-2.0
// Converts schema issues to messages. They never repeat values; see secrets/detect-secret.ts.
import type * as z from 'zod';
import { type ConfigPath, valueAt } from '../config-path.ts';
import { describeForms, expandForms, findNodes } from '../schema/tree.ts';
import { isSecretKey, quoteKey, removeQuotedValue } from '../secrets/detect-secret.ts';
import { closestMatch } from '../values/closest-match.ts';
import { describeExpectedKind, describeKind } from './describe-kind.ts';
import { errorAt, errorAtKey, type Finding } from './finding.ts';
import { type FlatIssue, flattenIssues } from './flatten-issues.ts';
import { unknownKeyError } from './unknown-key.ts';

type Issue = z.core.$ZodIssue;

/** Returns one finding per correction that the user must make. */
export function explainIssues(issues: readonly Issue[], tree: unknown): readonly Finding[] {
  return flattenIssues(issues, tree).flatMap((issue) => explainIssue(issue, tree));
}

function explainIssue({ issue, path }: FlatIssue, tree: unknown): readonly Finding[] {
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => unknownKeyError(path, key));
  }
  const value = valueAt(tree, path);
  if (issue.code === 'invalid_union') return [explainUnion(path, value)];
  if (issue.code === 'invalid_type') return [wrongKindError(path, value, issue.expected)];
  return issue.code === 'custom'
    ? [explainCustom(issue, path, tree)]
    : [explainValue(issue, path, value)];
}

/** No form matches: names the allowed forms. */
function explainUnion(path: ConfigPath, value: unknown): Finding {
  const literals = findNodes(path).flatMap(expandForms).flatMap(collectLiterals);
  const closest = typeof value === 'string' ? closestMatch(value, literals) : undefined;
  return wrongKindError(path, value, {
    text: describeForms(path) ?? 'another form',
    ...(closest !== undefined && { closest }),
  });
}

function collectLiterals(node: { readonly enum?: readonly unknown[]; readonly const?: unknown }) {
  return [...(node.enum ?? []), node.const].filter((value) => typeof value === 'string');
}

type Expected = string | { readonly text: string; readonly closest?: string };

function wrongKindError(path: ConfigPath, value: unknown, expected: Expected): Finding {
  const what = typeof expected === 'string' ? describeExpectedKind(expected) : expected.text;
  const closest = typeof expected === 'string' ? undefined : expected.closest;
  if (value === undefined) return missingKeyError(path);
  if (value === null) {
    return errorAt(path, `has no value; expected ${what}, or remove the key`);
  }
  const suggestionHint = closest === undefined ? '' : `; did you mean '${closest}'?`;
  return errorAt(
    path,
    `expected ${what}, not ${describeKind(value, what)}${wrongKindHint(path, value, what)}${suggestionHint}`,
    closest,
  );
}

function wrongKindHint(path: ConfigPath, value: unknown, expected: string): string {
  const last = path.findLast((step) => typeof step === 'string') ?? '';
  if (typeof value === 'string') return textHint(value, expected, last);
  if (expected.includes('range')) return '; write the first and the last, such as 1250-1300';
  const isTyped = typeof value === 'number' || typeof value === 'boolean';
  return isTyped && !/list|mapping|number|true/.test(expected) ? '; put it in quotes' : '';
}

function textHint(value: string, expected: string, key: string): string {
  if (isSecretKey(key)) {
    return '; do not write secrets into the file: refer to a file, an environment variable or a Kubernetes Secret';
  }
  if (/^a (whole )?number$/.test(expected) && /^\d+$/.test(value)) return '; remove the quotes';
  return expected === 'a list' ? '; put it in square brackets' : '';
}

function missingKeyError(path: ConfigPath): Finding {
  const key = path.at(-1);
  return errorAtKey(path.slice(0, -1), `key ${quoteKey(String(key))} is missing`);
}

function explainCustom(
  issue: Extract<Issue, { code: 'custom' }>,
  path: ConfigPath,
  tree: unknown,
): Finding {
  const value = valueAt(tree, path);
  const expected: unknown = issue.params?.['expected'];
  if (typeof expected === 'string') return wrongKindError(path, value, expected);
  // Messages of a parser that never quotes are kept unchanged, even if the value contains the same words.
  const neverQuotes = issue.params?.['quotes'] === false;
  return errorAt(path, neverQuotes ? issue.message : removeQuotedValue(issue.message, value));
}

function explainValue(issue: Issue, path: ConfigPath, value: unknown): Finding {
  if (value === undefined) return missingKeyError(path);
  if (value === null) return errorAt(path, 'has no value; set a value or remove the key');
  if (issue.code === 'invalid_value') return wrongChoiceError(path, value, issue.values);
  if (issue.code === 'too_small') return errorAt(path, describeTooSmall(issue));
  if (issue.code === 'too_big') return errorAt(path, describeTooBig(issue));
  if (issue.code === 'invalid_key') return errorAtKey(path, describeWrongName(issue));
  return errorAt(path, issue.code === 'invalid_format' ? NAME_RULE : 'is not valid');
}

function wrongChoiceError(path: ConfigPath, value: unknown, choices: readonly unknown[]): Finding {
  const choiceTexts = choices.map(String);
  const closest = typeof value === 'string' ? closestMatch(value, choiceTexts) : undefined;
  const only =
    choiceTexts.length === 1
      ? `must be ${choiceTexts[0]}`
      : `must be one of ${choiceTexts.join(', ')}`;
  const suggestionHint =
    closest === undefined || choiceTexts.length === 1 ? '' : `; did you mean '${closest}'?`;
  return errorAt(path, `${only}${suggestionHint}`, closest);
}

function describeTooSmall(issue: Extract<Issue, { code: 'too_small' }>): string {
  if (issue.origin === 'array') return 'must have at least one entry';
  return `must be at least ${issue.minimum}`;
}

function describeTooBig(issue: Extract<Issue, { code: 'too_big' }>): string {
  if (issue.origin === 'array') return `must have at most ${issue.maximum} entries`;
  return `must be at most ${issue.maximum}`;
}

const NAME_RULE =
  "is not a valid name; use at most 63 letters, digits, '.', '_' and '-', and start and end with a letter or digit";

function describeWrongName(issue: Extract<Issue, { code: 'invalid_key' }>): string {
  const [inner] = issue.issues;
  return inner?.code === 'custom' ? removeQuotedValue(inner.message, issue.path.at(-1)) : NAME_RULE;
}
