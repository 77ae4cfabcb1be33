// SPDX-License-Identifier: Apache-2.0
import type { CommandCall } from '../shell/command.ts';

export function joinLines(lines: readonly string[]): string {
  return lines.map((line) => `${line}\n`).join('');
}

export function splitLines(content: string): string[] {
  const lines = content.split('\n');
  return lines.at(-1) === '' ? lines.slice(0, -1) : lines;
}

/** Concatenates the files; `-` or no operand means standard input. A missing file counts as empty. */
export function readInput(call: CommandCall, operands: readonly string[]): string {
  if (operands.length === 0) return call.stdin;
  return operands
    .map((path) => (path === '-' ? call.stdin : (call.system.files.read(call.path(path)) ?? '')))
    .join('');
}
