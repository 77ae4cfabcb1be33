// SPDX-License-Identifier: Apache-2.0
// Evaluates the right side of an assignment: literals and reads of environment variables. Other
// expressions have the result "unknown", which the importer reports instead of guessing.

import type { SourceEnvironment } from '../result.ts';
import type { ScalarValue } from '../source/tree.ts';
import type { Token } from './tokens.ts';

export type EvaluationResult =
  | { readonly kind: 'value'; readonly value: ScalarValue; readonly variable?: string }
  /** A variable that is not set, for which Python raises an exception: `os.environ['X']`. */
  | { readonly kind: 'missing'; readonly variable: string }
  | { readonly kind: 'unknown' };

const UNKNOWN: EvaluationResult = { kind: 'unknown' };
const CONSTANTS: ReadonlyMap<string, ScalarValue> = new Map<string, ScalarValue>([
  ['True', true],
  ['False', false],
  ['None', null],
]);

export function evaluateExpression(
  tokens: readonly Token[],
  environment: SourceEnvironment,
): EvaluationResult {
  const inner = stripParentheses(tokens);
  return (
    evaluateLiteral(inner) ??
    evaluateConversion(inner, environment) ??
    evaluateVariable(inner, environment) ??
    UNKNOWN
  );
}

function stripParentheses(tokens: readonly Token[]): readonly Token[] {
  const wrapped = tokens.length > 2 && isOperator(tokens[0], '(') && isOperator(tokens.at(-1), ')');
  const inner = tokens.slice(1, -1);
  return wrapped && !inner.some((token) => token.kind === 'operator' && '(),'.includes(token.text))
    ? inner
    : tokens;
}

function evaluateLiteral(tokens: readonly Token[]): EvaluationResult | undefined {
  const [first, second] = tokens;
  if (first === undefined) return undefined;
  if (tokens.every((token) => token.kind === 'string')) {
    if (tokens.some((token) => token.computed)) return UNKNOWN;
    return { kind: 'value', value: tokens.map((token) => token.text).join('') };
  }
  if (tokens.length === 1) return evaluateConstant(first);
  if (tokens.length === 2 && isOperator(first, '-') && second?.kind === 'number') {
    return { kind: 'value', value: -parseNumberToken(second) };
  }
  return undefined;
}

function evaluateConstant(token: Token): EvaluationResult | undefined {
  if (token.kind === 'number') return { kind: 'value', value: parseNumberToken(token) };
  const value = token.kind === 'name' ? CONSTANTS.get(token.text) : undefined;
  return value === undefined ? undefined : { kind: 'value', value };
}

function parseNumberToken(token: Token): number {
  return Number(token.text.replaceAll('_', ''));
}

const CONVERSIONS: ReadonlyMap<string, (value: ScalarValue) => ScalarValue | undefined> = new Map<
  string,
  (value: ScalarValue) => ScalarValue | undefined
>([
  ['int', (value) => convertToInt(value)],
  [
    'float',
    (value) => (Number.isFinite(Number(value)) && value !== '' ? Number(value) : undefined),
  ],
  ['str', (value) => (value === null ? 'None' : String(value))],
  ['bool', (value) => value !== '' && Boolean(value)],
]);

function convertToInt(value: ScalarValue): number | undefined {
  if (typeof value === 'number') return Math.trunc(value);
  if (typeof value === 'boolean') return value ? 1 : 0;
  return value !== null && /^\s*[+-]?\d+\s*$/.test(value) ? Number(value) : undefined;
}

/** A conversion such as `int(…)` of an expression that can be evaluated. */
function evaluateConversion(
  tokens: readonly Token[],
  environment: SourceEnvironment,
): EvaluationResult | undefined {
  const [name, open] = tokens;
  const convert = name?.kind === 'name' ? CONVERSIONS.get(name.text) : undefined;
  if (convert === undefined || !isOperator(open, '(') || !isOperator(tokens.at(-1), ')'))
    return undefined;
  const inner = evaluateExpression(tokens.slice(2, -1), environment);
  if (inner.kind !== 'value') return inner;
  const value = convert(inner.value);
  return value === undefined ? UNKNOWN : { ...inner, value };
}

/** `os.environ['X']`, `os.environ.get('X'[, fallback])`, `os.getenv('X'[, fallback])`, also without `os.` */
function evaluateVariable(
  tokens: readonly Token[],
  environment: SourceEnvironment,
): EvaluationResult | undefined {
  const shape = tokens.map((token) => (token.kind === 'string' ? "''" : token.text)).join('');
  const [, access] =
    /^(?:os\.)?(environ\[''\]|environ\.get\(''|getenv\(''|environ\.get\('',|getenv\('',)/.exec(
      shape,
    ) ?? [];
  const at = tokens.findIndex((token) => token.kind === 'string');
  const name = tokens[at]?.text;
  if (access === undefined || name === undefined) return undefined;
  const value = Object.hasOwn(environment, name) ? environment[name] : undefined;
  if (access.startsWith('environ[')) {
    if (tokens.length !== at + 2) return UNKNOWN;
    return value === undefined
      ? { kind: 'missing', variable: name }
      : { kind: 'value', value, variable: name };
  }
  if (!isOperator(tokens.at(-1), ')')) return UNKNOWN;
  if (value !== undefined) return { kind: 'value', value, variable: name };
  return evaluateFallback(tokens.slice(at + 1, -1), name);
}

function evaluateFallback(tokens: readonly Token[], name: string): EvaluationResult {
  if (tokens.length === 0) return { kind: 'value', value: null, variable: name };
  const given = isOperator(tokens[0], ',') ? evaluateLiteral(tokens.slice(1)) : undefined;
  return given?.kind === 'value' ? { ...given, variable: name } : UNKNOWN;
}

export function isOperator(token: Token | undefined, text: string): boolean {
  return token?.kind === 'operator' && token.text === text;
}
