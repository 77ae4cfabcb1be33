// SPDX-License-Identifier: Apache-2.0
// Metadata of a key: its description, and the settings of other systems that it replaces. Types, JSON
// Schema, reference page, suggestions and `config show` all use this metadata.
import * as z from 'zod';
import type { SourceSystem } from '../source-systems.ts';

export interface KeyMetadata {
  /** Keys of other systems that this key replaces. */
  readonly replaces?: Readonly<Partial<Record<SourceSystem, string | readonly string[]>>>;
  /** How the key differs from the replaced settings. */
  readonly note?: string;
  /** Description of a default that depends on other keys, for the reference page. */
  readonly defaultText?: string;
  /** Examples in the JSON Schema; never the value of a secret. */
  readonly examples?: readonly unknown[];
}

/** Adds the metadata of a key. Must be the outermost wrapper, so that the metadata is found on the key itself. */
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
 * A mapping that is one of several forms of a value. Without this wrapper the union selects a form whose only
 * issues are unknown keys; with it, all forms are compared (issues/union-branch.ts).
 */
export function form<T extends z.ZodType>(schema: T) {
  return schema.transform((value, context) => {
    for (const issue of context.issues) Object.assign(issue, { continue: false });
    return value;
  });
}

/** A mapping that is optional, because all its keys have defaults. */
export function section<S extends z.core.$ZodShape>(shape: S) {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- every key of a section has a default
  return z.strictObject(shape).prefault({} as never);
}
