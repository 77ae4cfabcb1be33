// SPDX-License-Identifier: Apache-2.0
// `config show`: the effective config with the origin of each value. Values that may be secrets are
// masked; the sources of secrets are shown.
import { type ConfigPath, formatConfigPath, isMapping, valueAt } from '../config-path.ts';
import { configLeaves } from '../load/leaf-origins.ts';
import type { LoadedConfig } from '../load/load-config.ts';
import { DEFAULT_ORIGIN, describeOrigin, type ValueOrigin } from '../overrides/origin.ts';
import { hasTokenFormat, isSecretKey } from '../secrets/detect-secret.ts';
import { isSecretOption, maskSecrets } from '../secrets/mask-secrets.ts';
import { MASK } from '../secrets/secret.ts';

export interface ShownValue {
  readonly value: unknown;
  readonly origin: ValueOrigin;
}

/** Values by path, for `--json`. */
export function renderConfigJson(loaded: LoadedConfig): Readonly<Record<string, ShownValue>> {
  const shown: Record<string, ShownValue> = {};
  for (const { path, value } of configLeaves(loaded.file)) {
    shown[findFreeName(shown, formatConfigPath(path))] = {
      value: maskIfSecret(loaded.file, path, value),
      origin: loaded.origins.get(formatConfigPath(path)) ?? DEFAULT_ORIGIN,
    };
  }
  return shown;
}

/** Keys that may be secrets are all shown as `[…]`; a number keeps their paths distinct. */
function findFreeName(taken: Readonly<Record<string, unknown>>, name: string): string {
  let free = name;
  for (let count = 2; Object.hasOwn(taken, free); count += 1) free = `${name}#${count}`;
  return free;
}

/** YAML that can be parsed again, with a comment after each value. */
export function renderConfigYaml(loaded: LoadedConfig): string {
  return renderValue(loaded.file, [], loaded)
    .map((line) => `${line}\n`)
    .join('');
}

type ConfigWithOrigins = Pick<LoadedConfig, 'file' | 'origins'>;

function renderValue(
  value: unknown,
  path: ConfigPath,
  shown: ConfigWithOrigins,
): readonly string[] {
  if (Array.isArray(value)) {
    return value.flatMap((item: unknown, index) => renderItem(item, [...path, index], shown));
  }
  if (!isMapping(value)) return [];
  return Object.entries(value)
    .filter(([, child]) => child !== undefined)
    .flatMap(([key, child]) => renderEntry(formatKey(key), child, { path: [...path, key], shown }));
}

interface EntryContext {
  readonly path: ConfigPath;
  readonly shown: ConfigWithOrigins;
}

/** The key of a label is free text, so it may contain a pasted token. */
function formatKey(key: string): string {
  return formatScalar(hasTokenFormat(key) ? MASK : key);
}

function renderEntry(
  key: string,
  value: unknown,
  { path, shown }: EntryContext,
): readonly string[] {
  if (isLeaf(value))
    return [`${key}: ${formatLeaf(value, path, shown)}${formatOriginComment(path, shown)}`];
  return [`${key}:`, ...renderValue(value, path, shown).map((line) => `  ${line}`)];
}

function renderItem(item: unknown, path: ConfigPath, shown: ConfigWithOrigins): readonly string[] {
  if (isLeaf(item))
    return [`- ${formatLeaf(item, path, shown)}${formatOriginComment(path, shown)}`];
  return renderValue(item, path, shown).map((line, index) => `${index === 0 ? '- ' : '  '}${line}`);
}

function isLeaf(value: unknown): boolean {
  if (Array.isArray(value)) return value.length === 0;
  return !isMapping(value) || Object.keys(value).length === 0;
}

function formatOriginComment(path: ConfigPath, { origins }: ConfigWithOrigins): string {
  const origin = origins.get(formatConfigPath(path)) ?? DEFAULT_ORIGIN;
  const last = path.at(-1);
  const names = typeof last === 'string' && /^(secret|password|passphrase)(File|Env)$/.test(last);
  return `  # ${describeOrigin(origin)}${names ? `; the secret: ${MASK}` : ''}`;
}

function formatLeaf(value: unknown, path: ConfigPath, { file }: ConfigWithOrigins): string {
  const text = maskIfSecret(file, path, value);
  return typeof text === 'string' ? formatScalar(text) : JSON.stringify(text);
}

/** Plain if YAML parses it as the same text, otherwise in double quotes. */
function formatScalar(text: string): string {
  const isPlain = /^[A-Za-z/~][\w./@!+~ -]*$/.test(text) && !/\s$/.test(text);
  const isWord = /^(true|false|null|yes|no|on|off|y|n|~)$/i.test(text);
  return isPlain && !isWord ? text : JSON.stringify(text);
}

function maskIfSecret(file: unknown, path: ConfigPath, value: unknown): unknown {
  if (typeof value !== 'string' || PUBLIC_KEYS.has(lastKey(path))) return value;
  return isSecretValue(file, path, value) ? MASK : maskSecrets(value);
}

/** Public values that have the format of a key. */
const PUBLIC_KEYS = new Set(['publicKeys', 'checksum', 'fingerprints', 'caCertHashes', 'sha256']);

function lastKey(path: ConfigPath): string {
  return path.findLast((step) => typeof step === 'string') ?? '';
}

/** Whether the value is masked: file content, or a secret by its format, its key or the preceding argument. */
function isSecretValue(file: unknown, path: ConfigPath, value: string): boolean {
  if (lastKey(path) === 'content' && path.includes('files')) return true;
  if (isNeverSecret(path, value)) return false;
  return (
    hasTokenFormat(value) ||
    isSecretKey(findValueName(file, path)) ||
    followsSecretOption(file, path)
  );
}

/** Name of the value: its key, or in a taint the value of `key`. */
function findValueName(file: unknown, path: ConfigPath): string {
  const last = path.at(-1);
  const named = last === 'value' ? valueAt(file, [...path.slice(0, -1), 'key']) : last;
  return typeof named === 'string' ? named : '';
}

function followsSecretOption(file: unknown, path: ConfigPath): boolean {
  const index = path.at(-1);
  if (typeof index !== 'number' || index === 0) return false;
  const before = valueAt(file, [...path.slice(0, -1), index - 1]);
  return typeof before === 'string' && isSecretOption(before);
}

/** `token: auto` and device counts are never secrets. */
function isNeverSecret(path: ConfigPath, value: string): boolean {
  return (path[0] === 'join' && value === 'auto') || path.includes('extendedResources');
}
