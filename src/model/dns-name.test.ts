// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest';
import { dnsLabel, dnsSubdomain } from './dns-name.ts';

describe('dnsLabel', () => {
  test.each(['a', '0', 'a-b', 'a--b', 'worker-1', 'a'.repeat(63)])("takes '%s'", (text) => {
    expect(dnsLabel(text)).toEqual({ ok: true, value: text });
  });

  test.each(['', '-', '-a', 'a-', 'A', 'a.b', 'a_b', 'a b', 'ä', 'a\n'])("refuses '%s'", (text) => {
    expect(dnsLabel(text)).toEqual({
      ok: false,
      problem:
        "must be lower case letters, digits and '-', and start and end with a letter or digit",
    });
  });

  test('refuses more than 63 characters', () => {
    expect(dnsLabel('a'.repeat(64))).toEqual({
      ok: false,
      problem: 'is longer than 63 characters',
    });
  });
});

describe('dnsSubdomain', () => {
  test.each(['a', 'a.b', 'node-1.example.com', '1.2.3', 'a'.repeat(253)])("takes '%s'", (text) => {
    expect(dnsSubdomain(text)).toEqual({ ok: true, value: text });
  });

  test.each(['', '.', 'a.', '.a', 'a..b', 'a.-b', 'a-.b', 'A.b', 'a_b', 'a/b'])(
    "refuses '%s'",
    (text) => {
      expect(dnsSubdomain(text)).toEqual({
        ok: false,
        problem:
          "must be lower case letters, digits, '-' and '.', and each part must start and end with a letter or digit",
      });
    },
  );

  test('refuses more than 253 characters', () => {
    expect(dnsSubdomain('a'.repeat(254))).toEqual({
      ok: false,
      problem: 'is longer than 253 characters',
    });
  });
});
