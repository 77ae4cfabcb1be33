// SPDX-License-Identifier: Apache-2.0
// Expands words to arguments: parameters, command substitution, field splitting, file name patterns.
import { evaluateArithmetic } from './arithmetic.ts';
import { ShellSyntaxError, type Word, type WordPart } from './syntax.ts';

export interface Scope {
  readonly variables: Map<string, string>;
  /** `$1`, `$2`, … */
  args: readonly string[];
  /** `$0`. */
  readonly name: string;
  status: number;
}

export interface ExpansionContext {
  readonly scope: Scope;
  /** All paths of the guest, for file name patterns. */
  paths(): readonly string[];
  /** Runs a script and returns its standard output. */
  substitute(script: string): Promise<string>;
}

/** A field under construction: its text, and a regular expression source in which quoted characters are literal. */
interface Field {
  text: string;
  pattern: string;
  /** A field with a quoted part is kept even when it is empty. */
  hasQuotes: boolean;
}

export async function expandWords(
  context: ExpansionContext,
  words: readonly Word[],
): Promise<string[]> {
  const fields: string[] = [];
  for (const word of words) {
    for (const field of await expandFields(context, word))
      fields.push(...expandGlob(context, field));
  }
  return fields;
}

/** Expands without field splitting, for assignments, redirection targets and `case` subjects. */
export async function expandText(context: ExpansionContext, word: Word): Promise<string> {
  let text = '';
  for (const part of word) text += (await expandPart(context, part)).join(' ');
  return text;
}

/** Expands a `case` pattern; quoted parts are literal. */
export async function expandPattern(context: ExpansionContext, word: Word): Promise<RegExp> {
  let source = '';
  for (const part of word) {
    const text = (await expandPart(context, part)).join(' ');
    source +=
      part.kind === 'text' && part.quoted ? escapeRegExp(text) : globToRegExpSource(text, '.');
  }
  return new RegExp(`^${source}$`, 's');
}

async function expandFields(context: ExpansionContext, word: Word): Promise<Field[]> {
  const fields: Field[] = [];
  let open: Field | undefined;
  const current = () => {
    open ??= pushField(fields);
    return open;
  };
  for (const part of word) {
    const values = await expandPart(context, part);
    if (isQuoted(part)) {
      for (const [index, value] of values.entries()) {
        if (index > 0) open = undefined;
        appendText(current(), value, true);
      }
      continue;
    }
    const pieces = part.kind === 'text' ? values : splitBlanks(values.join(' '));
    for (const [index, piece] of pieces.entries()) {
      if (index > 0) open = undefined;
      if (piece !== '') appendText(current(), piece, false);
    }
  }
  return fields.filter((field) => field.hasQuotes || field.text !== '');
}

function pushField(fields: Field[]): Field {
  const field: Field = { text: '', pattern: '', hasQuotes: false };
  fields.push(field);
  return field;
}

function appendText(field: Field, text: string, quoted: boolean): void {
  field.text += text;
  field.pattern += quoted ? escapeRegExp(text) : globToRegExpSource(text, '[^/]');
  if (quoted) field.hasQuotes = true;
}

function isQuoted(part: WordPart): boolean {
  return part.kind !== 'arithmetic' && part.quoted;
}

/** Leading and trailing blanks give empty pieces, so that neighbouring parts start a new field. */
function splitBlanks(text: string): string[] {
  return text.split(/[ \t\n]+/);
}

async function expandPart(context: ExpansionContext, part: WordPart): Promise<string[]> {
  switch (part.kind) {
    case 'text':
      return [part.text];
    case 'command':
      return [(await context.substitute(part.script)).replace(/\n+$/, '')];
    case 'arithmetic':
      return [String(expandArithmetic(context.scope, part.expression))];
    case 'variable':
      if (part.name === '@' && part.quoted) return [...context.scope.args];
      return [await expandParameter(context, part)];
  }
}

type VariablePart = Extract<WordPart, { kind: 'variable' }>;

async function expandParameter(context: ExpansionContext, part: VariablePart): Promise<string> {
  const { operator, name } = part;
  const value = readParameter(context.scope, name);
  if (operator === undefined) return value ?? '';
  if (operator === 'length') return String((value ?? '').length);
  const given = operator.startsWith(':') ? value || undefined : value;
  const operand = await expandText(context, part.operand ?? []);
  const apply = PARAMETER_OPERATORS[operator.replace(':', '')];
  if (apply === undefined) return removeMatch(value ?? '', operator, operand);
  return apply({ scope: context.scope, name, given, operand });
}

interface ParameterExpansion {
  readonly scope: Scope;
  readonly name: string;
  readonly given: string | undefined;
  readonly operand: string;
}

const PARAMETER_OPERATORS: Readonly<Record<string, (parameter: ParameterExpansion) => string>> = {
  '-': ({ given, operand }) => given ?? operand,
  '+': ({ given, operand }) => (given === undefined ? '' : operand),
  '=': ({ scope, name, given, operand }) => {
    scope.variables.set(name, given ?? operand);
    return given ?? operand;
  },
  '?': ({ name, given, operand }) => {
    if (given === undefined) throw new ShellSyntaxError(`${name}: ${operand || 'not set'}`);
    return given;
  },
};

/** `%` and `#` remove the shortest matching suffix or prefix; `%%` and `##` the longest. */
function removeMatch(value: string, operator: string, pattern: string): string {
  const matcher = new RegExp(`^${globToRegExpSource(pattern, '.')}$`, 's');
  const cuts = Array.from({ length: value.length + 1 }, (_, index) => index);
  const fromEnd = operator.startsWith('%');
  const ordered = operator === '%' || operator === '##' ? cuts.toReversed() : cuts;
  for (const cut of ordered) {
    const [head, tail] = [value.slice(0, cut), value.slice(cut)];
    if (matcher.test(fromEnd ? tail : head)) return fromEnd ? head : tail;
  }
  return value;
}

function readParameter(scope: Scope, name: string): string | undefined {
  if (name === '@' || name === '*') return scope.args.join(' ');
  if (name === '#') return String(scope.args.length);
  if (name === '?') return String(scope.status);
  if (name === '$') return '1';
  if (name === '!') return scope.variables.get('!') ?? '1';
  if (name === '0') return scope.name;
  if (/^\d$/.test(name)) return scope.args[Number(name) - 1];
  return scope.variables.get(name);
}

function expandArithmetic(scope: Scope, expression: string): number {
  const plain = expression.replaceAll('$', '');
  return evaluateArithmetic(plain, (name) => readParameter(scope, name) ?? '0');
}

function expandGlob(context: ExpansionContext, field: Field): string[] {
  const hasPattern = field.pattern !== escapeRegExp(field.text);
  if (!hasPattern || !field.text.startsWith('/')) return [field.text];
  const matcher = new RegExp(`^${field.pattern}$`);
  const found = context.paths().filter((path) => matcher.test(path));
  return found.length === 0 ? [field.text] : found;
}

function globToRegExpSource(text: string, anyCharacter: string): string {
  let source = '';
  for (const char of text) {
    if (char === '*') source += `${anyCharacter}*`;
    else if (char === '?') source += anyCharacter;
    else source += escapeRegExp(char);
  }
  return source;
}

/** Escapes a text so that a regular expression matches it literally. */
export function escapeRegExp(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
}
