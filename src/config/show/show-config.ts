// SPDX-License-Identifier: Apache-2.0
// `config show`: the effective config with the origin of each value. What could be a secret is masked; where
// secrets come from is shown, since that is what one looks for here.
import { type ConfigPath, isMapping, pathText } from '../config-path.ts';
import { leavesOf } from '../load/leaf-origins.ts';
import type { LoadedConfig } from '../load/load-config.ts';
import { DEFAULT_ORIGIN, describeOrigin, type Origin } from '../overrides/origin.ts';
import { isTokenForm } from '../secrets/looks-secret.ts';
import { MASK } from '../secrets/secret.ts';

export interface ShownValue {
  readonly value: unknown;
  readonly origin: Origin;
}

/** By path: for scripts and `--json`. */
export function effectiveConfigJson(loaded: LoadedConfig): Readonly<Record<string, ShownValue>> {
  return Object.fromEntries(
    [...leavesOf(loaded.file)].map(({ path, value }) => [
      pathText(path),
      { value: masked(path, value), origin: loaded.origins.get(pathText(path)) ?? DEFAULT_ORIGIN },
    ]),
  );
}

/** YAML that can be read back, with a comment behind each value. */
export function effectiveConfigYaml(loaded: LoadedConfig): string {
  return linesOf(loaded.file, [], loaded.origins)
    .map((line) => `${line}\n`)
    .join('');
}

type Origins = ReadonlyMap<string, Origin>;

function linesOf(value: unknown, path: ConfigPath, origins: Origins): readonly string[] {
  if (Array.isArray(value)) {
    return value.flatMap((item: unknown, index) => itemLines(item, [...path, index], origins));
  }
  if (!isMapping(value)) return [];
  return Object.entries(value)
    .filter(([, child]) => child !== undefined)
    .flatMap(([key, child]) =>
      entryLines(scalarText(key), child, { path: [...path, key], origins }),
    );
}

interface At {
  readonly path: ConfigPath;
  readonly origins: Origins;
}

function entryLines(key: string, value: unknown, { path, origins }: At): readonly string[] {
  if (isLeaf(value)) return [`${key}: ${leafText(path, value)}${comment(path, origins)}`];
  return [`${key}:`, ...linesOf(value, path, origins).map((line) => `  ${line}`)];
}

function itemLines(item: unknown, path: ConfigPath, origins: Origins): readonly string[] {
  if (isLeaf(item)) return [`- ${leafText(path, item)}${comment(path, origins)}`];
  return linesOf(item, path, origins).map((line, index) => `${index === 0 ? '- ' : '  '}${line}`);
}

function isLeaf(value: unknown): boolean {
  if (Array.isArray(value)) return value.length === 0;
  return !isMapping(value) || Object.keys(value).length === 0;
}

function comment(path: ConfigPath, origins: Origins): string {
  const origin = origins.get(pathText(path)) ?? DEFAULT_ORIGIN;
  const last = path.at(-1);
  const names = typeof last === 'string' && /^(secret|password|passphrase)(File|Env)$/.test(last);
  return `  # ${describeOrigin(origin)}${names ? `; the secret: ${MASK}` : ''}`;
}

function leafText(path: ConfigPath, value: unknown): string {
  const shown = masked(path, value);
  return typeof shown === 'string' ? scalarText(shown) : JSON.stringify(shown);
}

/** Plain where YAML reads it back as the same text, else in double quotes. */
function scalarText(text: string): string {
  const isPlain = /^[A-Za-z/~][\w./@!+~ -]*$/.test(text) && !/\s$/.test(text);
  const isWord = /^(true|false|null|yes|no|on|off|y|n|~)$/i.test(text);
  return isPlain && !isWord ? text : JSON.stringify(text);
}

function masked(path: ConfigPath, value: unknown): unknown {
  if (typeof value !== 'string') return value;
  const key = path.findLast((step) => typeof step === 'string') ?? '';
  if (isHidden(path, key, value)) return MASK;
  return value
    .replaceAll(/([?&][^=&#]*=)[^&#]+/g, `$1${MASK}`)
    .replaceAll(/((?:pass|secret|token|key)\w*=)\S+/gi, `$1${MASK}`);
}

/** Public by nature, though they look like keys. */
const PUBLIC_KEYS = new Set(['publicKeys', 'checksum', 'fingerprints', 'caCertHashes']);

/** Texts that may hold anything, and values that can hardly be anything but a token. */
function isHidden(path: ConfigPath, key: string, value: string): boolean {
  if (PUBLIC_KEYS.has(key)) return false;
  return (key === 'content' && path.includes('files')) || isTokenForm(value);
}
