// SPDX-License-Identifier: Apache-2.0
// `config show`: the effective config with the origin of each value. What could be a secret is masked; where
// secrets come from is shown, since that is what one looks for here.
import { type ConfigPath, isMapping, pathText, valueAt } from '../config-path.ts';
import { leavesOf } from '../load/leaf-origins.ts';
import type { LoadedConfig } from '../load/load-config.ts';
import { DEFAULT_ORIGIN, describeOrigin, type Origin } from '../overrides/origin.ts';
import { isSecretKey, isTokenForm } from '../secrets/looks-secret.ts';
import { announcesSecret, maskedText } from '../secrets/mask-text.ts';
import { MASK } from '../secrets/secret.ts';

export interface ShownValue {
  readonly value: unknown;
  readonly origin: Origin;
}

/** By path: for scripts and `--json`. */
export function effectiveConfigJson(loaded: LoadedConfig): Readonly<Record<string, ShownValue>> {
  const shown: Record<string, ShownValue> = {};
  for (const { path, value } of leavesOf(loaded.file)) {
    shown[freeName(shown, pathText(path))] = {
      value: masked(loaded.file, path, value),
      origin: loaded.origins.get(pathText(path)) ?? DEFAULT_ORIGIN,
    };
  }
  return shown;
}

/** Keys that could be secrets are all written `[…]`; none of their values may get lost for it. */
function freeName(taken: Readonly<Record<string, unknown>>, name: string): string {
  let free = name;
  for (let count = 2; Object.hasOwn(taken, free); count += 1) free = `${name}#${count}`;
  return free;
}

/** YAML that can be read back, with a comment behind each value. */
export function effectiveConfigYaml(loaded: LoadedConfig): string {
  return linesOf(loaded.file, [], loaded)
    .map((line) => `${line}\n`)
    .join('');
}

type Shown = Pick<LoadedConfig, 'file' | 'origins'>;

function linesOf(value: unknown, path: ConfigPath, shown: Shown): readonly string[] {
  if (Array.isArray(value)) {
    return value.flatMap((item: unknown, index) => itemLines(item, [...path, index], shown));
  }
  if (!isMapping(value)) return [];
  return Object.entries(value)
    .filter(([, child]) => child !== undefined)
    .flatMap(([key, child]) => entryLines(keyText(key), child, { path: [...path, key], shown }));
}

interface At {
  readonly path: ConfigPath;
  readonly shown: Shown;
}

/** A label's key is free text, so a pasted token may stand there too. */
function keyText(key: string): string {
  return scalarText(isTokenForm(key) ? MASK : key);
}

function entryLines(key: string, value: unknown, { path, shown }: At): readonly string[] {
  if (isLeaf(value)) return [`${key}: ${leafText(value, path, shown)}${comment(path, shown)}`];
  return [`${key}:`, ...linesOf(value, path, shown).map((line) => `  ${line}`)];
}

function itemLines(item: unknown, path: ConfigPath, shown: Shown): readonly string[] {
  if (isLeaf(item)) return [`- ${leafText(item, path, shown)}${comment(path, shown)}`];
  return linesOf(item, path, shown).map((line, index) => `${index === 0 ? '- ' : '  '}${line}`);
}

function isLeaf(value: unknown): boolean {
  if (Array.isArray(value)) return value.length === 0;
  return !isMapping(value) || Object.keys(value).length === 0;
}

function comment(path: ConfigPath, { origins }: Shown): string {
  const origin = origins.get(pathText(path)) ?? DEFAULT_ORIGIN;
  const last = path.at(-1);
  const names = typeof last === 'string' && /^(secret|password|passphrase)(File|Env)$/.test(last);
  return `  # ${describeOrigin(origin)}${names ? `; the secret: ${MASK}` : ''}`;
}

function leafText(value: unknown, path: ConfigPath, { file }: Shown): string {
  const text = masked(file, path, value);
  return typeof text === 'string' ? scalarText(text) : JSON.stringify(text);
}

/** Plain where YAML reads it back as the same text, else in double quotes. */
function scalarText(text: string): string {
  const isPlain = /^[A-Za-z/~][\w./@!+~ -]*$/.test(text) && !/\s$/.test(text);
  const isWord = /^(true|false|null|yes|no|on|off|y|n|~)$/i.test(text);
  return isPlain && !isWord ? text : JSON.stringify(text);
}

function masked(file: unknown, path: ConfigPath, value: unknown): unknown {
  if (typeof value !== 'string' || PUBLIC_KEYS.has(keyOf(path))) return value;
  return isHidden(file, path, value) ? MASK : maskedText(value);
}

/** Public by nature, though they look like keys. */
const PUBLIC_KEYS = new Set(['publicKeys', 'checksum', 'fingerprints', 'caCertHashes', 'sha256']);

function keyOf(path: ConfigPath): string {
  return path.findLast((step) => typeof step === 'string') ?? '';
}

/** Texts that may hold anything, and values that are a secret by their form, their key or what precedes them. */
function isHidden(file: unknown, path: ConfigPath, value: string): boolean {
  if (keyOf(path) === 'content' && path.includes('files')) return true;
  if (isChoice(path, value)) return false;
  return isTokenForm(value) || isSecretKey(nameOf(file, path)) || followsSecret(file, path);
}

/** What the value is called: its key, or in a taint the key beside it. */
function nameOf(file: unknown, path: ConfigPath): string {
  const last = path.at(-1);
  const named = last === 'value' ? valueAt(file, [...path.slice(0, -1), 'key']) : last;
  return typeof named === 'string' ? named : '';
}

function followsSecret(file: unknown, path: ConfigPath): boolean {
  const index = path.at(-1);
  if (typeof index !== 'number' || index === 0) return false;
  const before = valueAt(file, [...path.slice(0, -1), index - 1]);
  return typeof before === 'string' && announcesSecret(before);
}

/** `token: auto` is a word of ours, and a number of devices no secret. */
function isChoice(path: ConfigPath, value: string): boolean {
  return (path[0] === 'join' && value === 'auto') || path.includes('extendedResources');
}
