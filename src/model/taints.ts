// SPDX-License-Identifier: Apache-2.0
// Taints keep pods off a node, tolerations let them on again.

import { readInt64 } from './int64.ts';
import { parseLabelKey, parseLabelValue } from './labels.ts';
import { accepted, type Parsed, refused } from './parsed.ts';

const EFFECTS = ['NoSchedule', 'PreferNoSchedule', 'NoExecute'] as const;
const OPERATORS = ['Equal', 'Exists', 'Lt', 'Gt'] as const;

export type TaintEffect = (typeof EFFECTS)[number];
export type TolerationOperator = (typeof OPERATORS)[number];

type Test = (tolerated: string, value: string) => boolean;

const TESTS: Readonly<Record<TolerationOperator, Test>> = {
  Equal: (tolerated, value) => tolerated === value,
  Exists: () => true,
  Lt: (tolerated, value) => isLess(value, tolerated),
  Gt: (tolerated, value) => isLess(tolerated, value),
};

export interface Taint {
  readonly key: string;
  readonly value: string;
  readonly effect: TaintEffect;
}

export interface Toleration {
  /** Empty: any key. */
  readonly key: string;
  readonly operator: TolerationOperator;
  readonly value: string;
  /** Empty: any effect. */
  readonly effect: TaintEffect | '';
  /** How long a NoExecute taint is borne; absent: for ever. */
  readonly seconds?: number;
}

/** A taint as it comes from the Kubernetes API or a configuration file. */
export interface TaintSource {
  readonly key: string;
  readonly value?: string | null;
  readonly effect: string;
}

/** A toleration as it comes from the Kubernetes API. */
export interface TolerationSource {
  readonly key?: string | null;
  readonly operator?: string | null;
  readonly value?: string | null;
  readonly effect?: string | null;
  readonly tolerationSeconds?: number | null;
}

/** Reads `key[=value]:Effect`, as kubectl and the kubelet take it. */
export function parseTaint(text: string): Parsed<Taint> {
  const [subject = '', effect, ...more] = text.split(':');
  if (more.length > 0) return refused(`taint '${text}' has more than one ':'`);
  if (effect === undefined || effect === '') {
    return refused(`taint '${text}' has no effect; write '${subject}:NoSchedule'`);
  }
  const [key = '', value = '', ...rest] = subject.split('=');
  if (rest.length > 0) return refused(`taint '${text}' has more than one '='`);
  return checkTaint({ key, value, effect });
}

/** The same, but a taint without an effect means NoSchedule: how some older files are written. */
export function parseLenientTaint(text: string): Parsed<Taint> {
  const bare = text.replace(/:$/, '');
  return parseTaint(bare.includes(':') ? bare : `${bare}:NoSchedule`);
}

/** Checks a taint that came as an object. */
export function checkTaint(source: TaintSource): Parsed<Taint> {
  const key = parseLabelKey(source.key);
  if (!key.ok) return key;
  const value = parseLabelValue(source.value ?? '');
  if (!value.ok) return value;
  const effect = parseEffect(source.effect);
  return effect.ok
    ? accepted({ key: key.value, value: value.value, effect: effect.value })
    : effect;
}

function parseEffect(text: string): Parsed<TaintEffect> {
  const effect = EFFECTS.find((known) => known === text);
  if (effect !== undefined) return accepted(effect);
  const meant = EFFECTS.find((known) => known.toLowerCase() === text.toLowerCase());
  const hint =
    meant === undefined ? `effects are ${EFFECTS.join(', ')}` : `did you mean '${meant}'?`;
  return refused(`unknown effect '${text}'; ${hint}`);
}

/** `key=value:Effect`, or `key:Effect` when there is no value. */
export function formatTaint({ key, value, effect }: Taint): string {
  return value === '' ? `${key}:${effect}` : `${key}=${value}:${effect}`;
}

/** Reads a toleration's words only; whether they make sense together was for the API server to judge. */
export function parseToleration(source: TolerationSource): Parsed<Toleration> {
  const operator = OPERATORS.find((known) => known === (source.operator || 'Equal'));
  if (operator === undefined) return refused(`unknown toleration operator '${source.operator}'`);
  const effect = source.effect ? parseEffect(source.effect) : accepted('' as const);
  if (!effect.ok) return effect;
  return accepted({
    key: source.key ?? '',
    operator,
    value: source.value ?? '',
    effect: effect.value,
    ...(typeof source.tolerationSeconds === 'number' && { seconds: source.tolerationSeconds }),
  });
}

export function tolerates(toleration: Toleration, taint: Taint): boolean {
  if (toleration.effect !== '' && toleration.effect !== taint.effect) return false;
  if (toleration.key !== '' && toleration.key !== taint.key) return false;
  return TESTS[toleration.operator](toleration.value, taint.value);
}

function isLess(left: string, right: string): boolean {
  const smaller = readCanonical(left);
  const greater = readCanonical(right);
  return smaller !== undefined && greater !== undefined && smaller < greater;
}

// Tolerations compare integers only in the form a person would write: no plus sign, no leading zeros.
function readCanonical(text: string): bigint | undefined {
  return /^(0|-?[1-9]\d*)$/.test(text) ? readInt64(text) : undefined;
}

/** The first taint that keeps a pod with these tolerations off a node. PreferNoSchedule keeps nobody off. */
export function findUntolerated(
  taints: readonly Taint[],
  tolerations: readonly Toleration[],
): Taint | undefined {
  return taints.find(
    (taint) =>
      taint.effect !== 'PreferNoSchedule' &&
      !tolerations.some((toleration) => tolerates(toleration, taint)),
  );
}
