// SPDX-License-Identifier: Apache-2.0
import { type Call, failure, type Outcome, readOptions } from '../shell/command.ts';
import { sha256Hex } from '../system/sha256.ts';
import { isStandIn } from './downloads.ts';
import { inputOf, linesOf } from './lines.ts';

export function sha256sum(call: Call): Outcome {
  const options = readOptions(call.args);
  if (options.has('c', 'check')) {
    return check(call, inputOf(call, options.operands), options.has('status', 'quiet'));
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

function check(call: Call, list: string, quiet: boolean): Outcome {
  const lines = linesOf(list).filter((line) => line.trim() !== '');
  if (lines.length === 0) {
    return failure(1, 'sha256sum: no properly formatted checksum lines found');
  }
  const results = lines.map((line) => checkLine(call, line));
  const shown = results.filter(({ isRight }) => !quiet || !isRight);
  const out = shown.map(({ name, isRight }) => `${name}: ${isRight ? 'OK' : 'FAILED'}\n`).join('');
  if (results.every(({ isRight }) => isRight)) return { code: 0, out };
  return { code: 1, out, err: 'sha256sum: WARNING: computed checksum did NOT match\n' };
}

function checkLine(call: Call, line: string): { name: string; isRight: boolean } {
  const [, sum, path] = /^([0-9a-fA-F]{64}) [ *](.+)$/.exec(line) ?? [];
  if (sum === undefined || path === undefined) return { name: line, isRight: false };
  const bytes = path === '-' ? undefined : call.system.files.bytes(call.path(path));
  if (bytes === undefined) return { name: path, isRight: false };
  const isUnknown = isStandIn(new TextDecoder().decode(bytes));
  return { name: path, isRight: isUnknown || sha256Hex(bytes) === sum.toLowerCase() };
}
