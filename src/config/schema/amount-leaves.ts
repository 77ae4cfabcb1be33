// SPDX-License-Identifier: Apache-2.0
// Leaf values that are amounts: bytes, CPU, durations, percentages, counts.
import * as z from 'zod';
import { accepted, type Parsed, refused } from '../../model/parsed.ts';
import {
  type AmountText,
  parseBytes,
  parseCount,
  parseCpuMilli,
  parseMilliseconds,
} from '../values/amount.ts';
import { amountLeaf } from './leaf.ts';

const QUANTITY = {
  type: ['string', 'number'],
  pattern: '^[0-9]+(\\.[0-9]+)?(m|k|Ki|[MGTPE]i?)?$',
};
const DURATION = {
  type: ['string', 'number'],
  pattern: '^(([0-9]+(\\.[0-9]+)?(ns|us|ms|s|m|h))+|0)$',
};

export interface AmountBounds {
  /** Minimum, in the notation of the amount. */
  readonly min?: string;
  readonly max?: string;
}

/** Bytes: `2Gi`, `512Mi`. */
export function bytes(bounds: AmountBounds = {}) {
  return amountLeaf(
    { type: 'quantity', json: QUANTITY, quotes: true },
    withBounds(parseBytes, bounds),
  );
}

/** CPU, possibly fractional: `250m`, `0.5`, `2`. */
export function cpuAmount() {
  return amountLeaf({ type: 'CPU quantity', json: QUANTITY, quotes: true }, parseCpuMilli);
}

/** Number of devices or other extended resources. */
export function countAmount() {
  return amountLeaf({ type: 'quantity', json: QUANTITY, quotes: true }, parseCount);
}

/** Time: `20s`, `10m`, `1h30m`. */
export function duration(bounds: AmountBounds = {}) {
  return amountLeaf(
    { type: 'duration', json: DURATION, quotes: true },
    withBounds(parseMilliseconds, bounds),
  );
}

function withBounds(parse: (amount: AmountText) => Parsed<number>, { min, max }: AmountBounds) {
  const minimum = parseBound(parse, min, 0);
  const maximum = parseBound(parse, max, Number.MAX_SAFE_INTEGER);
  return (amount: AmountText): Parsed<number> => {
    const parsed = parse(amount);
    if (!parsed.ok) return parsed;
    if (parsed.value < minimum) return refused(`is less than ${min}`);
    return parsed.value > maximum ? refused(`is more than ${max}`) : accepted(parsed.value);
  };
}

function parseBound(
  parse: (amount: AmountText) => Parsed<number>,
  text: string | undefined,
  fallback: number,
): number {
  const parsed = text === undefined ? undefined : parse(text);
  return parsed?.ok === true ? parsed.value : fallback;
}

export function wholeNumber(min: number, max: number) {
  return z.int().min(min).max(max);
}

export function percentage() {
  return z.number().min(0).max(100).meta({ 'x-type': 'percent' });
}

/** A ratio from 0 to 1. */
export function ratio() {
  return z.number().min(0).max(1).meta({ 'x-type': 'ratio, 0 to 1' });
}
