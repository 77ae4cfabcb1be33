// SPDX-License-Identifier: Apache-2.0
// Numbers as text for people.

export function formatCount(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** As kubectl does it: two units up to ten of the larger one, then one. */
export function formatAge(ms: number): string {
  const units: readonly (readonly [number, string])[] = [
    [DAY_MS, 'd'],
    [HOUR_MS, 'h'],
    [MINUTE_MS, 'm'],
    [SECOND_MS, 's'],
  ];
  const age = Math.max(0, ms);
  for (const [at, [unit, name]] of units.entries()) {
    const next = units[at + 1];
    if (age < 2 * unit && next !== undefined) continue;
    const whole = Math.floor(age / unit);
    const rest = next === undefined || whole >= 10 ? 0 : Math.floor((age % unit) / next[0]);
    return rest === 0 ? `${whole}${name}` : `${whole}${name}${rest}${next?.[1]}`;
  }
  return '0s';
}

const MIB = 2 ** 20;
const GIB = 2 ** 30;

/** `4 GiB`, `1.5 GiB`, `512 MiB`. */
export function formatBytes(bytes: number): string {
  const [unit, name] = bytes >= GIB ? [GIB, 'GiB'] : [MIB, 'MiB'];
  return `${Math.round((bytes * 10) / unit) / 10} ${name}`;
}
