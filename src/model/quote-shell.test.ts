// SPDX-License-Identifier: Apache-2.0
import { execFileSync } from 'node:child_process';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { quoteShell } from './quote-shell.ts';

/** The arguments that a program gets from a real shell. */
function readBack(texts: readonly string[], shell: string): readonly string[] {
  const script = `printf '%s\\0' ${texts.map(quoteShell).join(' ')}`;
  const output = execFileSync(shell, ['-s'], { input: script, encoding: 'utf8' });
  return output.split('\0').slice(0, -1);
}

const SPECIAL = Array.from(`'"\\$\`;&|<>(){}[]*?~#!=-%\n\t a`);

const HOSTILE = [
  '',
  ' ',
  "'",
  "''",
  "'\\''",
  '"',
  '\\',
  '$(reboot)',
  '`reboot`',
  '${HOME}',
  '; reboot',
  '&& reboot',
  '| cat',
  '> /etc/passwd',
  '-rf',
  '--',
  '*',
  '~',
  '~root',
  '#comment',
  '!!',
  'a\nb',
  '\n',
  '\r\n',
  '\t',
  'é ü 漢 🙂',
  '=x',
  'A=b',
  '{a,b}',
  '[ab]',
  '\u0001\u007f',
  '%s',
  '\\n',
  "a'; reboot; '",
];

describe('quoteShell', () => {
  it.each(['sh', 'bash'])('passes hostile texts through %s unchanged', (shell) => {
    expect(readBack(HOSTILE, shell)).toEqual(HOSTILE);
  });

  it('passes any texts through a shell unchanged', () => {
    const text = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.string({ unit: fc.constantFrom(...SPECIAL) }),
    );
    const texts = fc.array(
      text.filter((each) => !each.includes('\0') && each.isWellFormed()),
      { minLength: 1, maxLength: 100 },
    );
    fc.assert(
      fc.property(texts, (values) => {
        expect(readBack(values, 'sh')).toEqual(values);
      }),
      { numRuns: 10 },
    );
  });
});
