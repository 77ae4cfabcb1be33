// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest';
import type { Labels } from './labels.ts';
import { meetsRequirement, parseRequirement, type RequirementOperator } from './requirement.ts';

describe('parseRequirement', () => {
  test('keeps a valid requirement', () => {
    const requirement = { key: 'a', operator: 'In', values: ['b', ''] };
    expect(parseRequirement(requirement)).toEqual({ ok: true, value: requirement });
  });

  test('treats missing values as none', () => {
    const value = { key: 'a', operator: 'Exists', values: [] };
    expect(parseRequirement({ key: 'a', operator: 'Exists' })).toEqual({ ok: true, value });
    expect(parseRequirement({ key: 'a', operator: 'Exists', values: null })).toEqual({
      ok: true,
      value,
    });
  });

  test.each([
    ['in', [], "unknown operator 'in'; operators are In, NotIn, Exists, DoesNotExist, Gt, Lt"],
    ['In', [], "operator In of key 'a' needs at least one value"],
    ['NotIn', [], "operator NotIn of key 'a' needs at least one value"],
    ['Exists', ['b'], "operator Exists of key 'a' takes no values"],
    ['DoesNotExist', ['b'], "operator DoesNotExist of key 'a' takes no values"],
    ['Gt', [], "operator Gt of key 'a' needs exactly one value, which must be an integer"],
    ['Gt', ['1', '2'], "operator Gt of key 'a' needs exactly one value, which must be an integer"],
    ['Lt', ['b'], "operator Lt of key 'a' needs exactly one value, which must be an integer"],
    ['Lt', ['1.5'], "operator Lt of key 'a' needs exactly one value, which must be an integer"],
    [
      'In',
      ['b', 'c d'],
      "operator In of key 'a' has an invalid value: value 'c d' must be letters",
    ],
    ['Gt', ['-1'], "operator Gt of key 'a' has an invalid value: value '-1' must be letters"],
  ])('refuses %s with %j: %s', (operator, values, problem) => {
    expect(parseRequirement({ key: 'a', operator, values })).toEqual({
      ok: false,
      problem: expect.stringContaining(problem),
    });
  });

  test('refuses an invalid key', () => {
    expect(parseRequirement({ key: '', operator: 'Exists' })).toEqual({
      ok: false,
      problem: 'key is empty',
    });
  });
});

describe('meetsRequirement', () => {
  test.each<[RequirementOperator, string[], Labels, boolean]>([
    ['In', ['x', 'y'], { a: 'y' }, true],
    ['In', ['x', 'y'], { a: 'z' }, false],
    ['In', [''], { a: '' }, true],
    ['In', [''], {}, false],
    ['NotIn', ['x'], { a: 'x' }, false],
    ['NotIn', ['x'], { a: 'y' }, true],
    ['NotIn', ['x'], {}, true],
    ['Exists', [], { a: '' }, true],
    ['Exists', [], { b: '' }, false],
    ['DoesNotExist', [], { a: '' }, false],
    ['DoesNotExist', [], {}, true],
    ['Gt', ['5'], { a: '6' }, true],
    ['Gt', ['5'], { a: '5' }, false],
    ['Gt', ['5'], { a: '10' }, true],
    ['Gt', ['5'], { a: 'x' }, false],
    ['Gt', ['5'], {}, false],
    ['Lt', ['5'], { a: '4' }, true],
    ['Lt', ['5'], { a: '5' }, false],
    ['Lt', ['5'], { a: '-7' }, true],
    ['Lt', ['5'], { a: '+4' }, true],
    ['Lt', ['5'], { a: '' }, false],
    ['Lt', ['5'], {}, false],
    ['Gt', ['5'], { a: '9223372036854775808' }, false],
  ])('evaluates %s %j on labels %j to %s', (...[operator, values, labels, expected]) => {
    expect(meetsRequirement({ key: 'a', operator, values }, labels)).toBe(expected);
  });

  test('does not treat inherited object properties as labels', () => {
    expect(meetsRequirement({ key: 'constructor', operator: 'Exists', values: [] }, {})).toBe(
      false,
    );
    expect(meetsRequirement({ key: 'toString', operator: 'DoesNotExist', values: [] }, {})).toBe(
      true,
    );
  });
});
