// SPDX-License-Identifier: Apache-2.0
import type { Call } from '../shell/command.ts';

export function textOfLines(lines: readonly string[]): string {
  return lines.map((line) => `${line}\n`).join('');
}

export function linesOf(content: string): string[] {
  const lines = content.split('\n');
  return lines.at(-1) === '' ? lines.slice(0, -1) : lines;
}

/** The named files one after the other (`-` and no name: standard input); a missing one counts as empty. */
export function inputOf(call: Call, operands: readonly string[]): string {
  if (operands.length === 0) return call.stdin;
  return operands
    .map((path) => (path === '-' ? call.stdin : (call.system.files.read(call.path(path)) ?? '')))
    .join('');
}
