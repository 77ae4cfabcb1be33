// SPDX-License-Identifier: Apache-2.0
// From words to arguments: parameters, command substitution, splitting at blanks, file name patterns.
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
  /** All paths of the guest, for patterns. */
  paths(): readonly string[];
  /** What the script writes to its standard output. */
  substitute(script: string): Promise<string>;
}

/** A field on its way: its text, and the same as a pattern in which quoted signs stand for themselves. */
interface Field {
  text: string;
  pattern: string;
  /** Something quoted is in it: it stays even when empty. */
  solid: boolean;
}

export async function expandWords(
  context: ExpansionContext,
  words: readonly Word[],
): Promise<string[]> {
  const fields: string[] = [];
  for (const word of words) {
    for (const field of await expandFields(context, word)) fields.push(...globbed(context, field));
  }
  return fields;
}

/** One text, unsplit: assignments, redirection targets, `case` subjects. */
export async function expandText(context: ExpansionContext, word: Word): Promise<string> {
  let text = '';
  for (const part of word) text += (await valuesOf(context, part)).join(' ');
  return text;
}

/** A pattern for `case`: quoted parts stand for themselves. */
export async function expandPattern(context: ExpansionContext, word: Word): Promise<RegExp> {
  let source = '';
  for (const part of word) {
    const text = (await valuesOf(context, part)).join(' ');
    source += part.kind === 'text' && part.quoted ? escaped(text) : globSource(text, '.');
  }
  return new RegExp(`^${source}$`, 's');
}

async function expandFields(context: ExpansionContext, word: Word): Promise<Field[]> {
  const fields: Field[] = [];
  let open: Field | undefined;
  const current = () => {
    open ??= newField(fields);
    return open;
  };
  for (const part of word) {
    const values = await valuesOf(context, part);
    if (isQuoted(part)) {
      for (const [index, value] of values.entries()) {
        if (index > 0) open = undefined;
        append(current(), value, true);
      }
      continue;
    }
    const pieces = part.kind === 'text' ? values : splitBlanks(values.join(' '));
    for (const [index, piece] of pieces.entries()) {
      if (index > 0) open = undefined;
      if (piece !== '') append(current(), piece, false);
    }
  }
  return fields.filter((field) => field.solid || field.text !== '');
}

function newField(fields: Field[]): Field {
  const field: Field = { text: '', pattern: '', solid: false };
  fields.push(field);
  return field;
}

function append(field: Field, text: string, quoted: boolean): void {
  field.text += text;
  field.pattern += quoted ? escaped(text) : globSource(text, '[^/]');
  if (quoted) field.solid = true;
}

function isQuoted(part: WordPart): boolean {
  return part.kind !== 'arithmetic' && part.quoted;
}

/** Leading and trailing blanks become empty pieces, so that what stands beside them is not glued on. */
function splitBlanks(text: string): string[] {
  return text.split(/[ \t\n]+/);
}

async function valuesOf(context: ExpansionContext, part: WordPart): Promise<string[]> {
  switch (part.kind) {
    case 'text':
      return [part.text];
    case 'command':
      return [(await context.substitute(part.script)).replace(/\n+$/, '')];
    case 'arithmetic':
      return [String(arithmetic(context.scope, part.expression))];
    default:
      if (part.name === '@' && part.quoted) return [...context.scope.args];
      return [await parameterValue(context, part)];
  }
}

type Variable = Extract<WordPart, { kind: 'variable' }>;

async function parameterValue(context: ExpansionContext, part: Variable): Promise<string> {
  const { operator, name } = part;
  const value = lookUp(context.scope, name);
  if (operator === undefined) return value ?? '';
  if (operator === 'length') return String((value ?? '').length);
  const given = operator.startsWith(':') ? value || undefined : value;
  const operand = await expandText(context, part.operand ?? []);
  const apply = PARAMETER_OPERATORS[operator.replace(':', '')];
  if (apply === undefined) return trimmed(value ?? '', operator, operand);
  return apply({ scope: context.scope, name, given, operand });
}

interface Parameter {
  readonly scope: Scope;
  readonly name: string;
  readonly given: string | undefined;
  readonly operand: string;
}

const PARAMETER_OPERATORS: Readonly<Record<string, (parameter: Parameter) => string>> = {
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

/** `%` and `#`: the shortest matching end or beginning goes; doubled, the longest. */
function trimmed(value: string, operator: string, pattern: string): string {
  const matcher = new RegExp(`^${globSource(pattern, '.')}$`, 's');
  const cuts = Array.from({ length: value.length + 1 }, (_, index) => index);
  const fromEnd = operator.startsWith('%');
  const ordered = operator === '%' || operator === '##' ? cuts.toReversed() : cuts;
  for (const cut of ordered) {
    const [head, tail] = [value.slice(0, cut), value.slice(cut)];
    if (matcher.test(fromEnd ? tail : head)) return fromEnd ? head : tail;
  }
  return value;
}

function lookUp(scope: Scope, name: string): string | undefined {
  if (name === '@' || name === '*') return scope.args.join(' ');
  if (name === '#') return String(scope.args.length);
  if (name === '?') return String(scope.status);
  if (name === '$' || name === '!') return '1';
  if (name === '0') return scope.name;
  if (/^\d$/.test(name)) return scope.args[Number(name) - 1];
  return scope.variables.get(name);
}

function arithmetic(scope: Scope, expression: string): number {
  const plain = expression.replaceAll('$', '');
  return evaluateArithmetic(plain, (name) => lookUp(scope, name) ?? '0');
}

function globbed(context: ExpansionContext, field: Field): string[] {
  const hasPattern = field.pattern !== escaped(field.text);
  if (!hasPattern || !field.text.startsWith('/')) return [field.text];
  const matcher = new RegExp(`^${field.pattern}$`);
  const found = context.paths().filter((path) => matcher.test(path));
  return found.length === 0 ? [field.text] : found;
}

function globSource(text: string, any: string): string {
  let source = '';
  for (const char of text) {
    if (char === '*') source += `${any}*`;
    else if (char === '?') source += any;
    else source += escaped(char);
  }
  return source;
}

function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
}
