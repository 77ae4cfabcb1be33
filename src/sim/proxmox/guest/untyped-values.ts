// SPDX-License-Identifier: Apache-2.0
// Safe access to parsed YAML and JSON of unknown shape. YAML is read as version 1.1, like PyYAML in a real guest:
// `0644` is octal, `yes` is true, the last of two equal keys wins.
import { parse, parseAllDocuments } from 'yaml';

export type PlainRecord = Readonly<Record<string, unknown>>;

const YAML_OPTIONS = { version: '1.1', uniqueKeys: false, logLevel: 'error' } as const;

/** Returns an undefined value and the problem when the text is not YAML. */
export function parseYaml(text: string): { readonly value: unknown; readonly problem?: string } {
  try {
    const value: unknown = parse(text, YAML_OPTIONS);
    return { value };
  } catch (error) {
    const problem = error instanceof Error ? (error.message.split('\n')[0] ?? '') : 'not YAML';
    return { value: undefined, problem };
  }
}

/** Reads all documents of a file; skips those with errors. */
export function parseYamlDocuments(text: string): PlainRecord[] {
  try {
    const documents = Array.from(parseAllDocuments(text, YAML_OPTIONS));
    const readable = documents.filter((document) => document.errors.length === 0);
    return readable.map((document) => asRecord(document.toJS()));
  } catch {
    return [];
  }
}

export function isRecord(value: unknown): value is PlainRecord {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function asRecord(value: unknown): PlainRecord {
  return isRecord(value) ? value : {};
}

export function asList(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value;
  return value === undefined || value === null ? [] : [value];
}

/** A scalar as text; undefined for any other value. */
export function asText(value: unknown): string | undefined {
  if (typeof value === 'string') return value;
  if (typeof value === 'number' || typeof value === 'boolean' || typeof value === 'bigint') {
    return String(value);
  }
  return undefined;
}

/** The scalars of a list, or a single scalar, as texts. */
export function asTexts(value: unknown): string[] {
  return asList(value)
    .map(asText)
    .filter((text) => text !== undefined);
}

/** True for the values that cloud-init accepts as true: true, yes, on, 1. */
export function isTruthy(value: unknown): boolean {
  return value === true || value === 1 || /^(true|yes|on|1)$/i.test(asText(value) ?? '');
}
