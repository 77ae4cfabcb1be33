// SPDX-License-Identifier: Apache-2.0
import { type CommandCall, type CommandResult, failure, parseOptions } from '../shell/command.ts';
import { sha256Hex } from '../system/sha256.ts';
import { isPlaceholder } from './downloads.ts';
import { readInput, splitLines } from './lines.ts';

export function sha256sum(call: CommandCall): CommandResult {
  const options = parseOptions(call.args);
  if (options.has('c', 'check')) {
    return checkSums(call, readInput(call, options.operands), options.has('status', 'quiet'));
  }
  const paths = options.operands.length === 0 ? ['-'] : options.operands;
  let out = '';
  for (const path of paths) {
    const bytes =
      path === '-'
        ? new TextEncoder().encode(call.stdin)
        : call.system.files.bytes(call.path(path));
    if (bytes === undefined) return failure(1, `sha256sum: ${path}: No such file or directory`);
    out += `${sha256Hex(bytes)}  ${path}\n`;
  }
  return { code: 0, out };
}

function checkSums(call: CommandCall, list: string, quiet: boolean): CommandResult {
  const lines = splitLines(list).filter((line) => line.trim() !== '');
  if (lines.length === 0) {
    return failure(1, 'sha256sum: no properly formatted checksum lines found');
  }
  const results = lines.map((line) => checkLine(call, line));
  const shown = results.filter(({ isMatch }) => !quiet || !isMatch);
  const out = shown.map(({ name, isMatch }) => `${name}: ${isMatch ? 'OK' : 'FAILED'}\n`).join('');
  if (results.every(({ isMatch }) => isMatch)) return { code: 0, out };
  return { code: 1, out, err: 'sha256sum: WARNING: computed checksum did NOT match\n' };
}

function checkLine(call: CommandCall, line: string): { name: string; isMatch: boolean } {
  const [, sum, path] = /^([0-9a-fA-F]{64}) [ *](.+)$/.exec(line) ?? [];
  if (sum === undefined || path === undefined) return { name: line, isMatch: false };
  const bytes = path === '-' ? undefined : call.system.files.bytes(call.path(path));
  if (bytes === undefined) return { name: path, isMatch: false };
  const hasUnknownContent = isPlaceholder(new TextDecoder().decode(bytes));
  return { name: path, isMatch: hasUnknownContent || sha256Hex(bytes) === sum.toLowerCase() };
}
