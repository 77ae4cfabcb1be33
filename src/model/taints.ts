// SPDX-License-Identifier: Apache-2.0
// Taints repel pods from a node; tolerations allow them.

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
  /** How long a NoExecute taint is tolerated. Absent: for ever. */
  readonly seconds?: number;
}

/** A taint of the Kubernetes API or a configuration file. */
export interface TaintSource {
  readonly key: string;
  readonly value?: string | null;
  readonly effect: string;
}

/** A toleration of the Kubernetes API. */
export interface TolerationSource {
  readonly key?: string | null;
  readonly operator?: string | null;
  readonly value?: string | null;
  readonly effect?: string | null;
  readonly tolerationSeconds?: number | null;
}

/** Parses `key[=value]:Effect`, the notation of kubectl and the kubelet. */
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

/** Like parseTaint, but a taint without an effect means NoSchedule, as in some older files. */
export function parseLenientTaint(text: string): Parsed<Taint> {
  const bare = text.replace(/:$/, '');
  return parseTaint(bare.includes(':') ? bare : `${bare}:NoSchedule`);
}

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
  const suggestion = EFFECTS.find((known) => known.toLowerCase() === text.toLowerCase());
  const hint =
    suggestion === undefined
      ? `effects are ${EFFECTS.join(', ')}`
      : `did you mean '${suggestion}'?`;
  return refused(`unknown effect '${text}'; ${hint}`);
}

/** `key=value:Effect`, or `key:Effect` when there is no value. */
export function formatTaint({ key, value, effect }: Taint): string {
  return value === '' ? `${key}:${effect}` : `${key}=${value}:${effect}`;
}

/** Parses each field. The API server has already validated their combination. */
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

// As in Kubernetes, integers are compared only in canonical form: no plus sign, no leading zeros.
function readCanonical(text: string): bigint | undefined {
  return /^(0|-?[1-9]\d*)$/.test(text) ? readInt64(text) : undefined;
}

/** The first taint that repels a pod with these tolerations. PreferNoSchedule repels no pod. */
export function findUntoleratedTaint(
  taints: readonly Taint[],
  tolerations: readonly Toleration[],
): Taint | undefined {
  return taints.find(
    (taint) =>
      taint.effect !== 'PreferNoSchedule' &&
      !tolerations.some((toleration) => tolerates(toleration, taint)),
  );
}
