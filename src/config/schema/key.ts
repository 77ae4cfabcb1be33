// SPDX-License-Identifier: Apache-2.0
// What is said about a key beside its type: its meaning, and the settings of other systems whose place it
// takes. Types, JSON Schema, reference page, suggestions and `config show` all read these same facts.
import * as z from 'zod';
import type { SourceSystem } from '../source-systems.ts';

export interface KeyMetadata {
  /** Keys of other systems' files that this one stands for. */
  readonly replaces?: Readonly<Partial<Record<SourceSystem, string | readonly string[]>>>;
  /** Which value or meaning won where those systems differ, or how ours departs from theirs. */
  readonly note?: string;
  /** A default that depends on other keys, as a sentence for the reference page. */
  readonly defaultText?: string;
  /** Read by JSON Schema users; never the value of a secret. */
  readonly examples?: readonly unknown[];
}

/** Outermost wrapper of every key: whatever stands inside, the description is found on the key itself. */
export function key<T extends z.ZodType>(
  schema: T,
  description: string,
  facts: KeyMetadata = {},
): T {
  const { replaces, note, defaultText, examples } = facts;
  return schema.meta({
    description,
    ...(examples !== undefined && { examples: [...examples] }),
    ...(replaces !== undefined && { 'x-replaces': replaces }),
    ...(note !== undefined && { 'x-note': note }),
    ...(defaultText !== undefined && { 'x-default': defaultText }),
  });
}

/**
 * A mapping that is one of several forms of a value. The union would otherwise settle for a form merely because
 * nothing but unknown keys is wrong with it; this way all forms are compared (issues/union-branch).
 */
export function form<T extends z.ZodType>(schema: T) {
  return schema.transform((value, context) => {
    for (const issue of context.issues) Object.assign(issue, { continue: false });
    return value;
  });
}

/** A mapping whose keys all have defaults: may be left out as a whole. */
export function section<S extends z.core.$ZodShape>(shape: S) {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- every key of a section has a default
  return z.strictObject(shape).prefault({} as never);
}
