// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest';
import { parseDnsLabel, parseDnsSubdomain } from './names.ts';

describe('parseDnsLabel', () => {
  test.each(['a', '0', 'a-b', 'a--b', 'worker-1', 'a'.repeat(63)])("accepts '%s'", (text) => {
    expect(parseDnsLabel(text)).toEqual({ ok: true, value: text });
  });

  test.each(['', '-', '-a', 'a-', 'A', 'a.b', 'a_b', 'a b', 'ä', 'a\n'])("refuses '%s'", (text) => {
    expect(parseDnsLabel(text)).toEqual({
      ok: false,
      problem:
        "must be lower case letters, digits and '-', and start and end with a letter or digit",
    });
  });

  test('refuses more than 63 characters', () => {
    expect(parseDnsLabel('a'.repeat(64))).toEqual({
      ok: false,
      problem: 'is longer than 63 characters',
    });
  });
});

describe('parseDnsSubdomain', () => {
  test.each(['a', 'a.b', 'node-1.example.com', '1.2.3', 'a'.repeat(253)])(
    "accepts '%s'",
    (text) => {
      expect(parseDnsSubdomain(text)).toEqual({ ok: true, value: text });
    },
  );

  test.each(['', '.', 'a.', '.a', 'a..b', 'a.-b', 'a-.b', 'A.b', 'a_b', 'a/b'])(
    "refuses '%s'",
    (text) => {
      expect(parseDnsSubdomain(text)).toEqual({
        ok: false,
        problem:
          "must be lower case letters, digits, '-' and '.', and each part must start and end with a letter or digit",
      });
    },
  );

  test('refuses more than 253 characters', () => {
    expect(parseDnsSubdomain('a'.repeat(254))).toEqual({
      ok: false,
      problem: 'is longer than 253 characters',
    });
  });
});
