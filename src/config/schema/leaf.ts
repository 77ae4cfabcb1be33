// SPDX-License-Identifier: Apache-2.0
// A leaf is a single value of the file. It is validated here but keeps its notation, so that `config show`
// prints what the user wrote. The effective config converts it later with the same parser.
import * as z from 'zod';
import type { Parsed } from '../../model/parsed.ts';

/** Metadata of a leaf for the JSON Schema and the reference page. */
export interface LeafMetadata {
  /** Type in the reference page: `duration`, `quantity`, `URL`. */
  readonly type: string;
  /** JSON Schema keywords. */
  readonly json: Readonly<Record<string, unknown>>;
  /** The messages of the parser quote the value or a part of it, which must be removed. */
  readonly quotes?: boolean;
}

interface LeafRule<T> extends LeafMetadata {
  /** Whether the YAML value has the right type; otherwise the message names `type` as the expected type. */
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

/** Text or a plain number: the notation of quantities and durations. */
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
