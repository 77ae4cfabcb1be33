// SPDX-License-Identifier: Apache-2.0
// Reading YAML of any shape without trusting it. The dialect is YAML 1.1, as PyYAML reads it in a real guest:
// `0644` is octal, `yes` is true, the last of two equal keys wins.
import { parse, parseAllDocuments } from 'yaml';

export type PlainRecord = Readonly<Record<string, unknown>>;

const DIALECT = { version: '1.1', uniqueKeys: false, logLevel: 'error' } as const;

/** Undefined, and a reason, when the text is not YAML. */
export function parseYaml(text: string): { readonly value: unknown; readonly problem?: string } {
  try {
    const value: unknown = parse(text, DIALECT);
    return { value };
  } catch (error) {
    const problem = error instanceof Error ? (error.message.split('\n')[0] ?? '') : 'not YAML';
    return { value: undefined, problem };
  }
}

/** Several documents in one file; those that cannot be read are left out. */
export function parseYamlDocuments(text: string): PlainRecord[] {
  try {
    const documents = Array.from(parseAllDocuments(text, DIALECT));
    const readable = documents.filter((document) => document.errors.length === 0);
    return readable.map((document) => recordOf(document.toJS()));
  } catch {
    return [];
  }
}

export function isRecord(value: unknown): value is PlainRecord {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function recordOf(value: unknown): PlainRecord {
  return isRecord(value) ? value : {};
}

export function listOf(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value;
  return value === undefined || value === null ? [] : [value];
}

/** Scalars as text; anything else is undefined. */
export function textOf(value: unknown): string | undefined {
  if (typeof value === 'string') return value;
  if (typeof value === 'number' || typeof value === 'boolean' || typeof value === 'bigint') {
    return String(value);
  }
  return undefined;
}

/** A list of texts out of a list or a single scalar. */
export function textsOf(value: unknown): string[] {
  return listOf(value)
    .map(textOf)
    .filter((text) => text !== undefined);
}

/** As Python and cloud-init take it: true, yes, on, 1. */
export function isTruthy(value: unknown): boolean {
  return value === true || value === 1 || /^(true|yes|on|1)$/i.test(textOf(value) ?? '');
}
