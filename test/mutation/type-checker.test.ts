// SPDX-License-Identifier: Apache-2.0
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { type MutantToCheck, TypeChecker } from './type-checker.ts';

const fileName = join(import.meta.dirname, 'sample.ts');

/** Replaces the only occurrence of a text. */
function aMutant(id: string, original: string, replacement: string): MutantToCheck {
  const lines = readFileSync(fileName, 'utf8').split('\n');
  const line = lines.findIndex((text) => text.includes(original));
  const column = lines[line]?.indexOf(original) ?? -1;
  const end = { line, column: column + original.length };
  return { id, fileName, location: { start: { line, column }, end }, replacement };
}

it('TypeChecker refuses mutants that do not compile, and a constant condition keeps its types', async () => {
  const results = await new TypeChecker().check([
    aMutant('valid', 'detected / valid >= share', 'detected / valid < share'),
    aMutant('invalid', '{ detected, valid,', '{ detected,'),
    aMutant('constant', 'valid > 0', 'false'),
  ]);
  expect(results).toMatchObject({
    valid: { status: 'passed' },
    invalid: { status: 'compileError' },
    constant: { status: 'passed' },
  });
});
