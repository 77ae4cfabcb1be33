// SPDX-License-Identifier: Apache-2.0
// Converts amounts of the file (text with a suffix, or a plain number) to integers with a unit.
import { durationToMs, parseDuration } from '../../model/duration.ts';
import { accepted, type Parsed, refused } from '../../model/parsed.ts';
import { milliValue, parseQuantity, type Quantity, wholeValue } from '../../model/quantity.ts';

/** A quantity or duration as YAML value. */
export type AmountText = string | number;

const MEBIBYTE = 1_048_576;

export function parseBytes(text: AmountText): Parsed<number> {
  const whole = parseNonNegative(text, wholeValue);
  if (!whole.ok) return whole;
  // An amount below 1 MiB is a missing unit.
  if (whole.value > 0 && whole.value < MEBIBYTE) {
    return refused(`is only ${whole.value} bytes; add a unit, such as '2Gi' or '512Mi'`);
  }
  return whole;
}

export function parseCpuMilli(text: AmountText): Parsed<number> {
  return parseNonNegative(text, milliValue);
}

/** A whole number of items. */
export function parseCount(text: AmountText): Parsed<number> {
  const count = parseNonNegative(text, wholeValue);
  const milli = count.ok ? parseNonNegative(text, milliValue) : count;
  return milli.ok && count.ok && milli.value !== count.value * 1000
    ? refused('must be a whole number')
    : count;
}

function parseNonNegative(text: AmountText, unit: (quantity: Quantity) => bigint): Parsed<number> {
  const quantity = parseQuantity(String(text));
  if (!quantity.ok) return quantity;
  // Kubernetes parses `Gi`, `.` and `-` as zero; in a config file the number is missing.
  if (!/^[+-]?\.?\d/.test(String(text)))
    return refused("has no number; write a number with a unit, such as '2Gi'");
  const value = unit(quantity.value);
  if (value < 0n) return refused('is negative');
  return value > BigInt(Number.MAX_SAFE_INTEGER)
    ? refused('is too large')
    : accepted(Number(value));
}

export function parseMilliseconds(text: AmountText): Parsed<number> {
  const duration = parseDuration(String(text));
  if (!duration.ok) return duration;
  const ms = durationToMs(duration.value);
  return ms < 0 ? refused('is negative') : accepted(ms);
}
