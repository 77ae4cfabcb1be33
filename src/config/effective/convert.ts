// SPDX-License-Identifier: Apache-2.0
// Converts validated text to integers with a unit. The schema has already accepted every value: a refusal
// here is a bug.
import type { Parsed } from '../../model/parsed.ts';
import { Bug } from '../../ports/errors.ts';
import type { SecretSource } from '../secrets/secret-source.ts';
import { type AmountText, parseBytes, parseCpuMilli, parseMilliseconds } from '../values/amount.ts';
import { type ListenAddress, parseListenAddress } from '../values/listen-address.ts';
import { type Folders, resolvePath } from './resolve-path.ts';

export interface BuildContext {
  readonly folders: Folders;
  /** Default namespace of Secret references. */
  readonly namespace: string;
}

export function unwrapParsed<T>(parsed: Parsed<T>): T {
  if (parsed.ok) return parsed.value;
  throw new Bug('BUG', `a validated config value was refused: ${parsed.problem}`);
}

export function toBytes(amount: AmountText): number {
  return unwrapParsed(parseBytes(amount));
}

export function toCpuMilli(amount: AmountText): number {
  return unwrapParsed(parseCpuMilli(amount));
}

export function toMs(amount: AmountText): number {
  return unwrapParsed(parseMilliseconds(amount));
}

export function toOptionalMs(amount: AmountText | undefined): number | undefined {
  return amount === undefined ? undefined : toMs(amount);
}

export function toListenAddress(text: string): ListenAddress | undefined {
  return text === 'off' ? undefined : unwrapParsed(parseListenAddress(text));
}

export function toOptionalPath(
  path: string | undefined,
  context: BuildContext,
): string | undefined {
  return path === undefined ? undefined : resolvePath(path, context.folders);
}

interface SecretSourceKeys {
  readonly file: string | undefined;
  readonly env: string | undefined;
  readonly ref: SecretRef | undefined;
}

interface SecretRef {
  readonly name: string;
  readonly namespace?: string | undefined;
  readonly key: string;
}

export function toSecretSource(
  keys: SecretSourceKeys,
  context: BuildContext,
): SecretSource | undefined {
  if (keys.file !== undefined) {
    return { kind: 'file', path: resolvePath(keys.file, context.folders) };
  }
  if (keys.env !== undefined) return { kind: 'environment', variable: keys.env };
  return keys.ref === undefined ? undefined : toKubernetesSecretSource(keys.ref, context);
}

export function toKubernetesSecretSource(ref: SecretRef, context: BuildContext): SecretSource {
  const { name, key } = ref;
  return { kind: 'kubernetes', namespace: ref.namespace ?? context.namespace, name, key };
}

/** A copy without the keys. */
export function omit<T extends object, K extends keyof T>(
  value: T,
  keys: readonly K[],
): Omit<T, K> {
  const copy = { ...value };
  for (const key of keys) delete copy[key];
  return copy;
}
