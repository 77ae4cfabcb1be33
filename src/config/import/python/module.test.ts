// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import type { SourceEnvironment } from '../result.ts';
import { evaluatePythonModule, type PythonModule } from './module.ts';

function load(text: string, environment: SourceEnvironment = {}): PythonModule {
  const result = evaluatePythonModule(text, environment);
  if (!result.ok) throw new Error(`${result.problem.line}: ${result.problem.message}`);
  return result.module;
}

function values(text: string, environment: SourceEnvironment = {}): Record<string, unknown> {
  const { settings } = load(text, environment);
  return Object.fromEntries([...settings].map(([name, setting]) => [name, setting.value]));
}

describe('literals', () => {
  it.each([
    [`a = 'x'`, 'x'],
    [`a = "x"`, 'x'],
    [`a = "it's"  # it's`, "it's"],
    [`a = 'a' "b"`, 'ab'],
    [`a = ('a'\n  'b')`, 'ab'],
    [`a = """x\ny"""`, 'x\ny'],
    [`a = r'\\n'`, '\\n'],
    [`a = 'a\\'b\\n'`, "a'b\n"],
    [`a = 'a\\\nb'`, 'ab'],
    [`a = '#no comment'`, '#no comment'],
    ['a = 15', 15],
    ['a = 1_000', 1000],
    ['a = 0x10', 16],
    ['a = -3', -3],
    ['a = 0.5', 0.5],
    ['a = True', true],
    ['a = None', null],
    ['a: int = 7', 7],
    [`a = str(24)`, '24'],
    [`a = int('7')`, 7],
    [`a = \\\n 4`, 4],
    ['b = 1; a = 2', 2],
  ])('evaluates %s', (text, value) => {
    expect(values(text)['a']).toStrictEqual(value);
  });

  it.each([
    `a = f'{b}'`,
    `a = b'x'`,
    'a = b',
    'a = 1 + 1',
    'a = [1]',
    'a = int("x")',
    'a = open("f")',
  ])('does not evaluate %s but reports the assignment', (text) => {
    const setting = load(text).settings.get('a');
    expect(setting).toMatchObject({ name: 'a' });
    expect(setting).not.toHaveProperty('value');
  });
});

it('uses the last assignment and its position', () => {
  expect(load(`a = 1\n\n  # x\na = 2`).settings.get('a')).toStrictEqual({
    name: 'a',
    value: 2,
    at: { line: 4, column: 1 },
  });
});

describe('environment', () => {
  const CREDENTIALS = [
    'import os',
    'try:',
    "    host = os.environ['HOST']",
    "    user = os.environ['USER_NAME']",
    'except:',
    "    host = 'literal'",
    "    user = 'somebody'",
    'after = 1',
  ].join('\n');

  it('uses the values of `except` when a variable of the `try` is missing', () => {
    expect(values(CREDENTIALS, { HOST: 'h' })).toStrictEqual({
      host: 'literal',
      user: 'somebody',
      after: 1,
    });
  });

  it('uses the variables when all are set', () => {
    const environment = { HOST: 'h', USER_NAME: 'u' };
    expect(values(CREDENTIALS, environment)).toStrictEqual({ host: 'h', user: 'u', after: 1 });
  });

  it('records the variable even when the literal was used', () => {
    expect(load(CREDENTIALS).settings.get('host')?.variable).toBe('HOST');
  });

  it.each([
    [`a = os.environ.get('A', 'x')`, {}, 'x'],
    [`a = os.environ.get('A')`, {}, null],
    [`a = os.getenv('A', 5)`, {}, 5],
    [`a = int(os.getenv('A', 5))`, { A: '6' }, 6],
    [`a = environ["A"]`, { A: 'y' }, 'y'],
    [`a = os.getenv('constructor', 1)`, {}, 1],
  ])('evaluates %s', (text, environment, value) => {
    expect(values(text, environment)['a']).toStrictEqual(value);
  });

  it('has no value for a missing variable without a fallback and continues', () => {
    const { settings } = load(`a = os.environ['A']\nb = 1`);
    expect(settings.get('a')).toMatchObject({ variable: 'A' });
    expect(settings.get('b')?.value).toBe(1);
  });

  it('evaluates else and finally', () => {
    expect(
      values(`try:\n  a = 1\nexcept KeyError:\n  a = 2\nelse:\n  b = 3\nfinally:\n  c = 4`),
    ).toStrictEqual({ a: 1, b: 3, c: 4 });
    expect(values(`try: a = os.environ['A']\nexcept: a = 2`)).toStrictEqual({ a: 2 });
  });
});

it('reports skipped statements: conditions, calls, several targets', () => {
  const { settings, skipped } = load(
    'if x:\n  a = 1\nelse:\n  a = 2\nprint("x")\na = b = 3\nc += 1\n"doc"',
  );
  expect([...settings.keys()]).toStrictEqual([]);
  expect(skipped.map(({ line }) => line)).toStrictEqual([1, 5, 6, 7]);
});

it.each([
  [`a = 'x\nb = 1`, '1:5', 'closing quote'],
  [`b = 1\na = (1`, '2:7', 'missing closing bracket'],
  [`a = 1)`, '1:6', 'without an opening bracket'],
  [`a = 1\nb = ?`, '2:5', 'character'],
  [`a = """x`, '1:5', 'closing quote'],
])('reports the position of the syntax error in %j', (text, place, message) => {
  const result = evaluatePythonModule(text, {});
  if (result.ok) throw new Error('was read');
  const { problem } = result;
  expect(`${problem.line}:${problem.column}`).toBe(place);
  expect(problem.message).toContain(message);
});
