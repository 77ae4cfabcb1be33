// SPDX-License-Identifier: Apache-2.0
// Durations in Go's notation ("1h30m", "1.5s", "-2ms"), which Kubernetes and its tools use. Accepted input,
// rounding and canonical text follow Go's time.ParseDuration and Duration.String.

import { accepted, type Parsed, refused } from './parsed.ts';

export interface Duration {
  readonly nanoseconds: bigint;
}

const UNITS: ReadonlyMap<string, number> = new Map([
  ['ns', 1],
  ['us', 1e3],
  ['\u00b5s', 1e3], // micro sign
  ['\u03bcs', 1e3], // Greek letter mu
  ['ms', 1e6],
  ['s', 1e9],
  ['m', 60e9],
  ['h', 3600e9],
]);

const UNIT_HINTS: readonly (readonly [RegExp, string])[] = [
  [/^s(ec(ond)?s?)?$/i, "; did you mean 's'?"],
  [/^m(in(ute)?s?)?$/i, "; did you mean 'm'?"],
  [/^(h|hrs?|hours?)$/i, "; did you mean 'h'?"],
  [/^(ms|msecs?|millis?|milliseconds?)$/i, "; did you mean 'ms'?"],
  [/^d(ays?)?$/i, "; a day is '24h'"],
  [/^w(eeks?)?$/i, "; a week is '168h'"],
];

const SECOND = 10n ** 9n;
// Limit of the magnitude: the smallest duration is -2⁶³ ns, the largest is 2⁶³ - 1 ns.
const LIMIT = 2n ** 63n;
const TOO_LONG: Parsed<never> = refused('duration is longer than about 292 years');

export function parseDuration(text: string): Parsed<Duration> {
  const unsigned = text.replace(/^[+-]/, '');
  if (unsigned === '0') return accepted({ nanoseconds: 0n });
  const size = readParts(unsigned);
  if (!size.ok) return size;
  if (text.startsWith('-')) return accepted({ nanoseconds: -size.value });
  return size.value === LIMIT ? TOO_LONG : accepted({ nanoseconds: size.value });
}

function readParts(text: string): Parsed<bigint> {
  if (text === '') return refused('duration is empty');
  let total = 0n;
  let rest = text;
  while (rest !== '') {
    const [part = '', whole = '', fraction = '', unit = ''] =
      /^(\d*)(?:\.(\d*))?([^\d.]*)/.exec(rest) ?? [];
    const size = readPart({ whole, fraction, unit });
    if (!size.ok) return size;
    total += size.value;
    if (total > LIMIT) return TOO_LONG;
    rest = rest.slice(part.length);
  }
  return accepted(total);
}

interface Part {
  readonly whole: string;
  readonly fraction: string;
  readonly unit: string;
}

function readPart({ whole, fraction, unit }: Part): Parsed<bigint> {
  if (whole === '' && fraction === '')
    return refused("duration must have the form '1h30m' or '45s'");
  if (unit === '') return refused(missingUnit(whole, fraction));
  const nanoseconds = UNITS.get(unit);
  if (nanoseconds === undefined) return refused(unknownUnit(unit));
  return accepted(BigInt(whole) * BigInt(nanoseconds) + fractionNanoseconds(fraction, nanoseconds));
}

// Computed in floating point with at most 63 bits of digits, as Go does. The result is sometimes a nanosecond
// off the exact value and must be off by the same amount.
function fractionNanoseconds(digits: string, unit: number): bigint {
  let value = 0n;
  let scale = 1;
  for (const digit of digits) {
    const next = value * 10n + BigInt(digit);
    if (value > (LIMIT - 1n) / 10n || next > LIMIT) break;
    value = next;
    scale *= 10;
  }
  return BigInt(Math.trunc(Number(value) * (unit / scale)));
}

function missingUnit(whole: string, fraction: string): string {
  const number = fraction === '' ? whole : `${whole}.${fraction}`;
  return `missing unit; did you mean '${number}s'?`;
}

function unknownUnit(unit: string): string {
  if (/\s/.test(unit)) return 'duration contains white space';
  const hint = UNIT_HINTS.find(([word]) => word.test(unit))?.[1];
  return `unknown unit '${unit}'${hint ?? '; units are ns, us, ms, s, m and h'}`;
}

export function formatDuration({ nanoseconds }: Duration): string {
  const size = nanoseconds < 0n ? -nanoseconds : nanoseconds;
  return `${nanoseconds < 0n ? '-' : ''}${size < SECOND ? formatShort(size) : formatLong(size)}`;
}

function formatShort(size: bigint): string {
  if (size === 0n) return '0s';
  if (size < 1000n) return `${size}ns`;
  if (size < 1_000_000n) return `${decimal(size, 3)}µs`;
  return `${decimal(size, 6)}ms`;
}

function formatLong(size: bigint): string {
  const minutes = size / (60n * SECOND);
  const seconds = `${decimal(size % (60n * SECOND), 9)}s`;
  if (minutes === 0n) return seconds;
  return minutes < 60n ? `${minutes}m${seconds}` : `${minutes / 60n}h${minutes % 60n}m${seconds}`;
}

function decimal(value: bigint, places: number): string {
  const digits = value.toString().padStart(places + 1, '0');
  const fraction = digits.slice(-places).replace(/0+$/, '');
  const whole = digits.slice(0, -places);
  return fraction === '' ? whole : `${whole}.${fraction}`;
}

/** Milliseconds, rounded away from zero, so that a positive wait never becomes 0. */
export function durationToMs({ nanoseconds }: Duration): number {
  const whole = nanoseconds / 1_000_000n;
  if (whole * 1_000_000n === nanoseconds) return Number(whole);
  return Number(nanoseconds > 0n ? whole + 1n : whole - 1n);
}

export function durationFromMs(ms: number): Duration {
  return { nanoseconds: BigInt(ms) * 1_000_000n };
}
