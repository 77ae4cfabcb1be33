// SPDX-License-Identifier: Apache-2.0
// Selectors in one line, as kubectl takes them: `a=b,c!=d,e in (x,y),!f,g>3`. The grammar is that of
// Kubernetes' labels.Parse, in which "in" and "notin" may also be keys and values.

import { accepted, type Parsed, refused } from './parsed.ts';
import { parseRequirement, type Requirement, type RequirementOperator } from './requirement.ts';
import { SELECT_EVERYTHING, type Selector } from './selector.ts';

interface Token {
  readonly kind: 'word' | 'symbol' | 'end';
  readonly text: string;
}

const END: Token = { kind: 'end', text: 'end of text' };

const OPERATORS: ReadonlyMap<string, RequirementOperator> = new Map([
  ['=', 'In'],
  ['==', 'In'],
  ['in', 'In'],
  ['!=', 'NotIn'],
  ['notin', 'NotIn'],
  ['>', 'Gt'],
  ['<', 'Lt'],
]);

class Tokens {
  readonly #tokens: readonly Token[];
  #next = 0;

  constructor(text: string) {
    this.#tokens = tokenize(text);
  }

  peek(): Token {
    return this.#tokens[this.#next] ?? END;
  }

  take(): Token {
    const token = this.peek();
    this.#next += 1;
    return token;
  }

  skip(symbol: string): boolean {
    const found = this.peek().text === symbol;
    if (found) this.#next += 1;
    return found;
  }

  isAtRequirementEnd(): boolean {
    const token = this.peek();
    return token.kind === 'end' || token.text === ',';
  }
}

// A NUL where a token should start ends the text for Kubernetes; one that follows a token is passed over.
function tokenize(text: string): readonly Token[] {
  const pattern = /[ \t\r\n]*(?:(==|!=|[=!(),<>])|([^ \t\r\n\0=!(),<>]+))\0?/y;
  const tokens: Token[] = [];
  for (let found = pattern.exec(text); found !== null; found = pattern.exec(text)) {
    const [, symbol, word] = found;
    tokens.push(
      symbol === undefined ? { kind: 'word', text: word ?? '' } : { kind: 'symbol', text: symbol },
    );
  }
  return tokens;
}

export function parseSelector(text: string): Parsed<Selector> {
  const tokens = new Tokens(text);
  if (tokens.peek().kind === 'end') return accepted(SELECT_EVERYTHING);
  const requirements: Requirement[] = [];
  do {
    const requirement = readRequirement(tokens);
    if (!requirement.ok) return requirement;
    requirements.push(requirement.value);
  } while (tokens.skip(','));
  if (tokens.peek().kind !== 'end') return unexpected(tokens.peek(), "',' or end of text");
  return accepted({ selects: 'matching', requirements: requirements.sort(byKey) });
}

function byKey(left: Requirement, right: Requirement): number {
  if (left.key === right.key) return 0;
  return left.key < right.key ? -1 : 1;
}

function readRequirement(tokens: Tokens): Parsed<Requirement> {
  const isNegated = tokens.skip('!');
  const key = tokens.take();
  if (key.kind !== 'word') return unexpected(key, 'a label key');
  if (isNegated) return parseRequirement({ key: key.text, operator: 'DoesNotExist' });
  if (tokens.isAtRequirementEnd()) return parseRequirement({ key: key.text, operator: 'Exists' });
  const word = tokens.take();
  const operator = OPERATORS.get(word.text);
  if (operator === undefined) return unexpected(word, '=, ==, !=, in, notin, > or <');
  const values = word.kind === 'word' ? readValues(tokens) : readValue(tokens);
  return values.ok ? parseRequirement({ key: key.text, operator, values: values.value }) : values;
}

function readValue(tokens: Tokens): Parsed<readonly string[]> {
  if (tokens.isAtRequirementEnd()) return accepted(['']);
  const value = tokens.take();
  return value.kind === 'word' ? accepted([value.text]) : unexpected(value, 'a value');
}

function readValues(tokens: Tokens): Parsed<readonly string[]> {
  if (!tokens.skip('(')) return unexpected(tokens.peek(), "'('");
  const values = new Set<string>();
  do {
    values.add(tokens.peek().kind === 'word' ? tokens.take().text : '');
  } while (tokens.skip(','));
  if (!tokens.skip(')')) return unexpected(tokens.peek(), "',' or ')'");
  return accepted([...values].sort());
}

function unexpected(found: Token, expected: string): Parsed<never> {
  const what = found.kind === 'end' ? found.text : `'${found.text}'`;
  return refused(`found ${what}, expected ${expected}`);
}

/** Text that parseSelector reads back as the same selection; a selector for nothing has none. */
export function formatSelector(selector: Selector): string {
  return selector.selects === 'nothing'
    ? ''
    : selector.requirements.map(formatRequirement).join(',');
}

export function formatRequirement({ key, operator, values }: Requirement): string {
  const list = `(${values.join(',')})`;
  const isSingle = values.length === 1;
  const texts: Readonly<Record<RequirementOperator, string>> = {
    In: isSingle ? `${key}=${values[0]}` : `${key} in ${list}`,
    NotIn: isSingle ? `${key}!=${values[0]}` : `${key} notin ${list}`,
    Exists: key,
    DoesNotExist: `!${key}`,
    Gt: `${key}>${values[0]}`,
    Lt: `${key}<${values[0]}`,
  };
  return texts[operator];
}
