// SPDX-License-Identifier: Apache-2.0
// A leaf is one value of the file. It is checked here and kept as it was written, so that `config show` gives
// back what a person wrote; the effective config reads it into integers later, by the same parser.
import * as z from 'zod';
import type { Parsed } from '../../model/parsed.ts';

/** What the JSON Schema and the reference page say of a leaf. */
export interface LeafMetadata {
  /** In the reference page's type column: `duration`, `quantity`, `URL`. */
  readonly type: string;
  /** JSON Schema keywords. */
  readonly json: Readonly<Record<string, unknown>>;
  /** The parser's problems repeat the value or a part of it, which then has to be taken out. */
  readonly quotes?: boolean;
}

interface LeafRule<T> extends LeafMetadata {
  /** Whether YAML gave the right kind of value; otherwise `type` is what was expected. */
  readonly accepts: (value: unknown) => value is T;
  readonly parse: (value: T) => Parsed<unknown>;
}

export function leaf<T>(rule: LeafRule<T>) {
  return z
    .unknown()
    .transform((value, context): T => {
      if (!rule.accepts(value)) {
        context.addIssue({ code: 'custom', params: { expected: rule.type } });
        return z.NEVER;
      }
      const parsed = rule.parse(value);
      if (!parsed.ok) {
        const params = { quotes: rule.quotes === true };
        context.addIssue({ code: 'custom', message: parsed.problem, params });
      }
      return value;
    })
    .meta({ ...rule.json, 'x-type': rule.type });
}

export function textLeaf(facts: LeafMetadata, parse: (text: string) => Parsed<unknown>) {
  return leaf<string>({ ...facts, accepts: (value) => typeof value === 'string', parse });
}

/** Text or a bare number, as quantities and durations are written. */
export function amountLeaf(
  facts: LeafMetadata,
  parse: (amount: string | number) => Parsed<unknown>,
) {
  return leaf<string | number>({
    ...facts,
    accepts: (value) => typeof value === 'string' || typeof value === 'number',
    parse,
  });
}
