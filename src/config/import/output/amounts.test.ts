// SPDX-License-Identifier: Apache-2.0
import { expect, it } from 'vitest';
import { formatMiB, formatSeconds, netmaskToPrefix, parseProxmoxSizeMiB } from './amounts.ts';
import { makeUniqueLabel, toDnsLabel } from './naming.ts';

it.each([
  [2048, '2Gi'],
  [1500, '1500Mi'],
  [0, 0],
])('formats %d MiB as %s', (mib, text) => {
  expect(formatMiB(mib)).toBe(text);
});

it.each([
  [7200, '2h'],
  [900, '15m'],
  [90, '90s'],
  [0, '0s'],
])('formats %d s as %s', (seconds, text) => {
  expect(formatSeconds(seconds)).toBe(text);
});

it.each([
  ['20G', 20_480],
  ['1.5T', 1_572_864],
  ['512M', 512],
  ['1536K', 2],
  ['21474836480', 20_480],
])('parses %s as %d MiB', (text, value) => {
  expect(parseProxmoxSizeMiB(text)).toStrictEqual({ ok: true, value });
});

it.each(['+10G', '10GB', '', 'big', '0', '10 G'])('refuses the size %j', (text) => {
  expect(parseProxmoxSizeMiB(text).ok).toBe(false);
});

it.each([
  ['255.255.255.0', 24],
  ['255.255.252.0', 22],
  ['0.0.0.0', 0],
  ['255.255.255.255', 32],
  ['255.0.255.0', undefined],
  ['24', undefined],
])('converts netmask %s to prefix %s', (text, prefix) => {
  expect(netmaskToPrefix(text)).toBe(prefix);
});

it.each([
  ['Big_Pool', 'big-pool'],
  ['grün', 'grun'],
  ['--', 'x'],
  ['a'.repeat(80), 'a'.repeat(54)],
])('converts the name %s to %s', (text, label) => {
  expect(toDnsLabel(text, 'x')).toBe(label);
});

it('appends a number to names that are taken', () => {
  expect(makeUniqueLabel('a', new Set(['a', 'a-2']))).toBe('a-3');
  expect(makeUniqueLabel('b', new Set(['a']))).toBe('b');
  expect(makeUniqueLabel('a'.repeat(54), new Set(['a'.repeat(54)]))).toHaveLength(54);
});
