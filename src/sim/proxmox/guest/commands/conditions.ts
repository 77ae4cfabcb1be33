// SPDX-License-Identifier: Apache-2.0
// `test`, `[` and `[[`.
import { type CommandCall, type CommandResult, failure } from '../shell/command.ts';

export function runTest(call: CommandCall): CommandResult {
  return { code: evaluateTest(call, call.args) ? 0 : 1 };
}

export function runBracketTest(call: CommandCall): CommandResult {
  if (call.args.at(-1) !== (call.name === '[' ? ']' : ']]'))
    return failure(2, `${call.name}: missing ]`);
  return { code: evaluateTest(call, call.args.slice(0, -1)) ? 0 : 1 };
}

function evaluateTest(call: CommandCall, args: readonly string[]): boolean {
  if (args[0] === '!') return !evaluateTest(call, args.slice(1));
  for (const [operator, combine] of [
    ['-o', 'some'],
    ['-a', 'every'],
  ] as const) {
    const at = args.indexOf(operator, 1);
    if (at > 0)
      return [args.slice(0, at), args.slice(at + 1)][combine]((each) => evaluateTest(call, each));
  }
  const [left = '', operator, right = ''] = args;
  if (operator === undefined) return left !== '';
  if (args.length === 2) return testUnary(call, left, operator);
  return testBinary(left, operator, right);
}

function testUnary(call: CommandCall, operator: string, value: string): boolean {
  const { files } = call.system;
  const path = call.path(value);
  if (operator === '-n') return value !== '';
  if (operator === '-z') return value === '';
  if (operator === '-d') return files.isDirectory(path);
  if (operator === '-x') return files.isExecutable(path) || files.isDirectory(path);
  if (operator === '-s') return (files.read(path) ?? '') !== '';
  if (operator === '-f') return files.get(path) !== undefined;
  if (operator === '-h' || operator === '-L') return false;
  return files.exists(path);
}

const COMPARISONS: Readonly<Record<string, (left: string, right: string) => boolean>> = {
  '=': (left, right) => left === right,
  '==': (left, right) => left === right,
  '!=': (left, right) => left !== right,
  '-eq': (left, right) => Number(left) === Number(right),
  '-ne': (left, right) => Number(left) !== Number(right),
  '-gt': (left, right) => Number(left) > Number(right),
  '-ge': (left, right) => Number(left) >= Number(right),
  '-lt': (left, right) => Number(left) < Number(right),
  '-le': (left, right) => Number(left) <= Number(right),
};

function testBinary(left: string, operator: string, right: string): boolean {
  return COMPARISONS[operator]?.(left, right) ?? false;
}
