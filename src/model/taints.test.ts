// SPDX-License-Identifier: Apache-2.0
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  checkTaint,
  findUntoleratedTaint,
  formatTaint,
  parseLenientTaint,
  parseTaint,
  parseToleration,
  type Taint,
  type TolerationSource,
  tolerates,
} from './taints.ts';

const gpu: Taint = { key: 'gpu', value: 'yes', effect: 'NoSchedule' };

function doesTolerate(source: TolerationSource, taint: Taint): boolean {
  const parsed = parseToleration(source);
  if (!parsed.ok) throw new Error(parsed.problem);
  return tolerates(parsed.value, taint);
}

describe('taints as text', () => {
  test.each<[string, Taint]>([
    ['gpu=yes:NoSchedule', gpu],
    ['gpu:NoExecute', { key: 'gpu', value: '', effect: 'NoExecute' }],
    ['gpu=:NoExecute', { key: 'gpu', value: '', effect: 'NoExecute' }],
    ['a.io/b=c:PreferNoSchedule', { key: 'a.io/b', value: 'c', effect: 'PreferNoSchedule' }],
  ])('are parsed by both parsers: %s', (text, taint) => {
    expect(parseTaint(text)).toEqual({ ok: true, value: taint });
    expect(parseLenientTaint(text)).toEqual({ ok: true, value: taint });
  });

  test.each([
    ['gpu', ''],
    ['gpu:', ''],
    ['gpu=yes', 'yes'],
    ['gpu=yes:', 'yes'],
  ])('without an effect mean NoSchedule for parseLenientTaint only: %s', (text, value) => {
    expect(parseLenientTaint(text)).toEqual({ ok: true, value: { ...gpu, value } });
    expect(parseTaint(text)).toEqual({
      ok: false,
      problem: expect.stringContaining(`taint '${text}' has no effect; write 'gpu`),
    });
  });

  test.each([
    ['gpu:noschedule', "unknown effect 'noschedule'; did you mean 'NoSchedule'?"],
    ['gpu:Never', "unknown effect 'Never'; effects are NoSchedule, PreferNoSchedule, NoExecute"],
    ['a:b:NoSchedule', "taint 'a:b:NoSchedule' has more than one ':'"],
    ['a=b=c:NoSchedule', "taint 'a=b=c:NoSchedule' has more than one '='"],
    [':NoSchedule', 'key is empty'],
    ['=v:NoSchedule', 'key is empty'],
    ['a=b c:NoSchedule', "value 'b c' must be letters"],
  ])("are refused by both parsers: '%s' (%s)", (text, problem) => {
    const refusal = { ok: false, problem: expect.stringContaining(problem) };
    expect(parseTaint(text)).toEqual(refusal);
    expect(parseLenientTaint(text)).toEqual(refusal);
  });

  test('parse back from their formatted text', () => {
    const word = fc.stringMatching(/^[a-z][a-z0-9]{0,5}$/);
    const taint: fc.Arbitrary<Taint> = fc.record({
      key: word,
      value: fc.oneof(word, fc.constant('')),
      effect: fc.constantFrom('NoSchedule', 'PreferNoSchedule', 'NoExecute'),
    });
    fc.assert(
      fc.property(taint, (one) => {
        expect(parseTaint(formatTaint(one))).toEqual({ ok: true, value: one });
      }),
    );
  });

  test('are formatted without an equals sign if there is no value', () => {
    expect(formatTaint(gpu)).toBe('gpu=yes:NoSchedule');
    expect(formatTaint({ ...gpu, value: '' })).toBe('gpu:NoSchedule');
  });
});

test('may lack a value when given as an object', () => {
  const value = { key: 'gpu', value: '', effect: 'NoSchedule' };
  expect(checkTaint({ key: 'gpu', effect: 'NoSchedule' })).toEqual({ ok: true, value });
  expect(checkTaint({ key: 'gpu', value: null, effect: 'NoSchedule' })).toEqual({
    ok: true,
    value,
  });
});

describe('tolerations', () => {
  test('are parsed with their defaults', () => {
    const value = { key: '', operator: 'Equal', value: '', effect: '' };
    expect(parseToleration({})).toEqual({ ok: true, value });
    expect(
      parseToleration({
        key: null,
        operator: '',
        value: null,
        effect: '',
        tolerationSeconds: null,
      }),
    ).toEqual({ ok: true, value });
  });

  test('keep their seconds, even 0', () => {
    expect(parseToleration({ operator: 'Exists', tolerationSeconds: 0 })).toEqual({
      ok: true,
      value: { key: '', operator: 'Exists', value: '', effect: '', seconds: 0 },
    });
  });

  test.each<[TolerationSource, string]>([
    [{ operator: 'exists' }, "unknown toleration operator 'exists'"],
    [{ effect: 'NoEntry' }, "unknown effect 'NoEntry'"],
  ])('are refused: %j (%s)', (source, problem) => {
    expect(parseToleration(source)).toEqual({
      ok: false,
      problem: expect.stringContaining(problem),
    });
  });

  test.each<[TolerationSource, boolean]>([
    [{ key: 'gpu', value: 'yes', effect: 'NoSchedule' }, true],
    [{ key: 'gpu', value: 'yes' }, true],
    [{ key: 'gpu', operator: 'Equal', value: 'yes' }, true],
    [{ key: 'gpu', value: 'no' }, false],
    [{ key: 'gpu' }, false],
    [{ key: 'gpu', operator: 'Exists' }, true],
    [{ key: 'gpu', operator: 'Exists', value: 'no' }, true],
    [{ key: 'cpu', operator: 'Exists' }, false],
    [{ operator: 'Exists' }, true],
    [{ operator: 'Exists', effect: 'NoExecute' }, false],
    [{ operator: 'Exists', effect: 'NoSchedule' }, true],
    [{ value: 'yes' }, true],
    [{}, false],
  ])('%j tolerates gpu=yes:NoSchedule: %s', (source, expected) => {
    expect(doesTolerate(source, gpu)).toBe(expected);
  });

  test.each([
    ['Lt', '10', '9', true],
    ['Lt', '10', '10', false],
    ['Gt', '10', '11', true],
    ['Gt', '10', '10', false],
    ['Gt', '-10', '-9', true],
    ['Gt', '-1', '0', true],
    ['Lt', '10', '09', false],
    ['Lt', '+10', '9', false],
    ['Gt', '-0', '1', false],
    ['Lt', '10', 'x', false],
    ['Lt', '', '1', false],
    ['Gt', '1', '9223372036854775808', false],
  ])(
    'compare numbers: %s %s with taint value %s: %s',
    (...[operator, value, tainted, expected]) => {
      expect(doesTolerate({ key: 'gpu', operator, value }, { ...gpu, value: tainted })).toBe(
        expected,
      );
    },
  );
});

describe('findUntoleratedTaint', () => {
  const soft: Taint = { ...gpu, effect: 'PreferNoSchedule' };
  const evicting: Taint = { ...gpu, effect: 'NoExecute' };

  test('returns the first taint that repels the pod', () => {
    expect(findUntoleratedTaint([], [])).toBeUndefined();
    expect(findUntoleratedTaint([soft], [])).toBeUndefined();
    expect(findUntoleratedTaint([soft, evicting, gpu], [])).toBe(evicting);
  });

  test('needs one matching toleration per taint', () => {
    const no = { key: 'cpu', operator: 'Exists', value: '', effect: '' } as const;
    const yes = { key: 'gpu', operator: 'Exists', value: '', effect: 'NoSchedule' } as const;
    expect(findUntoleratedTaint([gpu], [no, yes])).toBeUndefined();
    expect(findUntoleratedTaint([gpu, evicting], [no, yes])).toBe(evicting);
  });
});
